//! What users and tokens may be called: what can stand in a URL, in a file and in the log, and is not mistaken.

use api::{CommandError, CommandErrorKind};

/// Bytes of a name.
pub(crate) const NAME_BYTES_MAX: usize = 32;

/// Refuses what is no name for a user or a token.
pub fn check_name(kind: &str, name: &str) -> Result<(), CommandError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'@');
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits) {
        return Ok(());
    }
    let message = format!("this is no name for a {kind}");
    let hint = format!(
        "use 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, \"-\", \".\", \"_\" and \"@\"; begin with a letter or digit"
    );
    Err(CommandError::new(CommandErrorKind::Invalid, message, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["a", "alice", "Alice.B", "7", "ops@example.com", "grafana-1", &"x".repeat(32)] {
            check_name("user", name).unwrap();
        }
        for name in ["", ".", "-x", "a b", "ä", "a/b", "a\n", "<b>", "a\"", &"x".repeat(33)] {
            check_name("user", name).unwrap_err();
        }
    }
}
