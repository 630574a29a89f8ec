//! Names that people give, valid by construction.

use std::str::FromStr;

use base::limits::NAME_BYTES_MAX;
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
    #[error("\"{name}\" is not {what}: {reason}")]
    BadInitiator { name: String, what: &'static str, reason: &'static str },
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

/// What a type needs that is a text, valid by construction: JSON, and words for people.
macro_rules! text_type {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = $crate::name::NameError;
            fn try_from(text: String) -> Result<Self, $crate::name::NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }
    };
}
pub(crate) use text_type;
text_type!(Name);

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
}
