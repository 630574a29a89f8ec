//! Persistent reservations that survive a restart (APTPL). They are stored with their volume.

use base::limits::{ISCSI_NAME_BYTES_MAX, REGISTRATIONS_KEPT_MAX, REGISTRATIONS_PER_VOLUME_MAX};
use base::{HashSet, VolumeId};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::model::Catalog;

/// An initiator port's name is an initiator's name and `,i,0x` with twelve digits.
const PORT_NAME_BYTES_MAX: usize = ISCSI_NAME_BYTES_MAX + 17;

/// Who registered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum KeptRegistrant {
    /// An I_T nexus: SCSI name of the initiator port, and relative target port identifier.
    Nexus { initiator: String, port: u16 },
    /// An NVMe host, by its Host Identifier.
    NvmeHost([u8; 16]),
}

/// A registration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct KeptRegistration {
    pub registrant: KeptRegistrant,
    /// Never 0.
    pub key: u64,
}

/// A registration as JSON: with `initiator` and `port`, or with `nvme_host`, 32 hexadecimal digits (from schema 12 on).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    initiator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nvme_host: Option<String>,
    key: u64,
}

impl From<KeptRegistration> for Stored {
    fn from(kept: KeptRegistration) -> Stored {
        let key = kept.key;
        match kept.registrant {
            KeptRegistrant::Nexus { initiator, port } => {
                Stored { initiator: Some(initiator), port: Some(port), nvme_host: None, key }
            }
            KeptRegistrant::NvmeHost(id) => {
                let digits = format!("{:032x}", u128::from_be_bytes(id));
                Stored { initiator: None, port: None, nvme_host: Some(digits), key }
            }
        }
    }
}

impl TryFrom<Stored> for KeptRegistration {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<KeptRegistration, &'static str> {
        let registrant = match (stored.initiator, stored.port, stored.nvme_host) {
            (Some(initiator), Some(port), None) => KeptRegistrant::Nexus { initiator, port },
            (None, None, Some(digits)) if digits.len() == 32 => {
                let id = u128::from_str_radix(&digits, 16).map_err(|_| NO_HOST)?;
                KeptRegistrant::NvmeHost(id.to_be_bytes())
            }
            (None, None, Some(_)) => return Err(NO_HOST),
            _ => return Err("a registration is of an initiator and a port, or of an NVMe host"),
        };
        Ok(KeptRegistration { registrant, key: stored.key })
    }
}

const NO_HOST: &str = "an NVMe host's identifier has 32 hexadecimal digits";

/// The reservation itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptHold {
    /// PERSISTENT RESERVATION TYPE (SPC-4 table 199).
    pub kind: u8,
    /// Which of the registrations holds it; none if all do.
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
        let one = |one: &KeptRegistration| {
            let bounded = match &one.registrant {
                KeptRegistrant::Nexus { initiator, .. } => initiator.len() <= PORT_NAME_BYTES_MAX,
                KeptRegistrant::NvmeHost(_) => true,
            };
            one.key != 0 && bounded
        };
        let mut names = HashSet::default();
        let held = self.held.is_none_or(|held| match held.kind {
            1 | 3 | 5 | 6 => held.holder.is_some_and(|index| index < self.registrations.len()),
            7 | 8 => held.holder.is_none(),
            _ => false,
        });
        let count = self.registrations.len();
        let unique = self.registrations.iter().all(|one| names.insert(&one.registrant));
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
        self.term = self.term.max(current.term);
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
