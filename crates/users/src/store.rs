//! The file that holds users and tokens: `users.json` in the head's state directory, for its owner alone.
//!
//! ```text
//!   {"format":"tangelo users","version":1,"sha256":"..."}      the first line
//!   {"users":{...},"tokens":{...}}                             the rest, of which this is the sum
//! ```
//!
//! What always holds: the file is replaced as a whole; what is damaged, or of a later version, is never overwritten.

#![allow(clippy::disallowed_methods, reason = "outside of shards")]

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::list::Users;

const FORMAT: &str = "tangelo users";
const VERSION: u32 = 1;
/// Several times what all users and tokens take.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why users are not known, or not stored.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("{path}: {error}", path = .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{path} is damaged ({why}); put back a copy of it, or move it away to begin without users, and reload",
        path = .path.display()
    )]
    Damaged { path: PathBuf, why: String },
    #[error("{path} is of a later version ({version}) of Tangelo; install that one", path = .path.display())]
    Later { path: PathBuf, version: u32 },
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
    sha256: String,
}

/// Where the file is.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    pub fn new(state_dir: &Path) -> Store {
        Store { path: state_dir.join("users.json") }
    }

    /// Nobody where there is no file.
    pub fn load(&self) -> Result<Users, StoreError> {
        let failed = |error| StoreError::Io { path: self.path.clone(), error };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Users::default()),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        self.parse(&bytes)
    }

    /// Durable when this returns.
    pub fn save(&self, users: &Users) -> Result<(), StoreError> {
        let replaced = durable::replace(&self.path, &emit(users));
        replaced.map_err(|durable::NotReplaced { path, error }| StoreError::Io { path, error })
    }

    fn parse(&self, bytes: &[u8]) -> Result<Users, StoreError> {
        let damaged = |why: String| StoreError::Damaged { path: self.path.clone(), why };
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(damaged("it is too large".to_owned()));
        }
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (head, rest) =
            bytes.split_at(end.ok_or_else(|| damaged("its first line has no end".to_owned()))?);
        let rest = &rest[1..];
        let head: Head =
            serde_json::from_slice(head).map_err(|error| damaged(format!("first line: {error}")))?;
        if head.format != FORMAT {
            return Err(damaged("it holds something else".to_owned()));
        }
        if head.version > VERSION {
            return Err(StoreError::Later { path: self.path.clone(), version: head.version });
        }
        if head.version < VERSION || head.sha256 != sum(rest) {
            return Err(damaged("its sum is wrong".to_owned()));
        }
        let users: Users = serde_json::from_slice(rest).map_err(|error| damaged(error.to_string()))?;
        match users.is_sound() {
            true => Ok(users),
            false => Err(damaged("it holds what nobody can have made".to_owned())),
        }
    }
}

fn emit(users: &Users) -> Vec<u8> {
    let mut rest = serde_json::to_vec_pretty(users).expect("users can be said in JSON");
    rest.push(b'\n');
    let head = Head { format: FORMAT.to_owned(), version: VERSION, sha256: sum(&rest) };
    let mut bytes = serde_json::to_vec(&head).expect("the head can be said in JSON");
    bytes.push(b'\n');
    bytes.extend(rest);
    bytes
}

fn sum(bytes: &[u8]) -> String {
    base::hex::of(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use api::Role;

    use super::*;
    use crate::list::{Token, User};
    use crate::password::PasswordHash;
    use crate::secret::Secret;

    fn somebody() -> Users {
        let mut users = Users::default();
        let password = PasswordHash::of_nobody();
        let alice =
            User { role: Role::Operate, password, expires_ms: Some(7), disabled: true, created_ms: 5 };
        users.add_user("alice", alice).unwrap();
        let secret = Secret::random().hash();
        let token =
            Token { role: Role::Look, secret, expires_ms: None, created_ms: 5, last_used_ms: Some(0) };
        users.add_token("grafana", token).unwrap();
        users
    }

    #[test]
    fn what_was_saved_is_loaded_and_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        assert_eq!(store.load().unwrap(), Users::default());
        let users = somebody();
        store.save(&users).unwrap();
        assert_eq!(store.load().unwrap(), users);
        let mode = std::fs::metadata(&store.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // what a crash has left beside it
        std::fs::write(directory.path().join("users.json.new"), "{").unwrap();
        assert_eq!(store.load().unwrap(), users);
        store.save(&Users::default()).unwrap();
        assert_eq!(store.load().unwrap(), Users::default());
    }

    /// Cut off anywhere, or with any byte changed: it is said, and never taken for something else.
    #[test]
    fn damage_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let whole = emit(&somebody());
        for length in 0..whole.len() {
            let refused = store.parse(&whole[..length]).unwrap_err();
            assert!(matches!(refused, StoreError::Damaged { .. }), "{length}: {refused}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(store.parse(&bytes).is_err(), "{at}");
        }
        std::fs::write(&store.path, &whole[..whole.len() / 2]).unwrap();
        let refused = store.load().unwrap_err().to_string();
        assert!(refused.contains("users.json is damaged") && refused.contains("move it away"), "{refused}");
        std::fs::write(&store.path, vec![b' '; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(store.load().unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn a_later_version_is_refused() {
        let store = Store::new(Path::new("/var/lib/tangelo"));
        let later = br#"{"format":"tangelo users","version":2,"sha256":"","more":[]}
{}"#;
        let refused = store.parse(later).unwrap_err().to_string();
        assert!(refused.contains("later version (2)"), "{refused}");
        let other = br#"{"format":"something else","version":1,"sha256":""}
{}"#;
        assert!(store.parse(other).unwrap_err().to_string().contains("something else"));
    }
}
