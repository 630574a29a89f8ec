//! Names that people and initiators use, valid by construction.

use std::fmt;
use std::str::FromStr;

use base::limits::{ISCSI_NAME_BYTES_MAX, NAME_BYTES_MAX};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text is not a name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NameError {
    #[error("a name may not be empty")]
    Empty,
    #[error("the name has {length} characters, {max} are allowed")]
    TooLong { length: usize, max: usize },
    #[error("the name \"{name}\" contains {character:?}; letters, digits, '.', '_' and '-' are allowed")]
    BadCharacter { name: String, character: char },
    #[error("the name \"{name}\" must begin with a letter or a digit")]
    BadStart { name: String },
    #[error("\"{name}\" is not an iSCSI name: {reason}")]
    BadInitiator { name: String, reason: &'static str },
}

/// The name of a volume, host, pool or array: 1 to 63 of `A-Za-z0-9._-`, the first a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong { length: text.chars().count(), max: NAME_BYTES_MAX });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(character) = text.chars().find(|&c| !allowed(c)) {
            return Err(NameError::BadCharacter { name: text.to_owned(), character });
        }
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(NameError::BadStart { name: text.to_owned() });
        }
        Ok(Name(text.to_owned()))
    }
}

/// An initiator's iSCSI name (RFC 7143 §4.2.7) in `iqn.`, `eui.` or `naa.` format, in lower case.
///
/// Names are compared without regard to case (§4.2.7.2 maps upper case to lower). Of what the section allows,
/// only ASCII is accepted; beyond it, `_` is, because initiators in the field put host names there unchanged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InitiatorName(String);

impl InitiatorName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InitiatorName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<InitiatorName, NameError> {
        if text.len() > ISCSI_NAME_BYTES_MAX {
            return Err(NameError::TooLong { length: text.chars().count(), max: ISCSI_NAME_BYTES_MAX });
        }
        let name = text.to_ascii_lowercase();
        let verdict = match name.get(..4) {
            Some("iqn.") => check_iqn(&name[4..]),
            Some("eui.") => {
                check_hexadecimal(&name[4..], &[16], "\"eui.\" is followed by 16 hexadecimal digits")
            }
            Some("naa.") => check_hexadecimal(
                &name[4..],
                &[16, 32],
                "\"naa.\" is followed by 16 or 32 hexadecimal digits",
            ),
            _ => {
                Err("it must begin with \"iqn.\", \"eui.\" or \"naa.\", as in iqn.1993-08.org.debian:01:abc")
            }
        };
        match verdict {
            Ok(()) => Ok(InitiatorName(name)),
            Err(reason) => Err(NameError::BadInitiator { name: text.to_owned(), reason }),
        }
    }
}

/// `yyyy-mm.reversed.domain[:anything]` (RFC 7143 §4.2.7.4).
fn check_iqn(rest: &str) -> Result<(), &'static str> {
    let bytes = rest.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let dated = (0..4).all(digit)
        && bytes.get(4) == Some(&b'-')
        && digit(5)
        && digit(6)
        && bytes.get(7) == Some(&b'.');
    if !dated {
        return Err("\"iqn.\" is followed by a date and a dot, as in iqn.1993-08.org.debian:01:abc");
    }
    if !matches!(&bytes[5..7], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2']) {
        return Err("the month must be 01 to 12");
    }
    let naming = &rest[8..];
    if !naming
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | ':' | '_'))
    {
        return Err("letters, digits, '-', '.', ':' and '_' are allowed");
    }
    let authority = naming.split(':').next().unwrap_or("");
    if authority.is_empty() || authority.split('.').any(str::is_empty) {
        return Err("the date is followed by a reversed domain name, as in iqn.1993-08.org.debian:01:abc");
    }
    Ok(())
}

fn check_hexadecimal(digits: &str, lengths: &[usize], reason: &'static str) -> Result<(), &'static str> {
    let good = lengths.contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if good { Ok(()) } else { Err(reason) }
}

macro_rules! text_newtype {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}
text_newtype!(Name);
text_newtype!(InitiatorName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_things() {
        for good in ["a", "vm-01", "0", "A.b_c-9", &"x".repeat(63)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        let message = |text: &str| text.parse::<Name>().unwrap_err().to_string();
        assert_eq!(message(""), "a name may not be empty");
        assert_eq!(message(&"x".repeat(64)), "the name has 64 characters, 63 are allowed");
        assert!(message("a b").contains("contains ' '"));
        assert!(message("a/b").contains("contains '/'"));
        assert!(message("größe").contains("contains 'ö'"));
        for start in [".", "..", "-a", "_"] {
            assert!(message(start).contains("must begin with a letter or a digit"), "{start}");
        }
    }

    #[test]
    fn initiator_names() {
        for good in [
            "iqn.1993-08.org.debian:01:abc",
            "iqn.1991-05.com.microsoft:host.example.com",
            "iqn.2001-04.com.example",
            "iqn.1998-01.com.vmware:esx_1-4f2a",
            "eui.02004567a425678d",
            "naa.52004567ba64678d",
            "naa.62004567ba64678d0123456789abcdef",
        ] {
            assert_eq!(good.parse::<InitiatorName>().unwrap().as_str(), good);
        }
        let upper: InitiatorName = "IQN.1993-08.ORG.Debian:01:ABC".parse().unwrap();
        assert_eq!(upper.as_str(), "iqn.1993-08.org.debian:01:abc");
        for bad in [
            "",
            "iqn",
            "iqn.",
            "iqn.1993-08",
            "iqn.1993-08.",
            "iqn.1993-13.org.debian",
            "iqn.1993-00.org.debian",
            "iqn.93-08.org.debian",
            "iqn.1993-08.:abc",
            "iqn.1993-08.org..debian:a",
            "iqn.1993-08.org.debian:a b",
            "iqn.1993-08.org.debian:ä",
            "eui.02004567a425678",
            "eui.02004567a425678g",
            "naa.123",
            "pve1",
            "äqn.1993",
        ] {
            assert!(bad.parse::<InitiatorName>().is_err(), "{bad:?} was accepted");
        }
        let long = format!("iqn.1993-08.org.debian:{}", "a".repeat(201));
        assert!(matches!(long.parse::<InitiatorName>(), Err(NameError::TooLong { length: 224, max: 223 })));
    }
}
