//! `pair forget`: the array goes back to one head, the one that owns it.
//!
//! ```text
//!   disown, while the owner runs    the register names nobody in the place of the other head; pair.json notes that the pair is forgotten
//!   finish, at the next start       alone-after-pair.json is written; tokens.json and member.json are removed; pair.json is set aside
//! ```
//!
//! What always holds: the register does not name the other head any more before anything else is changed, so it owns nothing and takes
//! over nothing. Each step can be repeated: a crash between two of them leaves what the same command, or the next start, finishes.

use std::path::{Path, PathBuf};

use base::HeadId;
use pair::Question;
use serde::{Deserialize, Serialize};

use crate::error::SetupError;
use crate::files;
use crate::issued;
use crate::member_file;
use crate::pair_file::PairFile;

const VERSION: u32 = 1;

/// What a head keeps of the pair that it was one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AloneAfterPair {
    version: u32,
    /// Its portal groups stay those of this seat: hosts know its target ports by them.
    pub seat: u8,
}

impl AloneAfterPair {
    fn path(state_dir: &Path) -> PathBuf {
        state_dir.join("alone-after-pair.json")
    }

    /// `None`: this head never was one of a pair, or is one.
    pub fn load(state_dir: &Path) -> Result<Option<AloneAfterPair>, SetupError> {
        let path = AloneAfterPair::path(state_dir);
        let found: Option<AloneAfterPair> = files::load_json(path.clone(), VERSION)?;
        match found {
            Some(AloneAfterPair { seat: 2.., .. }) => {
                Err(SetupError::damaged(&path, "a pair has two heads, number 0 and number 1"))
            }
            found => Ok(found),
        }
    }
}

/// Takes the other head out of the register, and notes that the pair is forgotten. To be called on the owner, which is to be started again
/// afterwards. With `force`, also if the other head is in sync.
pub async fn disown(state_dir: &Path, force: bool) -> Result<(), SetupError> {
    let pair =
        PairFile::load(state_dir)?.ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
    let mut client = pair.register()?;
    let mut known = client.ask(Question::Read).await.map_err(SetupError::Register)?;
    let nobody = HeadId(u128::from_be_bytes(crate::random()));
    // another partner than the file's: an earlier attempt broke off before the file was written
    while known.other(pair.head) == Some(pair.partner) {
        if known.owner != pair.head {
            return Err(SetupError::NotTheOwner);
        }
        if known.in_sync && !force {
            return Err(SetupError::ForgetsInSync);
        }
        let question = Question::CompareAndSet { expected: known.revision, new: known.forgotten(nobody) };
        known = client.ask(question).await.map_err(SetupError::Register)?;
    }
    if known.owner != pair.head {
        return Err(SetupError::NotTheOwner);
    }
    PairFile::update(state_dir, |pair| {
        pair.is_forgotten = true;
        true
    })?;
    Ok(())
}

/// At a start of a head whose `pair.json` says that the pair is forgotten: makes it one that is alone.
pub fn finish_forgetting(state_dir: &Path) -> Result<AloneAfterPair, SetupError> {
    let _lock = files::lock(state_dir)?;
    let pair =
        PairFile::load(state_dir)?.ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
    assert!(pair.is_forgotten, "only then it is called");
    let alone = AloneAfterPair { version: VERSION, seat: pair.seat };
    files::save_json(&AloneAfterPair::path(state_dir), &alone)?;
    issued::forget(state_dir)?;
    member_file::retire(state_dir)?;
    files::set_aside(&PairFile::path(state_dir), "pair.earlier.json")?;
    Ok(alone)
}

/// Makes a head one that is alone at its next start, although nobody can be asked: the register and the other head are gone, or this
/// head's `pair.json`. To be called while its daemon does not run. Can be repeated.
pub fn disband(state_dir: &Path) -> Result<(), SetupError> {
    if PairFile::load(state_dir)?.is_some() {
        // the next start does the rest
        PairFile::update(state_dir, |pair| !std::mem::replace(&mut pair.is_forgotten, true))?;
    } else if AloneAfterPair::load(state_dir)?.is_none() {
        let _lock = files::lock(state_dir)?;
        files::save_json(&AloneAfterPair::path(state_dir), &AloneAfterPair { version: VERSION, seat: 0 })?;
    }
    Ok(())
}

