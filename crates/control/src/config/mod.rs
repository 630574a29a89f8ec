//! The head's file: where to listen, which drives to look at, which cores to use, where the API is.
//!
//! Everything else lives on the array's own drives. The file is accepted as a whole or refused with
//! its name, the line, the reason and what to do; an unknown key is an error.

mod alerts;
mod error;
mod fence;
mod health;
mod reader;
#[cfg(test)]
mod tests;
mod web;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use api::PortalOptions;
use base::limits::{CONFIGURED_DRIVES_MAX, HOSTS_MAX, PORTAL_GROUPS_OF_A_HEAD_MAX, PORTALS_MAX, SHARDS_MAX};

pub use self::alerts::{AlertMail, AlertTls, AlertUrl, Alerts, QuietHours};
pub use self::error::ConfigError;
pub use self::fence::{Fence, FenceParameter};
pub use self::health::DriveHealth;
use self::reader::{Reader, Section, Value};
pub use self::web::{Web, WebCertificate};
use crate::size::parse_size;

/// Where the file is looked for when none is named.
pub const DEFAULT_PATH: &str = "/etc/tangelo/tangelo.toml";
/// Where the API's Unix socket is by default.
pub const DEFAULT_SOCKET: &str = "/run/tangelo/tangelo.sock";
/// Where the head keeps its state by default.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/tangelo";
/// The longest name of an interface (IFNAMSIZ, without its closing zero).
const INTERFACE_BYTES_MAX: usize = 15;
/// The registered iSCSI port (RFC 7143 §14).
pub const DEFAULT_ISCSI: &str = "0.0.0.0:3260";
/// Where drives are looked for when the file does not say: whole disks of the usual kinds. Looking changes nothing.
pub const DEFAULT_DRIVES: [&str; 5] =
    ["/dev/nvme*n[0-9]", "/dev/nvme*n[0-9][0-9]", "/dev/sd[a-z]", "/dev/sd[a-z][a-z]", "/dev/vd[a-z]"];
/// Bytes that a file may have.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Which cores the shards run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cores {
    /// As many as the process may use, up to [`SHARDS_MAX`].
    All,
    /// So many, wherever the system puts them.
    Count(usize),
    /// These, by their numbers.
    List(Vec<usize>),
}

/// The API over TCP, which needs a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiTcp {
    pub address: SocketAddr,
    pub token_file: PathBuf,
}

/// A drive, or a pattern of drives, to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrivePattern {
    /// An absolute path, which may hold `*`, `?` and `[...]`.
    pub pattern: String,
    /// The line of the file that says so; none if it is a default.
    pub line: Option<usize>,
}

/// A drive to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedDrive {
    pub path: String,
    /// The line of the file that names it; none if nobody asked for this drive in particular.
    pub line: Option<usize>,
}

/// What the head's file says, with defaults for what it does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The file, where there is one.
    pub file: Option<PathBuf>,
    pub iscsi: Vec<PortalOptions>,
    /// The addresses among them that are with the head that owns the array.
    pub floating: Vec<FloatingPortal>,
    pub socket: PathBuf,
    pub tcp: Option<ApiTcp>,
    /// For browsers, and for programs elsewhere.
    pub web: Web,
    pub drives: Vec<DrivePattern>,
    pub cores: Cores,
    /// Memory for commands' data and the maps of pools, in bytes; a part of the machine's where the file does not say.
    pub memory_bytes: Option<u64>,
    pub state_dir: PathBuf,
    /// How the other head of the pair is fenced; `None`: it is not.
    pub fence: Option<Fence>,
    pub health: DriveHealth,
    pub alerts: Alerts,
}

