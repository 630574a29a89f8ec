//! Targets: drives or files of this machine, a logical unit over iSCSI, or the echo floor.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Name that the load generator logs in with, where none is given.
pub const INITIATOR: &str = "iqn.2026-11.org.example:bench";
const ISCSI_PORT: u16 = 3260;

/// A target, as people write it.
///
/// - `/dev/sdb` or `/a/file`, several with commas: drives of this machine, used side by side;
/// - `iscsi://HOST[:PORT]/TARGET-NAME/LUN`, with `?initiator=IQN` where ours is not the default name; `FIRST-LAST` in place of a
///   LUN: the first connection uses the first of them, the next the next, and so on, again and again;
/// - `echo://HOST:PORT`: the echo floor.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    Drives(Vec<String>),
    Iscsi(Unit),
    Echo(SocketAddr),
}

/// A logical unit, and who asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    pub portal: SocketAddr,
    pub target: String,
    pub lun: u16,
    /// The last of several that connections take in turn; the same where there is one.
    pub last_lun: u16,
    pub initiator: String,
}

impl Unit {
    /// Which LUN a connection uses.
    pub fn lun_of(&self, connection: u64) -> u16 {
        self.lun + (connection % u64::from(self.last_lun - self.lun + 1)) as u16
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if let Some(rest) = text.strip_prefix("iscsi://") {
            return parse_iscsi(rest).map(Target::Iscsi).map_err(|why| format!("{text}: {why}"));
        }
        if let Some(rest) = text.strip_prefix("echo://") {
            return address(rest, None).map(Target::Echo).map_err(|why| format!("{text}: {why}"));
        }
        let paths: Vec<String> = text.split(',').map(str::to_owned).collect();
        if text.contains("://") || paths.iter().any(String::is_empty) {
            return Err(format!(
                "{text} is no target: use /path[,/path...], iscsi://HOST[:PORT]/TARGET/LUN or echo://HOST:PORT"
            ));
        }
        Ok(Target::Drives(paths))
    }
}

fn parse_iscsi(text: &str) -> Result<Unit, String> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let initiator = match query {
        "" => INITIATOR,
        query => query.strip_prefix("initiator=").ok_or("only ?initiator=IQN is known")?,
    };
    let mut parts = path.splitn(3, '/');
    let (Some(portal), Some(target), Some(lun)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("use iscsi://HOST[:PORT]/TARGET/LUN".to_owned());
    };
    let (first, last) = lun.split_once('-').unwrap_or((lun, lun));
    let number = |text: &str| text.parse::<u16>().ok().filter(|&lun| lun <= base::limits::LUN_MAX);
    let luns = number(first).zip(number(last)).filter(|(first, last)| first <= last);
    let (lun, last_lun) = luns.ok_or("the LUN is a number, or FIRST-LAST")?;
    Ok(Unit {
        portal: address(portal, Some(ISCSI_PORT))?,
        target: target.to_owned(),
        lun,
        last_lun,
        initiator: initiator.to_owned(),
    })
}

/// The first address that a name has.
pub fn address(text: &str, port: Option<u16>) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let addresses = match (text.rsplit_once(':'), port) {
        (Some((host, port)), _) if port.parse::<u16>().is_ok() => {
            text.to_socket_addrs().map_err(|error| (host, error))
        }
        (_, Some(port)) => (text, port).to_socket_addrs().map_err(|error| (text, error)),
        _ => return Err("a port is missing".to_owned()),
    };
    let mut addresses = addresses.map_err(|(host, error)| format!("{host}: {error}"))?;
    addresses.next().ok_or_else(|| format!("{text} has no address"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Drives(paths) => f.write_str(&paths.join(",")),
            Target::Iscsi(unit) => {
                write!(f, "iscsi://{}/{}/{}", unit.portal, unit.target, unit.lun)?;
                if unit.last_lun > unit.lun {
                    write!(f, "-{}", unit.last_lun)?;
                }
                if unit.initiator == INITIATOR { Ok(()) } else { write!(f, "?initiator={}", unit.initiator) }
            }
            Target::Echo(address) => write!(f, "echo://{address}"),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Target, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read() {
        let texts = [
            "/dev/sdb",
            "/a,/b",
            "echo://127.0.0.1:7000",
            "iscsi://127.0.0.1:3260/iqn.2026-11.org.example:x/7",
            "iscsi://[::1]:3260/iqn.x:y/0?initiator=iqn.z:w",
            "iscsi://127.0.0.1:3260/t/10-509",
        ];
        for text in texts {
            let target: Target = text.parse().expect(text);
            assert_eq!(target.to_string(), text);
        }
        let Ok(Target::Iscsi(unit)) = "iscsi://127.0.0.1/t/1".parse() else { panic!("a unit") };
        assert_eq!(unit.portal.port(), ISCSI_PORT);
        let Ok(Target::Iscsi(units)) = "iscsi://127.0.0.1/t/7-9".parse() else { panic!("units") };
        assert_eq!([0, 1, 2, 3, 301].map(|number| units.lun_of(number)), [7, 8, 9, 7, 8]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "",
            "/a,,/b",
            "http://x",
            "iscsi://127.0.0.1/t",
            "iscsi://127.0.0.1/t/x",
            "iscsi://127.0.0.1/t/9-7",
            "echo://127.0.0.1",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
