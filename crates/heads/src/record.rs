//! The record of a mirrored drive, read and written.

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{DriveHandle, DriveInfo, IoError};
use mirror::{Bits, Geometry, RECORD_BYTES, Record, Synchrony, TwinId};
use task::Io;

/// The part of a drive that is mirrored: all behind the record.
pub(crate) fn geometry(info: &DriveInfo) -> Option<Geometry> {
    let bytes = info.size_bytes.checked_sub(RECORD_BYTES as u64).filter(|&bytes| bytes > 0)?;
    Some(Geometry::of(bytes))
}

/// The newest record of a drive; `None`: it is not mirrored.
pub(crate) async fn read(io: &Io, drive: DriveHandle) -> Result<Option<Record>, IoError> {
    let buffer = AlignedBuffer::uncleared(RECORD_BYTES / BLOCK_BYTES);
    let (slots, result) = io.drive_read(drive, 0, buffer).await;
    result.map(|()| Record::newest(&slots))
}

/// Writes a record durably.
pub(crate) async fn write(io: &Io, drive: DriveHandle, record: &Record) -> Result<(), IoError> {
    let slot = AlignedBuffer::copied_from(&record.encode()).into_bytes();
    io.drive_write(drive, record.offset_bytes(), vec![slot], true).await
}

/// Makes a drive one of two twins: from now on it is mirrored. Everything that it holds behind the first 16 KiB stays as it is. With a
/// synchrony, both hold the same, or nothing that matters: then nothing is copied. Without one nothing is known of the other one.
pub async fn make_twin(
    io: &Io,
    drive: DriveHandle,
    info: &DriveInfo,
    twin: TwinId,
    synchrony: Option<Synchrony>,
) -> Result<(), IoError> {
    let geometry = geometry(info).ok_or(IoError::NotADrive)?;
    let generation = read(io, drive).await?.map_or(0, |record| record.generation) + 1;
    let regions = geometry.regions();
    let (synchrony, marked) = match synchrony {
        Some(synchrony) => (synchrony, Bits::empty(regions)),
        None => (Synchrony(0), Bits::full(regions)),
    };
    let record = Record { twin, generation, synchrony, region_bytes: geometry.region_bytes(), marked };
    write(io, drive, &record).await
}
