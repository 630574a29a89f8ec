//! The device of a raw volume: what is known of it, and what is wrong with it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::state::RawDevice;
use crate::words::size;
use api::{Harm, Health, Problem};
use base::VolumeId;
use catalog::Volume;
use env::{DriveHandle, DriveInfo, IoError};

/// Devices whose last look has not ended: they are not asked again before.
pub(crate) type Looks = Rc<RefCell<BTreeSet<DriveHandle>>>;

/// Why a raw volume has no device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoDevice {
    Error(IoError),
    /// What a host believes to be there must be there.
    Smaller {
        has_bytes: u64,
    },
    /// Its serial number is not that of the device that was served.
    Another,
}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoDevice::Error(error) => error.fmt(f),
            NoDevice::Smaller { has_bytes } => {
                write!(f, "it has {} now, less than the volume", size(*has_bytes))
            }
            NoDevice::Another => f.write_str("another device, with another serial number, is at its path"),
        }
    }
}

/// What a look at an open device has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Gone,
    EndsAt(u64),
    /// It does not answer, or nobody can tell.
    Nothing,
}

/// What follows from measuring a device and reading what ends at `read_end`.
pub(crate) fn seen(measured: Result<u64, IoError>, read: Result<(), IoError>, read_end: u64) -> Seen {
    match (measured, read) {
        (Err(IoError::Gone), _) | (Err(_), Err(IoError::Gone)) => Seen::Gone,
        // a device that became smaller is not there where it was read
        (Ok(end), Err(IoError::Gone)) if end >= read_end => Seen::Gone,
        (Ok(end), _) => Seen::EndsAt(end),
        (Err(_), _) => Seen::Nothing,
    }
}

/// How large a volume is on a device that ends there.
pub(crate) fn volume_bytes(end_bytes: u64, block_bytes: u32) -> u64 {
    end_bytes - end_bytes.checked_rem(u64::from(block_bytes)).unwrap_or(0)
}

/// Whether both are known, and are different devices.
pub(crate) fn is_another(before: Option<&DriveInfo>, now: &DriveInfo) -> bool {
    before.is_some_and(|before| {
        let known = !before.serial.is_empty() && !now.serial.is_empty();
        known && (&before.model, &before.serial) != (&now.model, &now.serial)
    })
}

impl RawDevice {
    pub(crate) fn new(volume: VolumeId, drive: Result<(DriveHandle, DriveInfo), NoDevice>) -> RawDevice {
        let mut raw = RawDevice { volume, drive: Err(NoDevice::Error(IoError::NotFound)), last: None };
        raw.take(drive);
        raw
    }

    /// The device is there now, or is not for another reason.
    pub(crate) fn take(&mut self, drive: Result<(DriveHandle, DriveInfo), NoDevice>) {
        if let Ok((_, info)) = &drive {
            self.last = Some(info.clone());
        }
        self.drive = drive;
    }

    pub(crate) fn is(&self, volume: VolumeId, handle: DriveHandle) -> bool {
        self.volume == volume && self.drive.as_ref().is_ok_and(|(open, _)| *open == handle)
    }

    /// How much of a volume a device has that became smaller than it.
    pub(crate) fn left_bytes(&self, volume: &Volume) -> Option<u64> {
        let (_, info) = self.drive.as_ref().ok()?;
        (info.end_bytes < volume.size_bytes).then_some(info.end_bytes)
    }

    /// What is wrong with the device of this volume.
    pub(crate) fn problem(&self, volume: &Volume) -> Option<Problem> {
        let (health, reason, action) = match (&self.drive, self.left_bytes(volume)) {
            (Err(error), _) => (
                Health::Offline,
                format!("its device cannot be used: {error}"),
                "bring the device back as it was: it is looked for every few seconds, and taken by itself",
            ),
            (Ok(_), Some(left)) => (Health::Degraded, smaller(left, volume.size_bytes), SMALLER_ACTION),
            (Ok(_), None) => return None,
        };
        let (harm, subject) = (Harm::Raw, format!("volume {}", volume.name));
        Some(Problem { harm, health, subject, reason, action: action.to_owned() })
    }
}

pub(crate) const SMALLER_ACTION: &str = "give the device its size back, which is noticed by itself; until then hosts get medium errors behind its end, and after a restart it is not taken";

pub(crate) fn smaller(left_bytes: u64, volume_bytes: u64) -> String {
    format!("its device became smaller: {} of {} are left", size(left_bytes), size(volume_bytes))
}
