//! The head's state directory: the catalog as long as there is no pool to hold it, the drives that pools were made of,
//! and the lock that keeps a second daemon out.
//!
//! A file is replaced as a whole: written beside, made durable, renamed, the directory made durable. A crash at any
//! point leaves the old one or the new one. The catalog holds CHAP secrets, so only the owner may read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::HeadId;
use base::limits::{CATALOG_BYTES_MAX, CONFIGURED_DRIVES_MAX};
use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// What went wrong with the state directory.
#[derive(Debug, Error)]
pub enum StateError {
    #[error("{path}: {error}{}", advice(.error))]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} is in use by another tangelo; stop that one first, or give this one another state_dir")]
    Locked { path: PathBuf },
    #[error(
        "{path} has more than {CATALOG_BYTES_MAX} bytes and is no catalog; move it away to start without it"
    )]
    TooLarge { path: PathBuf },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; run as root, or name another state_dir in the head's file (--config)"
        }
        io::ErrorKind::StorageFull => "; make room there",
        _ => "",
    }
}

/// An opened and locked state directory.
#[derive(Debug)]
pub struct StateDirectory {
    directory: PathBuf,
    /// Locked until this is dropped.
    _lock: File,
}

impl StateDirectory {
    /// Opens the directory, making it where it is missing, and keeps every other daemon out of it.
    pub fn open(directory: &Path) -> Result<StateDirectory, StateError> {
        let failed = |path: &Path, error| StateError::Io { path: path.to_owned(), error };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|e| failed(directory, e))?;
        let path = directory.join("lock");
        let lock = lock_file(&path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => StateError::Locked { path: directory.to_owned() },
            _ => failed(&path, error),
        })?;
        Ok(StateDirectory { directory: directory.to_owned(), _lock: lock })
    }

    /// The catalog's bytes as last saved; none if none was.
    pub fn load_catalog(&self) -> Result<Option<Vec<u8>>, StateError> {
        self.load("catalog.json")
    }

    /// Replaces the saved catalog. Durable when this returns.
    pub fn save_catalog(&self, bytes: &[u8]) -> Result<(), StateError> {
        assert!(bytes.len() <= CATALOG_BYTES_MAX, "a catalog is bounded");
        self.save("catalog.json", bytes)
    }

    /// Paths of the drives that pools were made of on this head, so that they are looked at also where the
    /// configuration does not name them.
    pub fn load_drives(&self) -> Result<Vec<String>, StateError> {
        let bytes = self.load("drives")?.unwrap_or_default();
        let lines = bytes.split(|&b| b == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let paths = lines.filter(|line| line.starts_with('/')).map(str::to_owned);
        Ok(paths.take(CONFIGURED_DRIVES_MAX).collect())
    }

    /// Adds to those paths; the ones that lead nowhere any more are dropped. Durable when this returns.
    pub fn remember_drives(&self, paths: &[String]) -> Result<(), StateError> {
        let mut known = self.load_drives()?;
        known.retain(|path| Path::new(path).exists() && !paths.contains(path));
        known.extend(paths.iter().filter(|path| !path.contains('\n')).cloned());
        let newest = known.len().saturating_sub(CONFIGURED_DRIVES_MAX);
        let text: String = known[newest..].iter().map(|path| format!("{path}\n")).collect();
        self.save("drives", text.as_bytes())
    }

    /// The id of the head that has this state directory. A daemon may have it open meanwhile.
    pub fn head_of(directory: &Path) -> Result<HeadId, StateError> {
        let known = load(&directory.join("head"))?.as_deref().and_then(parse_head);
        match known {
            Some(id) => Ok(id),
            None => StateDirectory::open(directory)?.head(),
        }
    }

    /// The id of this head, made when it starts for the first time.
    pub fn head(&self) -> Result<HeadId, StateError> {
        if let Some(id) = self.load("head")?.as_deref().and_then(parse_head) {
            return Ok(id);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        let id = HeadId(u128::from_be_bytes(bytes));
        self.save("head", format!("{id}\n").as_bytes())?;
        Ok(id)
    }

    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        load(&self.directory.join(name))
    }

    fn save(&self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        let replaced = durable::replace(&self.directory.join(name), bytes);
        replaced.map_err(|durable::NotReplaced { path, error }| StateError::Io { path, error })
    }

    /// The saved catalog becomes `catalog.earlier.json`, which nothing reads. Durable when this returns.
    pub fn set_catalog_aside(&self) -> Result<(), StateError> {
        let path = self.catalog_path();
        let failed = |error| StateError::Io { path: path.clone(), error };
        match fs::rename(&path, self.directory.join("catalog.earlier.json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(failed)?,
        }
        durable::sync_directory(&self.directory).map_err(failed)
    }

    /// The catalog that was saved in a state directory. A daemon may have it open meanwhile.
    pub fn catalog_of(directory: &Path) -> Result<Option<Vec<u8>>, StateError> {
        load(&directory.join("catalog.json"))
    }

    pub fn catalog_path(&self) -> PathBuf {
        self.directory.join("catalog.json")
    }
}

fn load(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    let failed = |error| StateError::Io { path: path.to_owned(), error };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(CATALOG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > CATALOG_BYTES_MAX {
        return Err(StateError::TooLarge { path: path.to_owned() });
    }
    Ok(Some(bytes))
}

fn parse_head(bytes: &[u8]) -> Option<HeadId> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.trim().parse().ok().filter(|id| *id != HeadId(0))
}

/// A file locked by this process alone. [`io::ErrorKind::WouldBlock`] where another has it.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_last_save_is_what_loads() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let state = StateDirectory::open(&path).unwrap();
        assert_eq!(state.load_catalog().unwrap(), None);
        state.save_catalog(b"a longer first one").unwrap();
        state.save_catalog(b"second").unwrap();
        assert_eq!(state.load_catalog().unwrap().unwrap(), b"second");
        let mode = fs::metadata(state.catalog_path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds secrets");
    }

    /// A crash in the middle of a save leaves a file beside, which is not the catalog.
    #[test]
    fn a_half_written_save_is_not_loaded() {
        let parent = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(parent.path()).unwrap();
        state.save_catalog(b"whole").unwrap();
        fs::write(parent.path().join("catalog.json.new"), b"ha").unwrap();
        assert_eq!(state.load_catalog().unwrap().unwrap(), b"whole");
        state.save_catalog(b"next").unwrap();
        assert_eq!(state.load_catalog().unwrap().unwrap(), b"next");
    }

    #[test]
    fn a_second_daemon_is_kept_out() {
        let parent = tempfile::tempdir().unwrap();
        let first = StateDirectory::open(parent.path()).unwrap();
        let refused = StateDirectory::open(parent.path()).unwrap_err();
        assert!(refused.to_string().contains("in use by another tangelo"), "{refused}");
        drop(first);
        StateDirectory::open(parent.path()).unwrap();
    }

    #[test]
    fn a_head_keeps_its_id() {
        let parent = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(parent.path()).unwrap();
        let id = state.head().unwrap();
        assert_eq!(state.head().unwrap(), id);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(StateDirectory::open(other.path()).unwrap().head().unwrap(), id);
        fs::write(parent.path().join("head"), "rubbish").unwrap();
        let new = state.head().unwrap();
        assert_eq!(state.head().unwrap(), new);
    }

    #[test]
    fn drives_are_remembered_as_long_as_they_are_there() {
        let parent = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(parent.path()).unwrap();
        assert!(state.load_drives().unwrap().is_empty());
        let path = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
        let [a, b, c] = ["a", "b", "c"].map(path);
        [&a, &b, &c].iter().for_each(|path| fs::write(path, "").unwrap());
        state.remember_drives(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(state.load_drives().unwrap(), [a.clone(), b.clone()]);
        fs::remove_file(&b).unwrap();
        state.remember_drives(&[c.clone(), a.clone()]).unwrap();
        assert_eq!(state.load_drives().unwrap(), [c, a]);
        fs::write(parent.path().join("drives"), b"\xff\n\nrelative\n/x\n").unwrap();
        assert_eq!(state.load_drives().unwrap(), ["/x"]);
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        let parent = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(parent.path()).unwrap();
        File::create(state.catalog_path()).unwrap().set_len(CATALOG_BYTES_MAX as u64 + 1).unwrap();
        assert!(matches!(state.load_catalog(), Err(StateError::TooLarge { .. })));
    }
}
