//! The device of a raw volume: what is known of it, and its problems.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::state::RawDevice;
use api::{DeviceTrouble, Problem, ProblemFacts, Subject};
use base::VolumeId;
use catalog::Volume;
use env::{DriveHandle, DriveInfo, IoError};

/// Devices whose last check has not ended: they are not checked again before it has.
pub(crate) type Looks = Rc<RefCell<BTreeSet<DriveHandle>>>;

/// The result of a check of an open device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceCheck {
    Gone,
    EndsAt(u64),
    /// The device does not answer, or the result is unclear.
    Nothing,
}

/// The result of measuring a device and of a read that ends at `read_end`.
pub(crate) fn seen(measured: Result<u64, IoError>, read: Result<(), IoError>, read_end: u64) -> DeviceCheck {
    match (measured, read) {
        (Err(IoError::Gone), _) | (Err(_), Err(IoError::Gone)) => DeviceCheck::Gone,
        // a device that became smaller returns this error for the read
        (Ok(end), Err(IoError::Gone)) if end >= read_end => DeviceCheck::Gone,
        (Ok(end), _) => DeviceCheck::EndsAt(end),
        (Err(_), _) => DeviceCheck::Nothing,
    }
}

/// The size of a volume on a device that ends at `end_bytes`.
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
    pub(crate) fn new(volume: VolumeId, drive: Result<(DriveHandle, DriveInfo), DeviceTrouble>) -> RawDevice {
        let mut raw =
            RawDevice { volume, drive: Err(DeviceTrouble::Error { error: IoError::NotFound }), last: None };
        raw.take(drive);
        raw
    }

    /// Records that the device is there now, or why it is not.
    pub(crate) fn take(&mut self, drive: Result<(DriveHandle, DriveInfo), DeviceTrouble>) {
        if let Ok((_, info)) = &drive {
            self.last = Some(info.clone());
        }
        self.drive = drive;
    }

    pub(crate) fn is(&self, volume: VolumeId, handle: DriveHandle) -> bool {
        self.volume == volume && self.drive.as_ref().is_ok_and(|(open, _)| *open == handle)
    }

    /// How much of a volume a device still holds after it became smaller.
    pub(crate) fn left_bytes(&self, volume: &Volume) -> Option<u64> {
        let (_, info) = self.drive.as_ref().ok()?;
        (info.end_bytes < volume.size_bytes).then_some(info.end_bytes)
    }

    /// The problem of this volume's device.
    pub(crate) fn problem(&self, volume: &Volume) -> Option<Problem> {
        let facts = match (&self.drive, self.left_bytes(volume)) {
            (Err(trouble), _) => ProblemFacts::VolumeDeviceUnusable { trouble: *trouble },
            (Ok(_), Some(left_bytes)) => {
                ProblemFacts::VolumeDeviceSmaller { left_bytes, volume_bytes: volume.size_bytes }
            }
            (Ok(_), None) => return None,
        };
        Some(Problem::new(Subject::volume(volume.name.as_str()), facts))
    }
}
