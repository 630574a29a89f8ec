//! What the array remembers about drives: the members of each pool, and the drives that pools have lost.
//!
//! A label identifies the drives of a pool, but has no paths, models or serial numbers. What always holds: if a drive
//! left its pool because of a failure, it is remembered until it is explicitly reused; the last [`FAILED_DRIVES_MAX`]
//! are kept.

use base::limits::{DRIVES_MAX, FAILED_DRIVES_MAX};
use base::{DriveId, PoolId};
use serde::{Deserialize, Serialize};

use crate::model::Catalog;
use crate::name::Name;

/// What a drive is called, and what it says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DriveName {
    /// The path at which it was last seen.
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// Where it was plugged in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bay: String,
}

/// Why a pool works without a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// It made too many errors.
    Failed,
    /// It was not there any more.
    Missing,
    /// It was much slower than its siblings.
    Slow,
}

/// A member of a pool, as it was last seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDrive {
    #[serde(with = "crate::fields::hexadecimal")]
    pub id: DriveId,
    pub name: DriveName,
    /// What is wrong with it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
}

/// A drive that a pool has had to do without.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedDrive {
    #[serde(with = "crate::fields::hexadecimal")]
    pub id: DriveId,
    pub name: DriveName,
    pub pool: Name,
    pub trouble: Trouble,
    /// Wall clock, milliseconds since 1970.
    pub since_ms: u64,
    /// The spare that has joined in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<String>,
    /// The administrator has acknowledged it.
    #[serde(default)]
    pub cleared: bool,
}

/// A change of the records about drives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriveChange {
    /// Records the names and states of the members of a pool, and the drives that it has lost.
    Note { pool: PoolId, members: Vec<KnownDrive>, failed: Vec<FailedDrive> },
    /// The administrator has acknowledged these failures.
    Clear(Vec<DriveId>),
    /// Drives that are reused: their failures are deleted.
    Forgive(Vec<DriveName>),
}

impl DriveName {
    /// Whether a drive that says this of itself is this one: by its serial number, and where it has none, by its path.
    pub fn is(&self, other: &DriveName) -> bool {
        match self.serial.is_empty() && other.serial.is_empty() {
            true => self.path == other.path,
            false => (&self.model, &self.serial) == (&other.model, &other.serial),
        }
    }
}

impl Catalog {
    /// Drives that pools have had to do without, the oldest first.
    pub fn failed_drives(&self) -> &[FailedDrive] {
        &self.failed_drives
    }

    /// The last failure of a drive, if it is remembered.
    pub fn failure_of(&self, name: &DriveName) -> Option<&FailedDrive> {
        self.failed_drives.iter().rev().find(|failed| failed.name.is(name))
    }

    pub(crate) fn change_drives(&mut self, change: &DriveChange) {
        match change {
            DriveChange::Note { pool, members, failed } => self.note_drives(*pool, members, failed),
            DriveChange::Clear(drives) => self.clear_drives(drives),
            DriveChange::Forgive(drives) => self.forgive_drives(drives),
        }
    }

    fn note_drives(&mut self, pool: PoolId, members: &[KnownDrive], failed: &[FailedDrive]) {
        if let Some(entry) = self.pools.iter_mut().find(|entry| entry.id == pool) {
            entry.members = members.iter().take(DRIVES_MAX).cloned().collect();
        }
        for one in failed {
            match self.failed_drives.iter_mut().find(|known| known.id == one.id) {
                Some(known) => *known = one.clone(),
                None => self.failed_drives.push(one.clone()),
            }
        }
        while self.failed_drives.len() > FAILED_DRIVES_MAX {
            let cleared = self.failed_drives.iter().position(|failed| failed.cleared);
            self.failed_drives.remove(cleared.unwrap_or(0));
        }
    }

    /// The administrator has acknowledged these.
    fn clear_drives(&mut self, drives: &[DriveId]) {
        let these = self.failed_drives.iter_mut().filter(|failed| drives.contains(&failed.id));
        these.for_each(|failed| failed.cleared = true);
    }

    /// A drive is used anew.
    fn forgive_drives(&mut self, drives: &[DriveName]) {
        self.failed_drives.retain(|failed| !drives.iter().any(|name| failed.name.is(name)));
    }

    /// Of a decoded catalog: what is wrong with what it remembers of drives.
    pub(crate) fn check_drives(&self) -> Result<(), String> {
        let members = self.pools.iter().map(|entry| entry.members.len()).max().unwrap_or(0);
        match members <= DRIVES_MAX && self.failed_drives.len() <= FAILED_DRIVES_MAX {
            true => Ok(()),
            false => Err("more drives are remembered than there can be".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Change;
    use base::ArrayId;

    fn name(path: &str, serial: &str) -> DriveName {
        DriveName { path: path.into(), model: "model".into(), serial: serial.into(), bay: String::new() }
    }

    fn failed(id: u128, path: &str, serial: &str) -> FailedDrive {
        let (name, pool) = (name(path, serial), "fast".parse().unwrap());
        FailedDrive {
            id: DriveId(id),
            name,
            pool,
            trouble: Trouble::Failed,
            since_ms: 4,
            spare: None,
            cleared: false,
        }
    }

    #[test]
    fn drives_that_failed_are_known_by_their_serial_numbers() {
        let empty = Catalog::new(ArrayId(7), "tangelo".parse().unwrap());
        let attach = Change::AttachPool { id: PoolId(9), name: "fast".parse().unwrap() };
        let known =
            KnownDrive { id: DriveId(1), name: name("/dev/a", "S1"), trouble: Some(Trouble::Missing) };
        let note = Change::Drives(DriveChange::Note {
            pool: PoolId(9),
            members: vec![known.clone()],
            failed: vec![failed(1, "/dev/a", "S1"), failed(2, "/dev/b", "")],
        });
        let catalog = empty.apply(&attach).unwrap().apply(&note).unwrap();
        let catalog = Catalog::decode(&catalog.encode()).unwrap();
        assert_eq!(catalog.pools()[0].members, [known]);
        let is_known = |catalog: &Catalog, path, serial| catalog.failure_of(&name(path, serial)).is_some();
        assert!(is_known(&catalog, "/dev/x", "S1"), "under another path");
        assert!(!is_known(&catalog, "/dev/a", "S2"), "another drive in its place");
        assert!(is_known(&catalog, "/dev/b", "") && !is_known(&catalog, "/dev/c", ""));
        let catalog = catalog.apply(&Change::Drives(DriveChange::Clear(vec![DriveId(1)]))).unwrap();
        assert!(catalog.failed_drives()[0].cleared && is_known(&catalog, "/dev/x", "S1"));
        let forgive = Change::Drives(DriveChange::Forgive(vec![name("/dev/x", "S1")]));
        assert!(!is_known(&catalog.apply(&forgive).unwrap(), "/dev/x", "S1"));
    }

    #[test]
    fn those_that_nobody_has_taken_note_of_stay_longest() {
        let mut catalog = Catalog::new(ArrayId(7), "tangelo".parse().unwrap());
        for id in 0..FAILED_DRIVES_MAX as u128 {
            catalog.note_drives(PoolId(9), &[], &[failed(id, "/dev/a", &id.to_string())]);
        }
        catalog.clear_drives(&[DriveId(5)]);
        catalog.note_drives(PoolId(9), &[], &[failed(1000, "/dev/a", "new")]);
        assert_eq!(catalog.failed_drives().len(), FAILED_DRIVES_MAX);
        assert!(catalog.failed_drives().iter().all(|failed| failed.id != DriveId(5)));
    }
}
