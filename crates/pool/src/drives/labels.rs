//! Reads and erases a drive's label, and computes the room that the label leaves.

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{DriveHandle, IoError};
use task::{Io, join_all};

use crate::format::label::Label;
use crate::format::{FormatError, LABEL_REGION_BYTES, label_offset_bytes};

/// The number of chunks of a drive of this size.
pub(crate) fn chunks_of(size_bytes: u64, chunk_bytes: u64) -> u32 {
    u32::try_from(size_bytes.saturating_sub(LABEL_REGION_BYTES) / chunk_bytes).unwrap_or(u32::MAX)
}

/// Makes a drive forget its pool: the region of labels and roots is zeros afterwards.
pub(crate) async fn erase_labels(io: &Io, drive: DriveHandle) -> Result<(), IoError> {
    let zeros = AlignedBuffer::zeroed(LABEL_REGION_BYTES as usize / BLOCK_BYTES).into_bytes();
    io.drive_write(drive, 0, vec![zeros], true).await
}

/// Reads both label slots. Returns the slot of the newest good label and its content, or why there is none.
pub(crate) async fn read_label(io: &Io, drive: DriveHandle) -> Result<(u8, Label), FormatError> {
    let read = |slot| io.drive_read(drive, label_offset_bytes(0, slot), AlignedBuffer::zeroed(1));
    let slots = join_all([read(0), read(1)]).await;
    let parsed = slots.into_iter().zip(0..).map(|((buffer, result), slot)| match result {
        Ok(()) => Label::parse(&buffer[..BLOCK_BYTES]).map(|label| (slot, label)),
        Err(_) => Err(FormatError::Damaged),
    });
    // a newer program's label beside one of ours: the drive belongs to the newer program
    let rank = |result: &Result<(u8, Label), FormatError>| match result {
        Err(FormatError::FutureVersion(_) | FormatError::UnknownFeatures(_)) => (3, 0, 0),
        Ok((_, label)) => (2, label.epoch.0, label.generation),
        Err(FormatError::Damaged) => (1, 0, 0),
        Err(FormatError::Foreign) => (0, 0, 0),
    };
    parsed.max_by_key(rank).expect("there are two slots")
}
