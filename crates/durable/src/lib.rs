//! Files of a head that survive a crash at any moment.
//!
//! What always holds: a file is replaced as a whole (written beside, made durable, renamed, the directory made durable), so a crash leaves
//! the old one or the new one; its mode is 600 from its first byte.

#![allow(clippy::disallowed_methods, reason = "outside of shards")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Why a file was not replaced, and where that was: at the file, beside it, or at its directory.
#[derive(Debug)]
pub struct NotReplaced {
    pub path: PathBuf,
    pub error: io::Error,
}

impl From<NotReplaced> for io::Error {
    fn from(NotReplaced { error, .. }: NotReplaced) -> io::Error {
        error
    }
}

/// Replaces a file. Durable when this returns.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), NotReplaced> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |error| NotReplaced { path, error }
    };
    let mut name = path.file_name().expect("a file has a name").to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    // one that a crash has left might have another mode
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&beside)(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&beside).map_err(failed(&beside))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed(&beside))?;
    fs::rename(&beside, path).map_err(failed(path))?;
    let directory = directory_of(path);
    sync_directory(directory).map_err(failed(directory))
}

/// Makes the names in a directory durable.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

pub fn directory_of(path: &Path) -> &Path {
    path.parent().expect("a file is in a directory")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        replace(&path, b"a longer first one").unwrap();
        // what a crash has left half-written, open to all
        let beside = directory.path().join("kept.new");
        fs::write(&beside, "ha").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!beside.exists());
        let nowhere = replace(&directory.path().join("no/such"), b"").unwrap_err();
        assert_eq!(nowhere.path, directory.path().join("no/such.new"));
    }
}
