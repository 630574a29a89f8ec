//! Why a request to a lane failed, and why making or opening a pool failed.

use std::fmt;

use base::limits::SHARDS_MAX;
use base::{DriveId, Lba};

use crate::format::FORMAT_VERSION;
use crate::format::label::NAME_BYTES_MAX;
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

impl fmt::Display for LaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaneError::OutOfSpace => f.write_str("the pool is full"),
            LaneError::Unreadable { block } => write!(f, "block {block} can neither be read nor rebuilt"),
            LaneError::Miscompare { offset_bytes } => write!(f, "the data differs at byte {offset_bytes}"),
            LaneError::NoSuchLayer => f.write_str("there is no such layer"),
            LaneError::Frozen => f.write_str("something stands on the layer"),
            LaneError::Elsewhere => f.write_str("a block is elsewhere"),
            LaneError::Unavailable => f.write_str("too many drives have failed, or the lane is closed"),
        }
    }
}

impl std::error::Error for LaneError {}

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
        what: &'static str,
    },
    /// A structure is whole, but does not fit the pool, or contradicts itself.
    Misfit {
        lane: u16,
        what: &'static str,
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

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolError::Drives { have, min, max } => {
                write!(f, "{have} drives given; this protection takes {min} to {max}")
            }
            PoolError::Width(range) => {
                write!(
                    f,
                    "the width must be {} to {} with these drives and this protection",
                    range.min, range.max
                )
            }
            PoolError::Name => write!(f, "a pool's name has 1 to {NAME_BYTES_MAX} bytes"),
            PoolError::Lanes => write!(f, "a pool has 1 to {SHARDS_MAX} lanes"),
            PoolError::TooSmall { path, size_bytes, min_bytes } => {
                write!(f, "{path} has {size_bytes} bytes; the smallest drive has {min_bytes}")
            }
            PoolError::NoLabel => f.write_str("none of these drives belongs to a pool"),
            PoolError::Unfinished => {
                f.write_str("it was never finished, and nothing has been stored in it: make it again")
            }
            PoolError::FutureVersion { path, version } => write!(
                f,
                "{path} was written by another Tangelo (format version {version}, and this one reads {FORMAT_VERSION}); it is left untouched: install that version"
            ),
            PoolError::TooManyMissing { missing, allowed } => {
                write!(f, "{} drives are missing and only {allowed} may be:", missing.len())?;
                missing.iter().try_for_each(|drive| write!(f, " {drive}"))
            }
            PoolError::TooManyOutdated { outdated, missing, allowed } => {
                write!(
                    f,
                    "{} drives hold an older state of the pool, {missing} are missing, and only {allowed} may; \
                     bring back those that were there last; of an older state are:",
                    outdated.len()
                )?;
                outdated.iter().try_for_each(|drive| write!(f, " {drive}"))
            }
            PoolError::Held { held } => {
                write!(f, "another process has {held} of its drives and may be serving it")
            }
            PoolError::TooManyFailed => f.write_str("too many drives refused to be written"),
            PoolError::NoRoot { lane } => write!(f, "lane {lane} has no checkpoint that can be read"),
            PoolError::Damaged { lane, what } => {
                write!(f, "{what} of lane {lane} can neither be read nor rebuilt")
            }
            PoolError::Misfit { lane, what } => {
                write!(f, "the checkpoint of lane {lane} is whole, and names {what}: it is not believed")
            }
            PoolError::Recovery { lane, error } => write!(f, "lane {lane} could not be recovered: {error}"),
            PoolError::Io { path, error } => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for PoolError {}
