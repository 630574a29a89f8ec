//! Random secrets of 256 bits: tokens, sessions, CSRF tokens. Nobody guesses one, so a plain SHA-256 is enough to keep, and looking one up
//! by it tells nothing by its time.

use std::fmt;

use base::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest, Sha256};

const BYTES: usize = 32;

/// A secret while it is given out. It has no `Debug` and is never stored.
pub struct Secret([u8; BYTES]);

impl Secret {
    /// A new one, from the system.
    pub fn random() -> Secret {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        Secret(bytes)
    }

    /// What somebody presents: 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Secret> {
        hex::parse(text).map(Secret)
    }

    /// As it is given out.
    pub fn text(&self) -> String {
        hex::of(&self.0)
    }

    pub fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.0).into())
    }
}

/// SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretHash([u8; BYTES]);

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash")
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::of(&self.0))
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SecretHash, D::Error> {
        bytes(deserializer).map(SecretHash)
    }
}

/// For fields of bytes.
pub(crate) fn bytes<'de, const N: usize, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; N], D::Error> {
    let text = String::deserialize(deserializer)?;
    hex::parse(&text).ok_or_else(|| D::Error::custom(format!("not {} hexadecimal digits", 2 * N)))
}

pub(crate) fn write_bytes<const N: usize, S: Serializer>(
    bytes: &[u8; N],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::of(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_out_is_recognised_and_nothing_else() {
        let (secret, other) = (Secret::random(), Secret::random());
        let text = secret.text();
        assert_eq!(text.len(), 64);
        assert_eq!(Secret::parse(&text).unwrap().hash(), secret.hash());
        assert_ne!(secret.hash(), other.hash());
        assert_eq!(Secret::parse(&text.to_uppercase()).unwrap().hash(), secret.hash());
        for wrong in
            ["", &text[1..], &format!("{text}0"), &text.replace(|_| true, "g"), "é".repeat(32).as_str()]
        {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
        let kept = serde_json::to_string(&secret.hash()).unwrap();
        assert!(!kept.contains(&text));
        assert_eq!(serde_json::from_str::<SecretHash>(&kept).unwrap(), secret.hash());
    }
}