/// An address that moves with the array, and the interface that has it on this head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FloatingPortal {
    pub address: IpAddr,
    pub interface: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            file: None,
            iscsi: vec![DEFAULT_ISCSI.parse::<SocketAddr>().expect("the default is an address").into()],
            floating: Vec::new(),
            socket: DEFAULT_SOCKET.into(),
            tcp: None,
            web: Web::default(),
            drives: DEFAULT_DRIVES
                .map(|pattern| DrivePattern { pattern: pattern.to_owned(), line: None })
                .into(),
            cores: Cores::All,
            memory_bytes: None,
            state_dir: DEFAULT_STATE_DIR.into(),
            fence: None,
            health: DriveHealth::default(),
            alerts: Alerts::default(),
        }
    }
}

impl Config {
    /// Whether a portal moves with the array.
    pub fn floats(&self, portal: &PortalOptions) -> bool {
        self.floating.iter().any(|floating| floating.address == portal.address.ip())
    }

    /// The named file, which must be there; or the default one, which need not.
    pub fn load(named: Option<&Path>) -> Result<Config, ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_PATH));
        match std::fs::read(path) {
            Ok(bytes) => {
                let refuse = |reason: String| ConfigError { path: path.to_owned(), line: None, reason };
                if bytes.len() > FILE_BYTES_MAX {
                    return Err(refuse(format!(
                        "{} bytes are too many for a configuration file",
                        bytes.len()
                    )));
                }
                let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8 text".to_owned()))?;
                let config = Config::parse(path, &text)?;
                let is_open_to_all =
                    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o007 != 0);
                match &config.fence {
                    Some(fence) if is_open_to_all && !fence.parameters.is_empty() => Err(ConfigError {
                        path: path.to_owned(),
                        line: Some(fence.line),
                        reason: "[fence] has secrets, and everybody on this machine may read or change the file: `chmod 640` it".to_owned(),
                    }),
                    _ => Ok(config),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(Config::default()),
            Err(error) => {
                let reason =
                    format!("cannot be read: {error}; see docs/configuration.md for what it may say");
                Err(ConfigError { path: path.to_owned(), line: None, reason })
            }
        }
    }

    /// What `text`, the content of `path`, says. Relative paths are taken from the file's directory.
    pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
        let reader = Reader::new(path, text);
        let mut config = Config { file: Some(path.to_owned()), ..Config::default() };
        let document = reader.document()?;
        let mut root = Section::new(&reader, "", document.get_ref());
        if let Some(value) = root.take("state_dir") {
            config.state_dir = value.path()?;
        }
        if let Some(value) = root.take("memory") {
            let text = value.text("a size, such as \"4GiB\"")?;
            config.memory_bytes = Some(parse_size(text).map_err(|error| value.refuse(error.to_string()))?);
        }
        if let Some(mut listen) = root.section("listen")? {
            if let Some(value) = listen.take("iscsi") {
                (config.iscsi, config.floating) = read_portals(&value)?;
            }
            listen.finish()?;
        }
        if let Some(api) = root.section("api")? {
            read_api(api, &mut config)?;
        }
        if let Some(web) = root.section("web")? {
            config.web = web::read(web)?;
        }
        if let Some(mut drives) = root.section("drives")? {
            if let Some(value) = drives.take("paths") {
                config.drives = read_drives(&value)?;
            }
            drives.finish()?;
        }
        if let Some(cores) = root.section("cores")? {
            config.cores = read_cores(cores)?;
        }
        if let Some(fence) = root.section("fence")? {
            config.fence = Some(fence::read(fence)?);
        }
        if let Some(health) = root.section("health")? {
            config.health = health::read(health)?;
        }
        if let Some(alerts) = root.section("alerts")? {
            config.alerts = alerts::read(alerts)?;
        }
        root.finish()?;
        Ok(config)
    }

    /// The drives that are there now for every pattern, those named outright whether or not they are there, and
    /// those of `remembered` that are there; each once, with the line that named it.
    pub fn expand_drives(&self, remembered: &[String]) -> Result<Vec<NamedDrive>, ConfigError> {
        let refuse = |line, reason| ConfigError { path: self.file.clone().unwrap_or_default(), line, reason };
        let mut found = Vec::new();
        for DrivePattern { pattern, line } in &self.drives {
            if !pattern.contains(['*', '?', '[']) {
                found.push((PathBuf::from(pattern), *line));
                continue;
            }
            let matches = glob::glob(pattern)
                .map_err(|error| refuse(*line, format!("\"{pattern}\" is no pattern: {error}")))?;
            found.extend(
                matches.filter_map(Result::ok).filter(|path| !path.is_dir()).map(|path| (path, *line)),
            );
        }
        found.extend(
            remembered.iter().map(PathBuf::from).filter(|path| path.exists()).map(|path| (path, None)),
        );
        let mut seen = BTreeSet::new();
        let mut drives = Vec::new();
        for (path, line) in found {
            let identity = path.canonicalize().unwrap_or_else(|_| path.clone());
            let Some(text) = path.to_str() else { continue };
            if seen.insert(identity) {
                drives.push(NamedDrive { path: text.to_owned(), line });
            }
            if drives.len() > CONFIGURED_DRIVES_MAX {
                let reason = format!(
                    "these are more than {CONFIGURED_DRIVES_MAX} drives; name fewer in [drives] paths, or use a narrower pattern"
                );
                return Err(refuse(line, reason));
            }
        }
        Ok(drives)
    }
}

