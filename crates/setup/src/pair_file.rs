//! What a head knows of its pair, at each start and without asking anybody: `pair.json` in its state directory.
//!
//! What always holds: if the file is there, the head is one of a pair; it holds secrets, so its mode is 600 and `Debug` does not
//! show them; a file of a later version is refused and left as it is. It must not hold what belongs to the server alone (drives,
//! portals, cores): that is in the configuration.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{ArrayId, HeadId};
use pair::{LinkKey, Portal, Term, Timing};
use register::{Authority, Identity};
use serde::{Deserialize, Serialize};

use crate::error::SetupError;
use crate::files;
use crate::ports::{ADDRESSES_MAX, Ports};

/// The version that this program reads and writes.
pub const PAIR_FILE_VERSION: u32 = 1;

/// More members of etcd than an array has.
pub(crate) const MEMBERS_MAX: usize = 8;

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    pub certificate: String,
    pub key: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// The content of `pair.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairFile {
    /// [`PAIR_FILE_VERSION`].
    pub version: u32,
    #[serde(with = "crate::hex::id")]
    pub array: ArrayId,
    /// This head.
    #[serde(with = "crate::hex::id")]
    pub head: HeadId,
    #[serde(with = "crate::hex::id")]
    pub partner: HeadId,
    /// 0 or 1: which of the two heads of the pair this one is. A head that takes the place of another one has the number of that one. The
    /// portal groups of number 1 are behind those of number 0, so hosts see different target ports.
    pub seat: u8,
    /// Where this head listens for the other one: one address for each network. The first is that of the door and of etcd's clients, too.
    pub listen: Vec<SocketAddr>,
    /// Where the other head listens; nothing until it has joined.
    pub partner_listen: Vec<SocketAddr>,
    /// At which addresses hosts reach the other head, as it has said last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partner_portals: Vec<Portal>,
    #[serde(with = "crate::hex::link_key")]
    pub link_key: LinkKey,
    /// The array's certificate authority.
    pub authority: Keys,
    /// This head's own certificate, signed by the authority.
    pub own: Keys,
    /// `host:port` of the clients' side of each member of etcd that votes. This head's own one is first.
    pub members: Vec<String>,
    /// Paths of drives that get a twin when the array is started next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convert: Vec<String>,
    /// Paths of drives that both heads are to see when the array is started next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<String>,
    /// After how many milliseconds of silence a partner takes over. The same on both heads: the lease of one ends before the grace time of the
    /// other.
    #[serde(default = "takeover_ms", skip_serializing_if = "is_takeover_ms")]
    pub takeover_ms: u32,
    /// The term that the register of a new pair begins with: later than all that the array's pools have seen.
    #[serde(default = "first_term", skip_serializing_if = "is_first_term")]
    pub first_term: Term,
    /// The register does not name the other head any more. At its next start this head is alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forgotten: bool,
}

pub(crate) fn takeover_ms() -> u32 {
    pair::TAKEOVER_MS_DEFAULT
}

pub(crate) fn is_takeover_ms(takeover_ms: &u32) -> bool {
    *takeover_ms == pair::TAKEOVER_MS_DEFAULT
}

fn first_term() -> Term {
    Term(1)
}

fn is_first_term(term: &Term) -> bool {
    *term == first_term()
}

impl PairFile {
    pub fn path(state_dir: &Path) -> PathBuf {
        state_dir.join("pair.json")
    }

    /// What is in the head's state directory. `None` if the head is no part of a pair.
    pub fn load(state_dir: &Path) -> Result<Option<PairFile>, SetupError> {
        let path = PairFile::path(state_dir);
        let file: Option<PairFile> = files::load_json(path.clone(), PAIR_FILE_VERSION)?;
        if let Some(why) = file.as_ref().and_then(PairFile::fault) {
            return Err(SetupError::damaged(&path, why));
        }
        Ok(file)
    }

    /// Replaces the file. Durable when this returns.
    pub fn save(&self, state_dir: &Path) -> Result<(), SetupError> {
        assert_eq!(self.fault(), None, "what is saved can be loaded");
        files::save_json(&PairFile::path(state_dir), self)
    }

    /// Changes the file that is there, while no other process or task does. Gives what it holds then.
    /// `change` says whether it has changed anything.
    pub fn update(
        state_dir: &Path,
        change: impl FnOnce(&mut PairFile) -> bool,
    ) -> Result<PairFile, SetupError> {
        let _lock = files::lock(state_dir)?;
        let mut file = PairFile::load(state_dir)?
            .ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
        if change(&mut file) {
            file.save(state_dir)?;
        }
        Ok(file)
    }

