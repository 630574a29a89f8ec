//! Persistent reservations of a drive: by SCSI commands (`scsi`) or NVMe commands (`nvme`), through the kernel's way for commands of
//! programs. The kernel's own calls for reservations cannot read keys, so they are not used.

use env::{DriveKind, IoError, Reservation, ReservationAsk};

use super::{SendableUse, nvme, scsi};

/// With the answer to a report. May block.
pub fn carry_out(drive: &SendableUse, ask: ReservationAsk) -> Result<Option<Reservation>, IoError> {
    if drive.kind() != DriveKind::BlockDevice {
        return Err(IoError::Unsupported);
    }
    let descriptor = drive.descriptor();
    match nvme::namespace(descriptor) {
        Some(namespace) => nvme::carry_out(descriptor, namespace, ask),
        None => scsi::carry_out(descriptor, ask),
    }
}
