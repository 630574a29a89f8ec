//! The tokens that a head has issued: `tokens.json` in its state directory.
//!
//! What always holds: the file has no secret of a token, only SHA-256 of it; a token works once, because it is recorded as used
//! before anything else is done for it; what is kept is bounded in number and time. Used and expired ones are kept for a while, so
//! that the refusal can say which it was.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::SetupError;
use crate::files;
use crate::pair_file::PairFile;
use crate::refusal::Refusal;
use crate::token::{Purpose, Token};

/// How long a token is good.
pub const TOKEN_TIME: Duration = Duration::from_secs(3600);

/// How long after its end a token is remembered.
const REMEMBERED_S: u64 = 24 * 3600;

/// Tokens that are remembered at most: the oldest are forgotten first.
const TOKENS_MAX: usize = 64;

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Issued {
    version: u32,
    /// In the order in which they were issued.
    tokens: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// SHA-256 of the secret.
    #[serde(with = "crate::hex::bytes")]
    hash: [u8; 32],
    purpose: Purpose,
    /// Seconds since 1970.
    expires_s: u64,
    used: bool,
}

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("tokens.json")
}

/// The wall clock, in seconds since 1970.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn load(state_dir: &Path) -> Result<Issued, SetupError> {
    let none = Issued { version: VERSION, tokens: Vec::new() };
    Ok(files::load_json(path(state_dir), VERSION)?.unwrap_or(none))
}

/// No token that was issued so far is good any more.
pub(crate) fn forget(state_dir: &Path) -> Result<(), SetupError> {
    files::remove_file(&path(state_dir))
}

/// Makes a token and records it. The caller has the lock of the directory.
pub(crate) fn issue(state_dir: &Path, pair: &PairFile, purpose: Purpose) -> Result<Token, SetupError> {
    let secret = crate::random::<16>();
    add(state_dir, &secret, purpose, now_s())?;
    let authority = crate::tls::fingerprint(&pair.authority.certificate)?;
    Ok(Token { array: pair.array, purpose, door: pair.ports()[0].door(), authority, secret })
}

fn add(state_dir: &Path, secret: &[u8; 16], purpose: Purpose, now_s: u64) -> Result<(), SetupError> {
    let mut issued = load(state_dir)?;
    issued.tokens.retain(|entry| now_s < entry.expires_s.saturating_add(REMEMBERED_S));
    let excess = (issued.tokens.len() + 1).saturating_sub(TOKENS_MAX);
    issued.tokens.drain(..excess);
    let expires_s = now_s + TOKEN_TIME.as_secs();
    issued.tokens.push(Entry { hash: Sha256::digest(secret).into(), purpose, expires_s, used: false });
    files::save_json(&path(state_dir), &issued)
}

/// Uses up a token. Durable when this returns.
pub(crate) fn spend(
    state_dir: &Path,
    secret: &[u8; 16],
    purpose: Purpose,
) -> Result<Result<(), Refusal>, SetupError> {
    let _lock = files::lock(state_dir)?;
    spend_at(state_dir, secret, purpose, now_s())
}

fn spend_at(
    state_dir: &Path,
    secret: &[u8; 16],
    purpose: Purpose,
    now_s: u64,
) -> Result<Result<(), Refusal>, SetupError> {
    let mut issued = load(state_dir)?;
    let hash: [u8; 32] = Sha256::digest(secret).into();
    let Some(entry) = issued.tokens.iter_mut().find(|entry| entry.hash == hash) else {
        return Ok(Err(Refusal::Unknown { purpose }));
    };
    if entry.used {
        return Ok(Err(Refusal::Used { purpose }));
    }
    // a clock that was put back makes no token good for longer than it was made for
    let is_good = now_s < entry.expires_s && entry.expires_s <= now_s + TOKEN_TIME.as_secs();
    if !is_good {
        return Ok(Err(Refusal::Expired { purpose }));
    }
    if entry.purpose != purpose {
        return Ok(Err(Refusal::OtherPurpose { purpose: entry.purpose }));
    }
    entry.used = true;
    files::save_json(&path(state_dir), &issued)?;
    Ok(Ok(()))
}

/// Another token of a head that is part of a pair. Earlier ones stay good until they end.
pub fn new_token(state_dir: &Path, purpose: Purpose) -> Result<Token, SetupError> {
    let pair =
        PairFile::load(state_dir)?.ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
    let _lock = files::lock(state_dir)?;
    issue(state_dir, &pair, purpose)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Purpose = Purpose::Head;

    #[test]
    fn a_token_works_once_and_for_an_hour() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let spend = |secret: u8, purpose, now_s| spend_at(at, &[secret; 16], purpose, now_s).unwrap();
        assert_eq!(spend(1, HEAD, 100), Err(Refusal::Unknown { purpose: HEAD }), "there is no file");
        for secret in [1, 2, 3] {
            add(at, &[secret; 16], HEAD, 100).unwrap();
        }
        assert_eq!(spend(9, HEAD, 100), Err(Refusal::Unknown { purpose: HEAD }));
        assert_eq!(spend(1, Purpose::Witness, 100), Err(Refusal::OtherPurpose { purpose: HEAD }));
        assert_eq!(spend(1, HEAD, 3699), Ok(()));
        assert_eq!(spend(1, HEAD, 3699), Err(Refusal::Used { purpose: HEAD }));
        assert_eq!(spend(1, HEAD, 9999), Err(Refusal::Used { purpose: HEAD }));
        assert_eq!(spend(2, HEAD, 3700), Err(Refusal::Expired { purpose: HEAD }));
        assert_eq!(spend(2, HEAD, 99), Err(Refusal::Expired { purpose: HEAD }), "the clock was put back");
        assert_eq!(spend(3, HEAD, 100), Ok(()));
    }

    #[test]
    fn the_file_has_no_secret_and_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        for secret in 0..100 {
            add(directory.path(), &[secret; 16], HEAD, 100).unwrap();
        }
        let issued = load(directory.path()).unwrap();
        assert_eq!(issued.tokens.len(), TOKENS_MAX);
        assert_eq!(issued.tokens[0].hash, <[u8; 32]>::from(Sha256::digest([36; 16])));
        let text = std::fs::read_to_string(path(directory.path())).unwrap();
        assert!(!text.contains(&"63".repeat(16)), "{text}");
        // a day after their end they are forgotten
        add(directory.path(), &[200; 16], HEAD, 100 + 3600 + REMEMBERED_S).unwrap();
        assert_eq!(load(directory.path()).unwrap().tokens.len(), 1);
    }

    #[test]
    fn a_head_without_a_pair_has_no_tokens() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(new_token(directory.path(), HEAD), Err(SetupError::NoPair { .. })));
    }
}
