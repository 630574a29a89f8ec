//! What this server's member of etcd is started with: the directory `register/` in the state directory.
//!
//! ```text
//!   register/member.json   name, addresses, the members that it starts with        mode 600
//!            ca.pem  cert.pem  key.pem
//!            data/         etcd's own
//!            lock          held by the supervisor
//! ```
//!
//! What always holds: `member.json` is written last, so that it is complete or there is no member.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pair::TAKEOVER_MS_DEFAULT;
use register::Identity;
use serde::{Deserialize, Serialize};

use crate::error::SetupError;
use crate::files;
use crate::pair_file::{is_takeover_ms, takeover_ms};
use crate::ports::Ports;

const VERSION: u32 = 1;

/// How often etcd's leader says that it is there, and how long the others wait for that. A head that dies must not keep the
/// register busy for long.
const HEARTBEAT_MS: u32 = 50;
const ELECTION_MS: u32 = 500;

/// Far more than one small key needs; etcd refuses all changes when it is reached.
const QUOTA_BYTES: u32 = 256 << 20;
/// Changes of the register that etcd remembers.
const REVISIONS: u32 = 1000;
/// Changes after which etcd writes a snapshot and may delete older files.
const SNAPSHOT_COUNT: u32 = 10_000;

/// The content of `member.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberFile {
    version: u32,
    pub name: String,
    /// The array: members of another one are not taken for this one's.
    cluster_token: String,
    /// The first of the five ports of each address.
    listen: Vec<SocketAddr>,
    /// `NAME=URL` of all members; etcd reads it at its first start only.
    initial_cluster: String,
    /// Whether it joins members that are there.
    joins: bool,
    /// As `pair.json` has it: etcd's own times are in proportion.
    #[serde(default = "takeover_ms", skip_serializing_if = "is_takeover_ms")]
    takeover_ms: u32,
}

const PEMS: [&str; 3] = ["ca.pem", "cert.pem", "key.pem"];

pub(crate) fn directory(state_dir: &Path) -> PathBuf {
    state_dir.join("register")
}

pub(crate) fn path(state_dir: &Path) -> PathBuf {
    directory(state_dir).join("member.json")
}

/// This server has no member of etcd any more. If a supervisor runs, it sees that, ends etcd and removes the rest.
pub(crate) fn retire(state_dir: &Path) -> Result<(), SetupError> {
    if !directory(state_dir).exists() {
        return Ok(());
    }
    files::remove_file(&path(state_dir))?;
    match files::try_lock(&directory(state_dir).join("lock"))? {
        Some(_lock) => remove_rest(state_dir),
        None => Ok(()),
    }
}

/// Removes what a member that is retired has left. Whoever calls this has the lock of the directory.
pub(crate) fn remove_rest(state_dir: &Path) -> Result<(), SetupError> {
    let directory = directory(state_dir);
    files::remove_directory(&directory.join("data"))?;
    PEMS.iter().try_for_each(|name| files::remove_file(&directory.join(name)))
}

impl MemberFile {
    pub fn new(
        name: String,
        array: String,
        ports: &[Ports],
        initial_cluster: String,
        joins: bool,
    ) -> MemberFile {
        let listen = ports.iter().map(Ports::link).collect();
        let takeover_ms = takeover_ms();
        MemberFile {
            version: VERSION,
            name,
            cluster_token: array,
            listen,
            initial_cluster,
            joins,
            takeover_ms,
        }
    }

    pub fn with_takeover_ms(self, takeover_ms: u32) -> MemberFile {
        MemberFile { takeover_ms, ..self }
    }

    /// A time of etcd's, for pairs that take over later than usual. A shorter one than the usual would be too short for etcd.
    fn stretched(&self, usual_ms: u32) -> String {
        (usual_ms * self.takeover_ms.max(TAKEOVER_MS_DEFAULT) / TAKEOVER_MS_DEFAULT).to_string()
    }

    pub fn load(state_dir: &Path) -> Result<MemberFile, SetupError> {
        let path = path(state_dir);
        let file: Option<MemberFile> = files::load_json(path.clone(), VERSION)?;
        let file = file.ok_or_else(|| SetupError::NoMember { path: path.clone() })?;
        match file.ports() {
            Ok(ports) if !ports.is_empty() => Ok(file),
            Ok(_) => Err(SetupError::damaged(&path, "it has no addresses to listen on")),
            Err(error) => Err(SetupError::damaged(&path, error)),
        }
    }

