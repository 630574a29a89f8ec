//! Operations of an owner's engine on its drives: those with a twin, those that both heads see, and those of one head alone.
//!
//! What always holds: nobody but this room writes to the first 16 KiB of a drive that has a record.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, RwLock};

use base::BLOCK_BYTES;
use bytes::Bytes;
use env::{DriveHandle, IoError, Operation, Outcome};
use mirror::RECORD_BYTES;

use crate::center::{Center, Copies};

/// What the other head has of the drives that are open, of all shards. A drive that is longer than its twin looks as long as that.
pub type Mirrored = Arc<RwLock<BTreeMap<DriveHandle, Copies>>>;

pub(crate) fn copies(mirrored: &Mirrored, drive: DriveHandle) -> Option<Copies> {
    mirrored.read().expect("no one panics while holding it").get(&drive).copied()
}

/// Whether this operation is for shard 0.
pub(crate) fn is_for_center(mirrored: &Mirrored, operation: &Operation) -> bool {
    let is_mirrored = |drive: &DriveHandle| matches!(copies(mirrored, *drive), Some(Copies::Twin { .. }));
    let has_record = |drive: &DriveHandle| copies(mirrored, *drive).is_some();
    match operation {
        // what the other head has of it is found when it is opened
        Operation::DriveOpen { writable, .. } => *writable,
        Operation::DriveClose { .. } => true,
        // the partner lacks what is written to a drive of this head alone
        Operation::DriveWrite { drive, offset_bytes, .. } => {
            *offset_bytes < RECORD_BYTES as u64 || copies(mirrored, *drive) != Some(Copies::Shared)
        }
        Operation::DriveFlush { drive } | Operation::DriveMeasure { drive } => is_mirrored(drive),
        Operation::DriveRead { drive, offset_bytes, .. } => {
            *offset_bytes < RECORD_BYTES as u64 && has_record(drive)
        }
        _ => false,
    }
}

/// Carries out an operation on a drive that is, or may be, mirrored.
pub(crate) async fn carry_out(center: &Rc<Center>, mirrored: &Mirrored, operation: Operation) -> Outcome {
    let done = |result: Result<(), env::IoError>| result.map_or_else(Outcome::Failed, |()| Outcome::Done);
    match operation {
        Operation::DriveOpen { path, writable } => match center.io().drive_open(&path, writable).await {
            Err(error) => Outcome::Failed(error),
            Ok((handle, mut info)) => match center.add(handle, &info).await {
                Ok(copies) => {
                    if let Some(copies) = copies {
                        mirrored.write().expect("no one panics while holding it").insert(handle, copies);
                    }
                    if let Some(Copies::Twin { end_bytes }) = copies {
                        (info.size_bytes, info.end_bytes) = (end_bytes, end_bytes);
                    }
                    Outcome::DriveOpened(handle, info)
                }
                Err(error) => {
                    let _gone_already = center.io().drive_close(handle).await;
                    Outcome::Failed(error)
                }
            },
        },
        Operation::DriveClose { drive } => {
            let was_mirrored = mirrored.write().expect("no one panics while holding it").remove(&drive);
            match was_mirrored {
                Some(Copies::Twin { .. }) => center.remove(drive).await,
                Some(Copies::Shared) => center.remove_shared(drive).await,
                None => center.remove_alone(drive),
            }
            done(center.io().drive_close(drive).await)
        }
        Operation::DriveWrite { drive, offset_bytes, data, durable } => {
            done(write(center, mirrored, drive, (offset_bytes, data, durable)).await)
        }
        // the record is the mirror's: for a pool there is nothing
        Operation::DriveRead { drive, offset_bytes, buffer } => {
            let (mut buffer, result) = center.io().drive_read(drive, offset_bytes, buffer).await;
            let hidden = (RECORD_BYTES as u64 - offset_bytes).div_ceil(BLOCK_BYTES as u64) as usize;
            (0..buffer.blocks().min(hidden)).for_each(|block| buffer.block_mut(block).fill(0));
            Outcome::DriveRead(buffer, result)
        }
        Operation::DriveFlush { drive } => done(center.flush(drive).await),
        Operation::DriveMeasure { drive } => {
            let end_bytes = match copies(mirrored, drive) {
                Some(Copies::Twin { end_bytes }) => end_bytes,
                _ => u64::MAX,
            };
            match center.io().drive_measure(drive).await {
                Ok(size_bytes) => Outcome::DriveMeasured(size_bytes.min(end_bytes)),
                Err(error) => Outcome::Failed(error),
            }
        }
        operation => unreachable!("{operation:?} goes to the world below"),
    }
}