fn read_portals(value: &Value) -> Result<(Vec<PortalOptions>, Vec<FloatingPortal>), ConfigError> {
    let (mut portals, mut floating): (Vec<PortalOptions>, Vec<FloatingPortal>) = (Vec::new(), Vec::new());
    for item in value.list("a list of addresses, such as [\"0.0.0.0:3260\"]")? {
        let portal = match item.table("iscsi") {
            Some(table) => read_portal(&item, table, &mut floating)?,
            None => item.address()?.into(),
        };
        let address = portal.address;
        if portals.iter().any(|other| other.address == address) {
            return Err(item.refuse(format!("{address} is listed twice; remove one")));
        }
        portals.push(portal);
    }
    if portals.is_empty() || portals.len() > PORTALS_MAX {
        return Err(
            value.refuse(format!("1 to {PORTALS_MAX} addresses are possible, here are {}", portals.len()))
        );
    }
    let (fixed, moved): (Vec<&PortalOptions>, Vec<_>) =
        portals.iter().partition(|portal| !floating.iter().any(|other| other.address == portal.address.ip()));
    if let Some(portal) = moved.iter().find(|portal| fixed.iter().any(|other| other.group == portal.group)) {
        let reason = format!(
            "{} floats, and shares portal group {} with a portal that does not: hosts would see a port of the wrong head; give it a group of its own",
            portal.address, portal.group
        );
        return Err(value.refuse(reason));
    }
    Ok((portals, floating))
}

fn read_portal(
    item: &Value,
    mut table: Section,
    floating: &mut Vec<FloatingPortal>,
) -> Result<PortalOptions, ConfigError> {
    let address = table.take("address").ok_or_else(|| {
        item.refuse("a portal needs an address: { address = \"10.0.1.1:3260\", group = 2 }".to_owned())
    })?;
    let mut portal = PortalOptions::from(address.address()?);
    if let Some(group) = table.take("group") {
        portal.group = group.integer(1, u64::from(PORTAL_GROUPS_OF_A_HEAD_MAX))? as u16;
    }
    if let Some(hosts) = table.take("hosts") {
        let wanted = "a list of hosts' names, such as [\"pve1\"]";
        for host in hosts.list(wanted)? {
            portal.hosts.push(host.text(wanted)?.to_owned());
        }
        if portal.hosts.is_empty() || portal.hosts.len() > HOSTS_MAX {
            let reason =
                format!("1 to {HOSTS_MAX} hosts are possible; leave hosts out to let all of them in");
            return Err(hosts.refuse(reason));
        }
    }
    if let Some(value) = table.take("floating") {
        let interface = value.text("the name of an interface, such as \"eth0\"")?;
        if portal.address.ip().is_unspecified() {
            return Err(value.refuse("a portal that listens on every address cannot float".to_owned()));
        }
        if !(1..=INTERFACE_BYTES_MAX).contains(&interface.len()) || interface.contains(['/', ' ']) {
            return Err(value.refuse(format!("\"{interface}\" is no interface's name, such as eth0")));
        }
        floating.push(FloatingPortal { address: portal.address.ip(), interface: interface.to_owned() });
    }
    table.finish()?;
    Ok(portal)
}

