//! Persistent reservations that survive a restart (APTPL). They are stored with their volume.

use base::limits::{ISCSI_NAME_BYTES_MAX, REGISTRATIONS_KEPT_MAX, REGISTRATIONS_PER_VOLUME_MAX};
use base::{HashSet, VolumeId};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::model::Catalog;

/// An initiator port's name is an initiator's name and `,i,0x` with twelve digits.
const PORT_NAME_BYTES_MAX: usize = ISCSI_NAME_BYTES_MAX + 17;

/// A registered I_T nexus.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRegistration {
    /// SCSI name of the initiator port.
    pub initiator: String,
    /// Relative target port identifier.
    pub port: u16,
    /// Never 0.
    pub key: u64,
}

/// The reservation itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptHold {
    /// PERSISTENT RESERVATION TYPE (SPC-4 table 199).
    pub kind: u8,
    /// Which of the registrations holds it; none where all do.
    pub holder: Option<usize>,
}

/// A volume's reservations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptReservations {
    /// In order of registration; never empty.
    pub registrations: Vec<KeptRegistration>,
    pub held: Option<KeptHold>,
}

impl KeptReservations {
    fn is_sound(&self) -> bool {
        let one = |one: &KeptRegistration| one.key != 0 && one.initiator.len() <= PORT_NAME_BYTES_MAX;
        let mut names = HashSet::default();
        let held = self.held.is_none_or(|held| match held.kind {
            1 | 3 | 5 | 6 => held.holder.is_some_and(|index| index < self.registrations.len()),
            7 | 8 => held.holder.is_none(),
            _ => false,
        });
        let count = self.registrations.len();
        let unique = self.registrations.iter().all(|one| names.insert((&one.initiator, one.port)));
        held && unique
            && (1..=REGISTRATIONS_PER_VOLUME_MAX).contains(&count)
            && self.registrations.iter().all(one)
    }
}

impl Catalog {
    /// The catalog with these reservations of the volume; none: nothing of them survives.
    ///
    /// [`CatalogError::TooMany`] where the array cannot keep so many registrations, [`CatalogError::NotFound`]
    /// where there is no such volume.
    pub fn keep_reservations(
        &self,
        volume: VolumeId,
        reservations: Option<KeptReservations>,
    ) -> Result<Catalog, CatalogError> {
        let mut next = self.clone();
        let found = next.volumes.iter_mut().find(|other| other.id == volume);
        let Some(found) = found else {
            return Err(CatalogError::NotFound { kind: "volume", name: volume.to_string() });
        };
        found.reservations = reservations;
        if next.registrations_kept() > REGISTRATIONS_KEPT_MAX {
            return Err(CatalogError::TooMany { kind: "registration", max: REGISTRATIONS_KEPT_MAX });
        }
        next.version += 1;
        Ok(next)
    }

    /// This catalog, planned on an older one, with the reservations and access states that volumes have in `current`,
    /// and as its successor: those change without waiting for administrators.
    pub fn after(mut self, current: &Catalog) -> Catalog {
        for volume in &mut self.volumes {
            if let Some(now) = current.volume(volume.id) {
                volume.reservations = now.reservations.clone();
                volume.access = now.access.clone();
            }
        }
        for volume in self.bin.iter_mut().map(|binned| &mut binned.volume) {
            if let Some(now) = current.volume(volume.id) {
                volume.access = now.access.clone();
            }
        }
        self.version = self.version.max(current.version + 1);
        self
    }

    fn registrations_kept(&self) -> usize {
        let kept = self.volumes.iter().filter_map(|volume| volume.reservations.as_ref());
        kept.map(|reservations| reservations.registrations.len()).sum()
    }

    pub(crate) fn check_reservations(&self) -> Result<(), String> {
        for volume in &self.volumes {
            if volume.reservations.as_ref().is_some_and(|reservations| !reservations.is_sound()) {
                return Err(format!("volume {} has impossible reservations", volume.id));
            }
        }
        let count = self.registrations_kept();
        let bound = REGISTRATIONS_KEPT_MAX;
        if count > bound { Err(format!("{count} registrations, {bound} are possible")) } else { Ok(()) }
    }
}
