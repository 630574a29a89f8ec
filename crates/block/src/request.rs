//! Requests, results, and the trait of targets.

use std::fmt;
use std::future::Future;

use crate::payload::Payload;
use base::Lba;

/// The shape of a volume as its hosts see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Size in logical blocks.
    pub blocks: u64,
    /// Whether unmapped ranges give their space back.
    pub thin: bool,
    /// Whether completed writes may need [`BlockRequest::Flush`] to survive power loss.
    pub write_back: bool,
}

impl Geometry {
    pub fn size_bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }
}

/// What a host wants done. Addresses and counts are in the volume's logical blocks and lie within it.
#[derive(Clone, Debug)]
pub enum BlockRequest {
    Read {
        lba: Lba,
        blocks: u32,
    },
    /// `data` is a whole number of logical blocks. `durable`: on stable storage before the answer (FUA),
    /// also on a write-back volume.
    Write {
        lba: Lba,
        data: Payload,
        durable: bool,
    },
    /// The range reads as zeros afterwards; a thin target gives its space back.
    WriteZeroes {
        lba: Lba,
        blocks: u64,
    },
    /// As `WriteZeroes` on a thin target; a hint that others may ignore.
    Unmap {
        lba: Lba,
        blocks: u64,
    },
    /// Writes `data` where the range now holds `expected`, atomically; both are equally long.
    /// [`BlockError::Miscompare`] otherwise.
    CompareAndWrite {
        lba: Lba,
        /// Boxed: it is rare, and every request is as large as this one.
        expected: Box<Payload>,
        data: Payload,
        durable: bool,
    },
    /// Everything acknowledged before is on stable storage when this is answered.
    Flush,
    /// Whether the range from `lba` is mapped, and how far that answer holds.
    MapStatus {
        lba: Lba,
        blocks: u64,
    },
}

/// What a successful request gives.
#[derive(Clone, Debug)]
pub enum BlockOutput {
    None,
    /// Pieces of a read's data, in order, without a copy.
    Data(Payload),
    /// The first `blocks` (at least 1) of the range are all mapped or all not.
    MapStatus {
        mapped: bool,
        blocks: u64,
    },
}

/// Why a request was not carried out. A closed list: each front end translates it in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockError {
    /// The data cannot be read or rebuilt; the first such block.
    Medium { lba: Lba },
    /// The compare failed at this byte.
    Miscompare { offset_bytes: u32 },
    /// A thin pool has no space for this write; freeing space resumes service.
    OutOfSpace,
    /// The volume is there but cannot be served now (pool not open, too many drives failed).
    NotReady,
    /// The volume's writes are refused.
    WriteProtected,
    /// The target does not do this.
    Unsupported,
    /// Given up before it was carried out, because the host asked for that.
    Aborted,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockError::Medium { lba } => write!(f, "block {lba} cannot be read or rebuilt"),
            BlockError::Miscompare { offset_bytes } => write!(f, "the data differs at byte {offset_bytes}"),
            BlockError::OutOfSpace => f.write_str("the pool is full"),
            BlockError::NotReady => f.write_str("the volume cannot be served now"),
            BlockError::WriteProtected => f.write_str("the volume is write-protected"),
            BlockError::Unsupported => f.write_str("not supported by this volume"),
            BlockError::Aborted => f.write_str("aborted"),
        }
    }
}

impl std::error::Error for BlockError {}

pub type BlockResult = Result<BlockOutput, BlockError>;

/// Something that stores blocks.
pub trait BlockTarget {
    fn geometry(&self) -> Geometry;

    /// Carries out one request. Requests of one target may be in flight side by side; overlapping ones take
    /// effect in some order, each of them whole per logical block.
    fn execute(&self, request: BlockRequest) -> impl Future<Output = BlockResult>;
}
