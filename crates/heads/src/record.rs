//! The record of a mirrored drive, read and written.

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{DriveHandle, DriveInfo, IoError};
use mirror::{Bits, Geometry, RECORD_BYTES, Record, Synchrony, TwinId};
use task::Io;

use crate::shared::SharedRecord;

/// What the first 16 KiB of a drive say of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DriveRecord {
    /// It has a twin on the other head.
    Twin(Record),
    /// Both heads see it.
    Shared(SharedRecord),
}

impl DriveRecord {
    /// By which both heads know the drive.
    pub fn id(&self) -> TwinId {
        match self {
            DriveRecord::Twin(record) => record.twin,
            DriveRecord::Shared(record) => record.drive,
        }
    }
}

/// The part of a drive that is mirrored, as its record says. `None`: the drive is too short for that.
pub(crate) fn geometry(record: &Record, info: &DriveInfo) -> Option<Geometry> {
    let bytes = Some(record.mirrored_bytes).filter(|&bytes| bytes > 0)?;
    (end_bytes(record) <= info.size_bytes).then(|| Geometry::of(bytes))
}

/// Where what is mirrored ends on either drive.
pub(crate) fn end_bytes(record: &Record) -> u64 {
    record.mirrored_bytes.saturating_add(RECORD_BYTES as u64)
}

/// The newest record of a drive; `None`: it is of one head alone.
pub(crate) async fn read(io: &Io, drive: DriveHandle) -> Result<Option<DriveRecord>, IoError> {
    let buffer = AlignedBuffer::uncleared(RECORD_BYTES / BLOCK_BYTES);
    let (slots, result) = io.drive_read(drive, 0, buffer).await;
    result?;
    let shared = SharedRecord::decode(&slots).map(DriveRecord::Shared);
    Ok(shared.or_else(|| Record::newest(&slots).map(DriveRecord::Twin)))
}

/// Which twin a drive is that begins so.
pub fn twin_of(start: &[u8; RECORD_BYTES]) -> Option<TwinId> {
    Record::newest(start).map(|record| record.twin)
}

/// Writes a record durably.
pub(crate) async fn write(io: &Io, drive: DriveHandle, record: &Record) -> Result<(), IoError> {
    let slot = AlignedBuffer::copied_from(&record.encode()).into_bytes();
    io.drive_write(drive, record.offset_bytes(), vec![slot], true).await
}

/// Makes a drive one of two twins: from now on so much of it is mirrored behind the first 16 KiB, the same on both. What it holds there
/// stays as it is. With a synchrony, both hold the same, or nothing that matters: then nothing is copied. Without one nothing is known of the other one.
pub async fn make_twin(
    io: &Io,
    drive: DriveHandle,
    info: &DriveInfo,
    twin: TwinId,
    mirrored_bytes: u64,
    synchrony: Option<Synchrony>,
) -> Result<(), IoError> {
    let fits = mirrored_bytes > 0 && mirrored_bytes + RECORD_BYTES as u64 <= info.size_bytes;
    let geometry = fits.then(|| Geometry::of(mirrored_bytes)).ok_or(IoError::NotADrive)?;
    let generation = match read(io, drive).await? {
        Some(DriveRecord::Shared(_)) => return Err(IoError::Busy),
        Some(DriveRecord::Twin(record)) => record.generation + 1,
        None => 1,
    };
    let regions = geometry.regions();
    let (synchrony, marked) = match synchrony {
        Some(synchrony) => (synchrony, Bits::empty(regions)),
        None => (Synchrony(0), Bits::full(regions)),
    };
    let region_bytes = geometry.region_bytes();
    let record = Record { twin, generation, synchrony, region_bytes, mirrored_bytes, marked };
    write(io, drive, &record).await
}