async fn write(
    center: &Rc<Center>,
    mirrored: &Mirrored,
    drive: DriveHandle,
    (offset_bytes, data, durable): (u64, Vec<Bytes>, bool),
) -> Result<(), IoError> {
    let Some(copies) = copies(mirrored, drive) else {
        center.stores_alone(drive).await;
        return center.io().drive_write(drive, offset_bytes, data, durable).await;
    };
    let touches = offset_bytes < RECORD_BYTES as u64;
    if touches && !is_erasure(offset_bytes, &data) {
        return Err(IoError::ReadOnly);
    }
    let (offset_bytes, data) = behind_the_record(offset_bytes, data);
    match copies {
        Copies::Shared => center.io().drive_write(drive, offset_bytes, data, durable).await,
        Copies::Twin { .. } => {
            center.on_write(drive, touches);
            match data.is_empty() {
                true => Ok(()),
                false => center.write(drive, offset_bytes, data, durable).await,
            }
        }
    }
}

/// Whether this is what a pool does that makes a drive forget it: zeros, from the first byte to behind the record. Everything else that
/// is written there is refused, because it would not be kept.
fn is_erasure(offset_bytes: u64, data: &[Bytes]) -> bool {
    let length: usize = data.iter().map(Bytes::len).sum();
    offset_bytes == 0 && length > RECORD_BYTES && data.iter().all(|piece| piece.iter().all(|&byte| byte == 0))
}

/// What of a write is behind the record. The record is the mirror's: who erases the drive of a pool does not erase that.
fn behind_the_record(offset_bytes: u64, mut data: Vec<Bytes>) -> (u64, Vec<Bytes>) {
    let mut before = (RECORD_BYTES as u64).saturating_sub(offset_bytes) as usize;
    for piece in &mut data {
        let cut = before.min(piece.len());
        *piece = piece.slice(cut..);
        before -= cut;
    }
    data.retain(|piece| !piece.is_empty());
    (offset_bytes.max(RECORD_BYTES as u64), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_be_kept_is_refused() {
        let zeros = |length| vec![Bytes::from(vec![0; length])];
        assert!(is_erasure(0, &zeros(1 << 20)));
        assert!(!is_erasure(0, &zeros(16 << 10)) && !is_erasure(4096, &zeros(1 << 20)));
        assert!(!is_erasure(0, &[zeros(1 << 20), vec![Bytes::from(vec![1; 4096])]].concat()));
    }

    #[test]
    fn whoever_erases_a_drive_does_not_erase_the_record() {
        let data = || vec![Bytes::from(vec![1; 8 << 10]), Bytes::from(vec![2; 24 << 10])];
        let lengths = |offset| {
            let (offset, data) = behind_the_record(offset, data());
            (offset, data.iter().map(Bytes::len).collect::<Vec<_>>())
        };
        assert_eq!(lengths(0), (16 << 10, vec![16 << 10]));
        assert_eq!(lengths(12 << 10), (16 << 10, vec![4 << 10, 24 << 10]));
        assert_eq!(lengths(16 << 10), (16 << 10, vec![8 << 10, 24 << 10]));
        assert_eq!(behind_the_record(0, vec![Bytes::from(vec![1; 4096])]), (16 << 10, vec![]));
    }
}
