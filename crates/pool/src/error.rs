//! Why a request to a lane failed, and why making or opening a pool failed: values. Whoever shows them has the words.

use base::{DriveId, Lba};

use crate::format::Features;
use crate::geometry::protection::WidthOutOfRange;

/// Why a request to a lane was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneError {
    /// No space for the blocks that the write adds; or the file system under the drives is full.
    OutOfSpace,
    /// The block can neither be read nor rebuilt.
    Unreadable { block: u64 },
    /// The compare failed at this byte of the request.
    Miscompare { offset_bytes: u32 },
    /// No such layer, or it is being dropped.
    NoSuchLayer,
    /// Another layer is above this layer, or will be: it cannot be written any more.
    Frozen,
    /// A block refers to another lane or another layer: the caller has to supply its content.
    Elsewhere,
    /// Too many drives have failed, or the lane is closed.
    Unavailable,
}

/// Translates a lane's error into the error of a block request. `lba_of` turns a lane's block into the volume's.
pub(crate) fn block_error(error: LaneError, lba_of: impl Fn(u64) -> Lba) -> block::BlockError {
    match error {
        // if the snapshot that froze a layer finds no space to be recorded or to be dropped, the volume stays in its
        // frozen layer
        LaneError::OutOfSpace | LaneError::Frozen => block::BlockError::OutOfSpace,
        LaneError::Unreadable { block } => block::BlockError::Medium { lba: lba_of(block) },
        LaneError::Miscompare { offset_bytes } => block::BlockError::Miscompare { offset_bytes },
        LaneError::NoSuchLayer | LaneError::Elsewhere | LaneError::Unavailable => block::BlockError::NotReady,
    }
}

/// Why a pool cannot be made or opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolError {
    /// Not 1 to 64 drives, or not enough for the protection.
    Drives {
        have: usize,
        min: usize,
        max: usize,
    },
    Width(WidthOutOfRange),
    /// A name is 1 to 64 bytes long.
    Name,
    /// 1 to 16.
    Lanes,
    TooSmall {
        path: String,
        size_bytes: u64,
        min_bytes: u64,
    },
    /// None of the drives has a label.
    NoLabel,
    /// The program ended while it made the pool: nothing has ever been stored in it.
    Unfinished,
    FutureVersion {
        path: String,
        version: u16,
    },
    /// The pool uses what this program does not know.
    UnknownFeatures {
        path: String,
        features: Features,
    },
    /// Two heads have the pool, and this head is not one of them.
    OfTwoHeads,
    /// More drives are missing than the protection allows.
    TooManyMissing {
        missing: Vec<DriveId>,
        allowed: usize,
    },
    /// More drives are missing or hold an older state of the pool than the protection covers: what was acknowledged
    /// since may be on none of the others.
    TooManyOutdated {
        outdated: Vec<DriveId>,
        missing: usize,
        allowed: usize,
    },
    /// Another process holds so many of the drives that it may be serving the pool.
    Held {
        held: usize,
    },
    /// Drives failed while the pool was being made or opened.
    TooManyFailed,
    NoRoot {
        lane: u16,
    },
    Damaged {
        lane: u16,
        part: LanePart,
    },
    /// A structure is whole, but does not fit the pool, or contradicts itself.
    Contradiction {
        lane: u16,
        what: Contradiction,
    },
    Recovery {
        lane: u16,
        error: LaneError,
    },
    Io {
        path: String,
        error: env::IoError,
    },
}

/// What of a lane can neither be read nor rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LanePart {
    CheckpointTable,
    Map,
    LogEnd,
}

/// How structures that are whole contradict each other, or the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contradiction {
    /// A drive has more chunks than it has room for.
    ChunksBeyondDrive,
    /// A segment is on a drive or a chunk that the pool does not have, or twice on one drive.
    SegmentOnNoDrive,
    /// A chunk is in two segments.
    ChunkTwice,
    /// A segment has more rows or blocks than it can hold.
    SegmentOverfull,
    /// The map of a layer is in no segment.
    LayerWithoutMap,
    /// Nothing has counted up to a number.
    CountTooHigh,
    SegmentIdsExhausted,
    /// A segment is in the tail twice.
    TailTwice,
    LayerTwice,
    /// The layer below a layer, or the one that it is merged into, is not there.
    LayerOnNone,
    LayerNameTwice,
    /// A layer maps more than its map can name.
    LayerOverfull,
    /// Layers are below each other.
    LayersInCircle,
    /// A layer is merged into one that is not beside it.
    MergeApart,
    /// A batch writes beyond the end of a layer.
    BatchBeyondLayer,
}
