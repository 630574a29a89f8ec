//! The record of what another head has of a drive: a twin, or the drive itself. It is in front of the labels, in a place that pools do not
//! use. A head that is alone writes without the other one, so it erases the record first. Otherwise two drives that differ could pass for
//! equal, if both heads meet again. A drive that both have seen is also reserved; that ends, too.

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{DriveHandle, IoError, ReservationAsk};
use task::Io;

use crate::drives::probe::{LOOK_BYTES, SHARED_RECORD, TWIN_RECORD};

/// Both slots of the record, at the beginning of a drive.
const RECORD_BYTES: usize = 16 << 10;
const SLOT_BYTES: usize = RECORD_BYTES / 2;

fn has_record(start: &[u8]) -> bool {
    is_shared(start) || start[..RECORD_BYTES].chunks(SLOT_BYTES).any(|slot| slot.starts_with(TWIN_RECORD))
}

fn is_shared(start: &[u8]) -> bool {
    start.starts_with(SHARED_RECORD)
}

/// Ends this head's reservation. Another host's stays: then the drive refuses what is written next, and whoever writes is told so.
async fn release(io: &Io, drive: DriveHandle) -> Result<(), IoError> {
    let holder = match io.drive_reservation(drive).await {
        Ok(reservation) => reservation.holder,
        // it was moved to where there are none
        Err(IoError::Unsupported) => None,
        Err(error) => return Err(error),
    };
    let Some(holder) = holder else { return Ok(()) };
    match io.drive_reserve(drive, ReservationAsk::Unregister { key: holder.key }).await {
        Err(IoError::Reserved) => Ok(()),
        result => result,
    }
}

async fn read_start(io: &Io, drive: DriveHandle, bytes: usize) -> Result<AlignedBuffer, IoError> {
    let (start, result) = io.drive_read(drive, 0, AlignedBuffer::zeroed(bytes / BLOCK_BYTES)).await;
    result.map(|()| start)
}

async fn erase(io: &Io, drive: DriveHandle) -> Result<(), IoError> {
    let zeros = AlignedBuffer::zeroed(RECORD_BYTES / BLOCK_BYTES).into_bytes();
    io.drive_write(drive, 0, vec![zeros], true).await
}

/// Whether the drive has such a record.
pub async fn has_twin_record(io: &Io, drive: DriveHandle) -> Result<bool, IoError> {
    Ok(has_record(&read_start(io, drive, RECORD_BYTES).await?))
}

/// Erases the record, durably, if there is one. Says whether there was.
pub async fn erase_twin_record(io: &Io, drive: DriveHandle) -> Result<bool, IoError> {
    let start = read_start(io, drive, RECORD_BYTES).await?;
    if is_shared(&start) {
        release(io, drive).await?;
    }
    let has_record = has_record(&start);
    if has_record {
        erase(io, drive).await?;
    }
    Ok(has_record)
}

/// The same, for a drive of no pool: only if it holds nothing but the record, where every known format has its mark.
pub async fn erase_lone_twin_record(io: &Io, drive: DriveHandle) -> Result<bool, IoError> {
    let start = read_start(io, drive, LOOK_BYTES).await?;
    let is_lone = has_record(&start) && start[RECORD_BYTES..].iter().all(|&byte| byte == 0);
    if is_lone {
        if is_shared(&start) {
            release(io, drive).await?;
        }
        erase(io, drive).await?;
    }
    Ok(is_lone)
}