fn read_api(mut api: Section, config: &mut Config) -> Result<(), ConfigError> {
    if let Some(value) = api.take("socket") {
        config.socket = value.path()?;
        // sockaddr_un's path, with its closing zero.
        if config.socket.as_os_str().len() > 107 {
            return Err(
                value.refuse("the path is longer than the 107 bytes that a Unix socket can have".to_owned())
            );
        }
    }
    let tcp = api.take("tcp");
    let token_file = api.take("token_file");
    api.finish()?;
    match (tcp, token_file) {
        (Some(tcp), Some(file)) => {
            config.tcp = Some(ApiTcp { address: tcp.address()?, token_file: file.path()? });
            Ok(())
        }
        (Some(tcp), None) => Err(tcp.refuse(
            "the API over TCP needs a token; add token_file = \"/etc/tangelo/token\" beside it, or remove tcp".to_owned(),
        )),
        (None, Some(file)) => {
            Err(file.refuse("token_file is for the API over TCP; add tcp = \"127.0.0.1:7780\", or remove it".to_owned()))
        }
        (None, None) => Ok(()),
    }
}

fn read_drives(value: &Value) -> Result<Vec<DrivePattern>, ConfigError> {
    let mut drives: Vec<DrivePattern> = Vec::new();
    for item in value.list("a list of paths, such as [\"/dev/nvme*n1\"]")? {
        let path = item.path()?;
        let pattern = path.to_str().expect("it was text").to_owned();
        if drives.iter().any(|drive| drive.pattern == pattern) {
            return Err(item.refuse(format!("{pattern} is listed twice; remove one")));
        }
        if let Err(error) = glob::Pattern::new(&pattern) {
            return Err(item.refuse(format!("\"{pattern}\" is no pattern: {error}")));
        }
        drives.push(DrivePattern { pattern, line: Some(item.line()) });
    }
    if drives.len() > CONFIGURED_DRIVES_MAX {
        return Err(
            value.refuse(format!("{CONFIGURED_DRIVES_MAX} entries are possible, here are {}", drives.len()))
        );
    }
    Ok(drives)
}

fn read_cores(mut cores: Section) -> Result<Cores, ConfigError> {
    let count = cores.take("count");
    let list = cores.take("list");
    cores.finish()?;
    match (count, list) {
        (None, None) => Ok(Cores::All),
        (Some(count), None) => Ok(Cores::Count(count.integer(1, SHARDS_MAX as u64)? as usize)),
        (None, Some(list)) => {
            let mut numbers: Vec<usize> = Vec::new();
            for item in list.list("a list of core numbers, such as [2, 3]")? {
                let number = item.integer(0, 1023)? as usize;
                if numbers.contains(&number) {
                    return Err(item.refuse(format!("core {number} is listed twice; remove one")));
                }
                numbers.push(number);
            }
            if numbers.is_empty() || numbers.len() > SHARDS_MAX {
                return Err(
                    list.refuse(format!("1 to {SHARDS_MAX} cores are possible, here are {}", numbers.len()))
                );
            }
            Ok(Cores::List(numbers))
        }
        (Some(_), Some(list)) => Err(list.refuse("give either list or count, not both".to_owned())),
    }
}