    /// Writes all of it. etcd's data of a member that never was one is removed first.
    pub fn save(&self, state_dir: &Path, identity: &Identity) -> Result<(), SetupError> {
        let directory = directory(state_dir);
        files::make_directory(&directory)?;
        files::remove_directory(&directory.join("data"))?;
        for (name, pem) in PEMS.iter().zip([&identity.authority, &identity.certificate, &identity.key]) {
            files::save(&directory.join(name), pem.as_bytes())?;
        }
        files::save_json(&path(state_dir), self)
    }

    fn ports(&self) -> Result<Vec<Ports>, SetupError> {
        self.listen.iter().map(|link| Ok(Ports::of_link(*link)?)).collect()
    }

    /// etcd's arguments.
    pub fn arguments(&self, state_dir: &Path) -> Vec<OsString> {
        let directory = directory(state_dir);
        let ports = self.ports().expect("they were checked when the file was loaded");
        let urls = |address: fn(&Ports) -> SocketAddr| {
            ports.iter().map(|ports| format!("https://{}", address(ports))).collect::<Vec<_>>().join(",")
        };
        let (clients, peers) = (urls(Ports::client), urls(Ports::peer));
        let state = if self.joins { "existing" } else { "new" };
        let texts = [
            ("--name", self.name.clone()),
            ("--listen-client-urls", clients.clone()),
            ("--advertise-client-urls", clients),
            ("--listen-peer-urls", peers.clone()),
            ("--initial-advertise-peer-urls", peers),
            ("--initial-cluster", self.initial_cluster.clone()),
            ("--initial-cluster-state", state.to_owned()),
            ("--initial-cluster-token", self.cluster_token.clone()),
            ("--heartbeat-interval", self.stretched(HEARTBEAT_MS)),
            ("--election-timeout", self.stretched(ELECTION_MS)),
            ("--quota-backend-bytes", QUOTA_BYTES.to_string()),
            ("--auto-compaction-mode", "revision".to_owned()),
            ("--auto-compaction-retention", REVISIONS.to_string()),
            ("--snapshot-count", SNAPSHOT_COUNT.to_string()),
            ("--logger", "zap".to_owned()),
            ("--log-outputs", "stderr".to_owned()),
            ("--log-level", "warn".to_owned()),
        ];
        let paths = [
            ("--data-dir", "data"),
            ("--trusted-ca-file", "ca.pem"),
            ("--cert-file", "cert.pem"),
            ("--key-file", "key.pem"),
            ("--peer-trusted-ca-file", "ca.pem"),
            ("--peer-cert-file", "cert.pem"),
            ("--peer-key-file", "key.pem"),
        ];
        // a server may connect from an address that is not in its certificate: the array's own authority decides
        let switches = [
            "--client-cert-auth",
            "--peer-client-cert-auth",
            "--experimental-peer-skip-client-san-verification",
            "--pre-vote",
        ];
        let mut all: Vec<OsString> = switches.map(OsString::from).to_vec();
        all.extend(texts.into_iter().flat_map(|(flag, text)| [flag.into(), text.into()]));
        all.extend(paths.into_iter().flat_map(|(flag, name)| [flag.into(), directory.join(name).into()]));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_member_is_started_with_what_its_file_says() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        assert!(matches!(MemberFile::load(at), Err(SetupError::NoMember { .. })));
        let ports = ["192.0.2.1", "198.51.100.1:7000"].map(|text| text.parse().unwrap());
        let file = MemberFile::new("witness".into(), "5".into(), &ports, "witness=https://x".into(), true);
        std::fs::create_dir_all(at.join("register/data/member")).unwrap();
        let pem = |text: &str| text.to_owned();
        let identity = Identity { authority: pem("ca"), certificate: pem("cert"), key: pem("key") };
        file.save(at, &identity).unwrap();
        assert!(!at.join("register/data").exists(), "what a broken join has left is not used");
        assert_eq!(MemberFile::load(at).unwrap(), file);
        for name in ["member.json", "ca.pem", "cert.pem", "key.pem"] {
            let mode = std::fs::metadata(at.join("register").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let line = file.arguments(at).join(" ".as_ref()).into_string().unwrap();
        for part in [
            "--listen-peer-urls https://192.0.2.1:3264,https://198.51.100.1:7003 ",
            "--advertise-client-urls https://192.0.2.1:3263,https://198.51.100.1:7002 ",
            "--initial-cluster-state existing ",
            "--client-cert-auth ",
            "/register/data ",
        ] {
            assert!(line.contains(part), "{line}");
        }
        files::save(&path(at), br#"{"version":2}"#).unwrap();
        assert!(matches!(MemberFile::load(at), Err(SetupError::Later(_))));
    }
}
