//! What an administrator carries from a head to the server that joins: where the door is, whom to trust there, and a secret that is
//! good for one join.
//!
//! ```text
//!   0        1         2        18               50        66      68            72 or 84    +4
//!   ├ version┼ purpose ┼ array ─┼ SHA-256 of ────┼ random ─┼ port ─┼ address ────┼ check ─────┤   base64url without padding
//!   │ 1      │ 1, 2    │        │ the authority  │ bytes   │       │ 4 or 16     │
//! ```
//!
//! What always holds: a token that was copied with a mistake is noticed by its check; `Debug` does not show the random bytes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use base::ArrayId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 68;
const CHECK_BYTES: usize = 4;

/// Longest text of a token, in bytes.
const TEXT_BYTES_MAX: usize = 256;

const _: () = assert!(FIXED_BYTES + 16 + CHECK_BYTES < TEXT_BYTES_MAX / 4 * 3);

/// What a token is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The other head of the pair: it gets the keys of the array.
    Head,
    /// The third machine: it gets a certificate of its own and nothing else.
    Witness,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::Head => "head",
            Purpose::Witness => "witness",
        })
    }
}

/// Why a text is no token. The secret is not in the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum TokenError {
    #[error("this is no token, or a part of it is missing; copy it again, as a whole")]
    Damaged,
    #[error("this token was made by a later version of Tangelo; update Tangelo on this server")]
    Later,
}

/// A token, which its text is made of and read from.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub array: ArrayId,
    pub purpose: Purpose,
    /// The door of the head that has issued it.
    pub door: SocketAddr,
    /// SHA-256 of the certificate (DER) of the array's authority.
    pub(crate) authority: [u8; 32],
    pub(crate) secret: [u8; 16],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { array, purpose, door, .. } = self;
        write!(f, "Token({purpose} of {array} at {door})")
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let purpose = match self.purpose {
            Purpose::Head => 1,
            Purpose::Witness => 2,
        };
        let mut bytes = vec![VERSION, purpose];
        bytes.extend(self.array.0.to_be_bytes());
        bytes.extend(self.authority);
        bytes.extend(self.secret);
        bytes.extend(self.door.port().to_be_bytes());
        match self.door.ip() {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        bytes.extend(check(&bytes));
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let hash = Sha256::digest(bytes);
    std::array::from_fn(|at| hash[at])
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TokenError::Damaged);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| TokenError::Damaged)?;
        let (content, stored) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(TokenError::Damaged)?;
        if *stored != check(content) {
            return Err(TokenError::Damaged);
        }
        // it is whole: so another version is a later one
        match content.first() {
            Some(&VERSION) => parse(content).ok_or(TokenError::Damaged),
            _ => Err(TokenError::Later),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Token> {
    let mut rest = bytes;
    let [_version, purpose] = take(&mut rest)?;
    let purpose = match purpose {
        1 => Purpose::Head,
        2 => Purpose::Witness,
        _ => return None,
    };
    let array = ArrayId(u128::from_be_bytes(take(&mut rest)?));
    let (authority, secret) = (take(&mut rest)?, take(&mut rest)?);
    let port = u16::from_be_bytes(take(&mut rest)?);
    let address: IpAddr = match rest.len() {
        4 => take::<4>(&mut rest)?.into(),
        16 => take::<16>(&mut rest)?.into(),
        _ => return None,
    };
    Some(Token { array, purpose, door: SocketAddr::new(address, port), authority, secret })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example(door: &str, purpose: Purpose) -> Token {
        Token {
            array: ArrayId(0xa1),
            purpose,
            door: door.parse().unwrap(),
            authority: [0xcc; 32],
            secret: [0xdd; 16],
        }
    }

    #[test]
    fn a_token_is_read_as_it_was_written() {
        for door in ["192.0.2.1:3262", "[2001:db8::1]:65533"] {
            for purpose in [Purpose::Head, Purpose::Witness] {
                let token = example(door, purpose);
                let text = token.to_string();
                assert!(text.len() < TEXT_BYTES_MAX && !text.contains(['=', '+', '/']), "{text}");
                assert_eq!(text.parse(), Ok(token.clone()));
                assert_eq!(format!(" {text}\n").parse(), Ok(token.clone()));
                assert!(!format!("{token:?}").contains("dd"), "{token:?}");
            }
        }
    }

    #[test]
    fn a_token_with_a_mistake_is_noticed() {
        let text = example("192.0.2.1:3262", Purpose::Head).to_string();
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert_eq!(changed.parse::<Token>(), Err(TokenError::Damaged), "at {at}");
            assert_eq!(text[..at].parse::<Token>(), Err(TokenError::Damaged), "the first {at}");
        }
        assert_eq!("x".repeat(10_000).parse::<Token>(), Err(TokenError::Damaged));
    }

    #[test]
    fn a_token_of_a_later_version_is_called_that() {
        let mut bytes = vec![2, 1, 9];
        bytes.extend(check(&bytes));
        assert_eq!(URL_SAFE_NO_PAD.encode(bytes).parse::<Token>(), Err(TokenError::Later));
    }
}
