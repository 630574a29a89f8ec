//! Units of storage.

use std::fmt;

/// A block: the unit of mapping, checksums and direct I/O.
pub const BLOCK_BYTES: usize = 4096;

/// The smallest unit in which a drive can end.
pub const SECTOR_BYTES: usize = 512;

/// A logical block address, in the logical blocks of the volume it belongs to (512 or 4096 bytes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lba(pub u64);

impl fmt::Debug for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lba({})", self.0)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
