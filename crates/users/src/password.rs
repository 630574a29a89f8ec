//! Which passwords are taken, and their hashes: argon2id, with its parameters beside the hash, so that later versions may raise them.
//!
//! A hash takes [`MEMORY_KIB`] of memory and tens of milliseconds. Whoever calls [`PasswordHash::new`] or [`PasswordHash::fits`] does so on a thread that may wait,
//! and bounds how many do at once.

use std::fmt;
use std::ops::RangeInclusive;

use api::{CommandError, CommandErrorKind};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};

use crate::secret::{bytes, write_bytes};

/// Bytes of a password.
pub const PASSWORD_BYTES: RangeInclusive<usize> = 10..=256;

/// Memory of a new hash. More than what RFC 9106 and OWASP name as the least (19 MiB, 2 passes).
const MEMORY_KIB: u32 = 32 << 10;
/// Passes over this memory.
const PASSES: u32 = 3;
/// What a hash that is read from a file may ask for.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;

/// Refuses what is no password for this user.
pub fn check_password(password: &str, name: &str) -> Result<(), CommandError> {
    let (min, max) = (PASSWORD_BYTES.start(), PASSWORD_BYTES.end());
    let refuse = |message: &str| {
        let hint = format!("use {min} to {max} characters, such as four or five words");
        Err(CommandError::new(CommandErrorKind::Invalid, message, hint))
    };
    if password.len() < *min {
        return refuse("the password is too short");
    }
    if password.len() > *max {
        return refuse("the password is too long");
    }
    if password.chars().any(char::is_control) {
        return refuse("the password has characters that cannot be typed");
    }
    let first = password.chars().next();
    if password.eq_ignore_ascii_case(name) || password.chars().all(|char| Some(char) == first) {
        return refuse("the password is too easy to guess");
    }
    Ok(())
}

/// A password, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasswordHash {
    memory_kib: u32,
    passes: u32,
    #[serde(deserialize_with = "bytes", serialize_with = "write_bytes")]
    salt: [u8; 16],
    #[serde(deserialize_with = "bytes", serialize_with = "write_bytes")]
    hash: [u8; 32],
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

impl PasswordHash {
    /// Of a new password. Takes long.
    pub fn new(password: &str) -> PasswordHash {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).expect("the system gives random bytes");
        let mut new = PasswordHash { salt, ..PasswordHash::of_nobody() };
        new.hash = new.work_out(password).expect("the parameters of new hashes are valid");
        new
    }

    /// What no password fits: checking one against it takes as long as any other.
    pub fn of_nobody() -> PasswordHash {
        PasswordHash { memory_kib: MEMORY_KIB, passes: PASSES, salt: [0; 16], hash: [0; 32] }
    }

    /// Whether it is the password. Takes long, whatever it is.
    pub fn fits(&self, password: &str) -> bool {
        self.work_out(password).is_some_and(|hash| base::secret::is_same(&hash, &self.hash))
    }

    /// Whether its parameters can be worked with.
    pub(crate) fn is_sound(&self) -> bool {
        self.params().is_some()
    }

    fn params(&self) -> Option<Params> {
        let bounded = self.memory_kib <= MEMORY_KIB_MAX && self.passes <= PASSES_MAX;
        Params::new(self.memory_kib, self.passes, 1, Some(self.hash.len())).ok().filter(|_| bounded)
    }

    fn work_out(&self, password: &str) -> Option<[u8; 32]> {
        let mut hash = [0; 32];
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params()?);
        argon.hash_password_into(password.as_bytes(), &self.salt, &mut hash).ok()?;
        Some(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_hash_alone() {
        let [one, two] = [(); 2].map(|()| PasswordHash::new("correct horse battery"));
        assert_ne!(one.hash, two.hash, "each has a salt of its own");
        assert!(one.fits("correct horse battery") && two.fits("correct horse battery"));
        for wrong in ["", "correct horse batterz", "correct horse battery ", "Correct horse battery"] {
            assert!(!one.fits(wrong), "{wrong}");
        }
        assert!(!PasswordHash::of_nobody().fits(""));
        let kept = serde_json::to_string(&one).unwrap();
        assert!(!kept.contains("horse") && kept.contains("\"memory_kib\":32768"), "{kept}");
        assert_eq!(serde_json::from_str::<PasswordHash>(&kept).unwrap(), one);
    }

    #[test]
    fn parameters_of_a_file_are_bounded() {
        let mut hash = PasswordHash::of_nobody();
        assert!(hash.is_sound());
        hash.memory_kib = u32::MAX;
        assert!(!hash.is_sound() && !hash.fits("whatever it is"));
        hash = PasswordHash { passes: 0, ..PasswordHash::of_nobody() };
        assert!(!hash.is_sound());
        hash = PasswordHash { passes: u32::MAX, ..PasswordHash::of_nobody() };
        assert!(!hash.is_sound());
    }

    #[test]
    fn passwords_that_are_taken() {
        for password in ["correct horse", "ümlaute zählen", &"ab".repeat(128)] {
            check_password(password, "alice").unwrap();
        }
        let long = "x1".repeat(129);
        for (password, why) in [
            ("tiny", "too short"),
            (&long, "too long"),
            ("with\ttabs inside", "cannot be typed"),
            ("Alice.Miller", "too easy"),
            ("aaaaaaaaaaaa", "too easy"),
        ] {
            let refused = check_password(password, "alice.miller").unwrap_err();
            assert!(refused.message.contains(why), "{refused}");
            assert!(!refused.to_string().contains(password), "{refused}");
        }
    }
}
