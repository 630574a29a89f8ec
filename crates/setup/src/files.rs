//! The files of this crate: small, with secrets in them, for their owner alone.
//!
//! What always holds: a file is replaced as a whole (written beside, made durable, renamed, the directory made durable), so a
//! crash leaves the old one or the new one; its mode is 600 from its first byte; what is read is bounded; a change that depends on
//! what is there is made under a lock, because the door and a command may change a file at the same time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ReadOnly, SetupError};

/// More bytes than any file of this crate has.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// A file whose changes this process alone makes until it is dropped.
pub(crate) type Lock = File;

fn failed(path: &Path) -> impl Fn(io::Error) -> SetupError + '_ {
    |error| SetupError::File { path: path.to_owned(), error }
}

/// The bytes of a file that its owner, and at most its group, may use; `None` if it is not there.
pub(crate) fn load(path: &Path) -> Result<Option<Vec<u8>>, SetupError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path)(error)),
    };
    if file.metadata().map_err(failed(path))?.permissions().mode() & 0o007 != 0 {
        return Err(SetupError::OpenToAll { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed(path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(SetupError::damaged(path, "it is too large"));
    }
    Ok(Some(bytes))
}

/// Replaces a file. Durable when this returns.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), SetupError> {
    let failed = |durable::NotReplaced { path, error }| SetupError::File { path, error };
    durable::replace(path, bytes).map_err(failed)
}

/// Makes a directory for its owner alone, with those above it.
pub(crate) fn make_directory(path: &Path) -> Result<(), SetupError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

/// Removes a directory with all that is in it, if it is there.
pub(crate) fn remove_directory(path: &Path) -> Result<(), SetupError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

/// Removes a file, if it is there. Durable when this returns.
pub(crate) fn remove_file(path: &Path) -> Result<(), SetupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        _ => sync_directory(path),
    }
}

/// Gives a file another name in its directory. Durable when this returns.
pub(crate) fn set_aside(path: &Path, name: &str) -> Result<(), SetupError> {
    fs::rename(path, path.with_file_name(name)).map_err(failed(path))?;
    sync_directory(path)
}

fn sync_directory(path: &Path) -> Result<(), SetupError> {
    let directory = durable::directory_of(path);
    durable::sync_directory(directory).map_err(failed(directory))
}

/// Waits for the lock of a directory's files. It is held for as long as a file takes to be written.
pub(crate) fn lock(directory: &Path) -> Result<Lock, SetupError> {
    let path = directory.join("setup.lock");
    let file = open_lock(&path)?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(&path)(error.into()))?;
    Ok(file)
}

/// Takes a lock that is held for as long as a process runs; `None` if another has it.
pub(crate) fn try_lock(path: &Path) -> Result<Option<Lock>, SetupError> {
    let file = open_lock(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(path)(error.into())),
    }
}

fn open_lock(path: &Path) -> Result<File, SetupError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed(path))
}

/// A value of a file with a version: `None` if the file is not there. The version is looked at first, because a later one may have
/// other fields.
pub(crate) fn load_json<T: DeserializeOwned>(path: PathBuf, known: u32) -> Result<Option<T>, SetupError> {
    let Some(bytes) = load(&path)? else { return Ok(None) };
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| SetupError::damaged(&path, error))?;
    let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if version > u64::from(known) {
        return Err(SetupError::Later(ReadOnly { path, version, known }));
    }
    if version != u64::from(known) {
        return Err(SetupError::damaged(&path, format!("there is no version {version}")));
    }
    serde_json::from_value(value).map(Some).map_err(|error| SetupError::damaged(&path, error))
}

pub(crate) fn save_json<T: Serialize>(path: &Path, value: &T) -> Result<(), SetupError> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("plain values have a JSON form");
    bytes.push(b'\n');
    save(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        assert_eq!(load(&path).unwrap(), None);
        save(&path, b"a longer first one").unwrap();
        // what a crash has left half-written, open to all
        let beside = directory.path().join("secret.new");
        fs::write(&beside, "ha").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(load(&path).unwrap().unwrap(), b"a longer first one");
        save(&path, b"second").unwrap();
        assert_eq!(load(&path).unwrap().unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!beside.exists());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(load(&path), Err(SetupError::OpenToAll { .. })));
    }

    #[test]
    fn one_process_has_a_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = try_lock(&path).unwrap();
        assert!(first.is_some());
        assert!(try_lock(&path).unwrap().is_none());
        drop(first);
        assert!(try_lock(&path).unwrap().is_some());
    }
}