    /// Why this cannot be the file of a head.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let addresses = |list: &[SocketAddr]| {
            list.len() <= ADDRESSES_MAX && list.iter().all(|address| Ports::of_link(*address).is_ok())
        };
        if self.head == self.partner || self.head == HeadId(0) || self.partner == HeadId(0) {
            return Some("head and partner must be two heads");
        }
        if self.seat > 1 {
            return Some("a pair has two heads, number 0 and number 1");
        }
        if self.listen.is_empty() || !addresses(&self.listen) || !addresses(&self.partner_listen) {
            return Some("the addresses to listen on cannot be used");
        }
        if Timing::for_takeover(self.takeover_ms).is_none() {
            return Some("the time of a takeover is too short or too long");
        }
        if self.members.is_empty() || self.members.len() > MEMBERS_MAX {
            return Some("the number of members of etcd is wrong");
        }
        None
    }

    /// Where this head listens.
    pub fn ports(&self) -> Vec<Ports> {
        let ports = |link: &SocketAddr| Ports::of_link(*link).expect("it was checked when it was loaded");
        self.listen.iter().map(ports).collect()
    }

    /// For the register's client, and for TLS with other members of the array.
    pub fn identity(&self) -> Identity {
        Identity {
            authority: self.authority.certificate.clone(),
            certificate: self.own.certificate.clone(),
            key: self.own.key.clone(),
        }
    }

    /// For certificates of joiners.
    pub fn authority(&self) -> Authority {
        Authority {
            array: self.array.to_string(),
            certificate: self.authority.certificate.clone(),
            key: self.authority.key.clone(),
        }
    }

    /// The times of this pair.
    pub fn timing(&self) -> Timing {
        Timing::for_takeover(self.takeover_ms).expect("it was checked when it was loaded")
    }

    /// A client of the register.
    pub fn register(&self) -> Result<register::Client, SetupError> {
        let client = register::Client::new(&self.array.to_string(), self.members.clone(), &self.identity())?;
        Ok(client.with_patience(Duration::from_millis(self.takeover_ms.into())))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    pub(crate) fn example() -> PairFile {
        let keys = |of: &str| Keys { certificate: format!("{of} certificate"), key: format!("{of} key") };
        PairFile {
            version: PAIR_FILE_VERSION,
            array: ArrayId(5),
            head: HeadId(6),
            partner: HeadId(7),
            seat: 0,
            partner_portals: Vec::new(),
            listen: vec!["192.0.2.1:3261".parse().unwrap()],
            partner_listen: Vec::new(),
            link_key: LinkKey([0xab; 32]),
            authority: keys("authority's"),
            own: keys("own"),
            members: vec!["192.0.2.1:3263".to_owned()],
            convert: Vec::new(),
            share: Vec::new(),
            takeover_ms: takeover_ms(),
            first_term: Term(1),
            is_forgotten: false,
        }
    }

    fn write(directory: &Path, text: &str) {
        files::save(&PairFile::path(directory), text.as_bytes()).unwrap();
    }

    #[test]
    fn what_is_saved_is_loaded_and_is_a_secret() {
        let directory = tempfile::tempdir().unwrap();
        assert!(PairFile::load(directory.path()).unwrap().is_none());
        let file = example();
        file.save(directory.path()).unwrap();
        let path = PairFile::path(directory.path());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let loaded = PairFile::load(directory.path()).unwrap().unwrap();
        assert_eq!(serde_json::to_value(&loaded).unwrap(), serde_json::to_value(&file).unwrap());
        let shown = format!("{loaded:?}");
        assert!(!shown.contains("abab") && !shown.contains("171") && !shown.contains(" key\""), "{shown}");
        assert!(std::fs::read_to_string(&path).unwrap().contains(&"ab".repeat(32)));
    }

    #[test]
    fn a_later_version_is_refused_whatever_its_fields() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), r#"{"version":2,"heads":[]}"#);
        let refused = PairFile::load(directory.path()).unwrap_err();
        assert!(matches!(refused, SetupError::Later(_)), "{refused}");
        assert!(refused.to_string().contains("version 2") && refused.to_string().contains("update"));
    }

    #[test]
    fn what_no_head_writes_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&example()).unwrap();
        let without = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            write(directory.path(), &text.replace(from, to));
            let refused = PairFile::load(directory.path()).unwrap_err();
            assert!(matches!(refused, SetupError::Damaged { .. }), "{refused}");
        };
        without("\"members\"", "\"more\":1,\"members\"");
        without("\"version\":1", "\"version\":0");
        without("\"link_key\":\"ab", "\"link_key\":\"");
        without("192.0.2.1:3261", "0.0.0.0:3261");
        without("0007\"", "0006\"");
        without("[\"192.0.2.1:3263\"]", "[]");
        write(directory.path(), "{");
        assert!(matches!(PairFile::load(directory.path()), Err(SetupError::Damaged { .. })));
    }

    #[test]
    fn an_update_saves_what_has_changed_only() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(PairFile::update(directory.path(), |_| true), Err(SetupError::NoPair { .. })));
        example().save(directory.path()).unwrap();
        let add = |file: &mut PairFile| {
            file.members.push("192.0.2.2:3263".to_owned());
            true
        };
        assert_eq!(PairFile::update(directory.path(), add).unwrap().members.len(), 2);
        assert_eq!(PairFile::load(directory.path()).unwrap().unwrap().members.len(), 2);
    }
}
