//! The counters of a lane while it is open.

/// Errors of one drive, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveErrors {
    pub read: u64,
    pub write: u64,
    pub checksum: u64,
}

impl DriveErrors {
    /// The sum with those of `other`.
    pub fn plus(self, other: DriveErrors) -> DriveErrors {
        DriveErrors {
            read: self.read + other.read,
            write: self.write + other.write,
            checksum: self.checksum + other.checksum,
        }
    }
}

/// Counted since the lane was opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaneCounters {
    /// By drive index.
    pub drive_errors: Vec<DriveErrors>,
    pub blocks_written: u64,
    pub blocks_read: u64,
    pub blocks_rebuilt: u64,
    pub blocks_healed: u64,
    pub blocks_cleaned: u64,
    pub batches: u64,
    pub checkpoints: u64,
    /// Map pages and tables that checkpoints have written, in blocks.
    pub map_blocks_written: u64,
    pub segments_cleaned: u64,
    /// Leaf pages of layers that were merged into others.
    pub pages_merged: u64,
    /// Blocks written anew because their segment lacked redundancy or was to be emptied.
    pub blocks_restored: u64,
    /// Recovery: batches replayed, found torn and dropped, completed from parity.
    pub replayed: u64,
    pub dropped: u64,
    pub completed: u64,
    /// Recovery: conditional entries that no longer applied.
    pub moves_stale: u64,
    /// Counts of what is in use that were wrong and have been corrected.
    pub counts_corrected: u64,
}

impl LaneCounters {
    pub(crate) fn drive(&mut self, drive: u8) -> &mut DriveErrors {
        let index = usize::from(drive);
        if self.drive_errors.len() <= index {
            self.drive_errors.resize(index + 1, DriveErrors::default());
        }
        &mut self.drive_errors[index]
    }

    /// A failed write or flush. Missing space below a drive is no error of the drive; the operation is retried
    /// repeatedly.
    pub(crate) fn failed_write(&mut self, drive: u8, error: env::IoError) {
        if error != env::IoError::NoSpace {
            self.drive(drive).write += 1;
        }
    }
}
