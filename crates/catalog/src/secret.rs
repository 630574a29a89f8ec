//! CHAP credentials (RFC 7143 §12.1.3). Neither `Debug` output nor an error shows a secret.

use std::fmt;
use std::str::FromStr;

use base::limits::{CHAP_SECRET_BYTES_MAX, CHAP_SECRET_BYTES_MIN, CHAP_USER_BYTES_MAX};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;

/// A CHAP secret of 12 to 255 bytes without control characters: RFC 7143 §9.2.1 asks for 96 bits at least.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for computing a response.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Secret, CatalogError> {
        if !(CHAP_SECRET_BYTES_MIN..=CHAP_SECRET_BYTES_MAX).contains(&text.len()) {
            return Err(CatalogError::SecretLength { length_bytes: text.len() });
        }
        if text.chars().any(char::is_control) {
            return Err(CatalogError::SecretCharacters);
        }
        Ok(Secret(text.to_owned()))
    }
}

impl TryFrom<String> for Secret {
    type Error = CatalogError;
    fn try_from(text: String) -> Result<Secret, CatalogError> {
        text.parse()
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> String {
        secret.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A CHAP user name and secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chap {
    /// 1 to 255 bytes without control characters.
    pub user: String,
    pub secret: Secret,
}

impl Chap {
    pub fn new(user: &str, secret: Secret) -> Result<Chap, CatalogError> {
        let chap = Chap { user: user.to_owned(), secret };
        chap.check()?;
        Ok(chap)
    }

    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        let good = !self.user.is_empty()
            && self.user.len() <= CHAP_USER_BYTES_MAX
            && !self.user.chars().any(char::is_control);
        if good { Ok(()) } else { Err(CatalogError::ChapUser) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_bounds_and_are_never_printed() {
        assert!("elevenbytes".parse::<Secret>().is_err());
        assert!("x".repeat(256).parse::<Secret>().is_err());
        assert!("twelve\nbytes".parse::<Secret>().is_err());
        let chap = Chap::new("user", "twelve-bytes".parse().unwrap()).unwrap();
        assert_eq!(chap.secret.expose(), "twelve-bytes");
        assert!(!format!("{chap:?}").contains("twelve"));
        assert!(Chap::new("", chap.secret.clone()).is_err());
        assert!(Chap::new(&"u".repeat(256), chap.secret.clone()).is_err());
        assert!(Chap::new("a\tb", chap.secret).is_err());
    }
}