/// Which of the two heads of a new pair this one is: the same as in the earlier one.
pub(crate) fn seat_of_founder(state_dir: &Path) -> Result<u8, SetupError> {
    Ok(AloneAfterPair::load(state_dir)?.map_or(0, |alone| alone.seat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair_file::tests::example;

    /// A crash between any two steps leaves what a repetition finishes.
    #[test]
    fn forgetting_can_be_repeated_from_any_step() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let register = at.join("register");
        let prepare = || {
            PairFile { seat: 1, is_forgotten: true, ..example() }.save(at).unwrap();
            std::fs::create_dir_all(register.join("data/member")).unwrap();
            std::fs::write(at.join("tokens.json"), "{}").unwrap();
            for name in ["member.json", "ca.pem", "cert.pem", "key.pem"] {
                std::fs::write(register.join(name), "{}").unwrap();
            }
        };
        for step in 0..4 {
            prepare();
            if step > 0 {
                // what a broken attempt has done already
                let alone = AloneAfterPair { version: VERSION, seat: 1 };
                files::save_json(&AloneAfterPair::path(at), &alone).unwrap();
            }
            if step > 1 {
                std::fs::remove_file(register.join("member.json")).unwrap();
            }
            if step > 2 {
                std::fs::remove_dir_all(register.join("data")).unwrap();
            }
            assert_eq!(finish_forgetting(at).unwrap().seat, 1);
            assert!(PairFile::load(at).unwrap().is_none());
            assert_eq!(AloneAfterPair::load(at).unwrap().map(|alone| alone.seat), Some(1));
            let left: Vec<_> =
                std::fs::read_dir(&register).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(left, ["lock"], "etcd's data and keys are gone");
            assert!(at.join("pair.earlier.json").exists() && !at.join("tokens.json").exists());
        }
        assert_eq!(seat_of_founder(at).unwrap(), 1);
        assert!(matches!(finish_forgetting(at), Err(SetupError::NoPair { .. })));
    }

    #[test]
    fn a_pair_is_disbanded_with_its_file_and_without() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        for _ in 0..2 {
            disband(at).unwrap();
            assert_eq!(AloneAfterPair::load(at).unwrap().map(|alone| alone.seat), Some(0));
        }
        PairFile { seat: 1, ..example() }.save(at).unwrap();
        for _ in 0..2 {
            disband(at).unwrap();
            assert!(PairFile::load(at).unwrap().unwrap().is_forgotten);
        }
        assert_eq!(finish_forgetting(at).unwrap().seat, 1);
    }

    /// As long as a supervisor runs, etcd's files are its own: it removes them when it has ended etcd.
    #[test]
    fn the_files_of_etcd_are_left_to_its_supervisor() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        PairFile { is_forgotten: true, ..example() }.save(at).unwrap();
        std::fs::create_dir_all(at.join("register/data")).unwrap();
        std::fs::write(at.join("register/member.json"), "{}").unwrap();
        let supervisor = crate::member::lock(at).unwrap();
        finish_forgetting(at).unwrap();
        assert!(!at.join("register/member.json").exists() && at.join("register/data").exists());
        drop(supervisor);
        assert!(matches!(
            crate::Member::open(at),
            Err(SetupError::NoMember { .. } | SetupError::NotInstalled { .. })
        ));
    }

    #[test]
    fn a_seat_that_no_pair_has_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(AloneAfterPair::load(directory.path()).unwrap(), None);
        let path = AloneAfterPair::path(directory.path());
        files::save(&path, br#"{"version":1,"seat":2}"#).unwrap();
        assert!(matches!(AloneAfterPair::load(directory.path()), Err(SetupError::Damaged { .. })));
    }
}
