//! Files that hold a secret: a token, a CHAP secret. A file that every user may read or change is refused.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use thiserror::Error;

/// Bytes that such a file has at most.
const FILE_BYTES_MAX: u64 = 8192;

/// Why a file's secret is not used.
#[derive(Debug, Error)]
pub enum SecretFileError {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error(
        "everybody on this machine may read or change it, so it is no secret: `chmod 600` it, or better, make another"
    )]
    Open,
    #[error("it has more than {FILE_BYTES_MAX} bytes, which is no secret")]
    TooLarge,
    #[error("it is not UTF-8 text")]
    NotText,
}

/// The text in a file that its owner, and at most its group, may read.
pub fn read(path: &Path) -> Result<String, SecretFileError> {
    let file = File::open(path).map_err(SecretFileError::Unreadable)?;
    let mode = file.metadata().map_err(SecretFileError::Unreadable)?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(SecretFileError::Open);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(SecretFileError::Unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(SecretFileError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| SecretFileError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_may_read_or_change_is_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        assert!(matches!(read(&path), Err(SecretFileError::Unreadable(_))));
        std::fs::write(&path, "twelve bytes").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&path)
        };
        for mode in [0o644, 0o604, 0o602, 0o666, 0o601] {
            assert!(matches!(with_mode(mode), Err(SecretFileError::Open)), "{mode:o}");
        }
        for mode in [0o600, 0o640, 0o660, 0o400] {
            assert_eq!(with_mode(mode).unwrap(), "twelve bytes", "{mode:o}");
        }
        std::fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read(&path), Err(SecretFileError::NotText)));
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(matches!(read(&path), Err(SecretFileError::TooLarge)));
    }
}
