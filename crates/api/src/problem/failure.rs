//! Why a pool cannot be made, opened or written: values, and the words of each.

use std::fmt;

use base::limits::{NAME_BYTES_MAX, SHARDS_MAX};
use env::IoError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::io_error::IoErrorName;
use crate::{CommandError, CommandErrorKind};

/// Why a lane of a pool has not carried out a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LaneFailure {
    /// The pool is full, or there is no space below its drives.
    OutOfSpace,
    /// A block can neither be read nor rebuilt; its number in the lane.
    Unreadable {
        block: u64,
    },
    NoSuchLayer,
    /// Another layer is above the layer.
    Frozen,
    /// The lane does not have the content of a block.
    Elsewhere,
    Miscompare,
    /// Too many drives have failed, or the lane is closed.
    Unavailable,
}

impl fmt::Display for LaneFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LaneFailure::OutOfSpace => "the pool is full",
            LaneFailure::Unreadable { block } => {
                return write!(f, "block {block} can neither be read nor rebuilt");
            }
            LaneFailure::NoSuchLayer => "there is no such layer",
            LaneFailure::Frozen => "another layer stands on the layer",
            LaneFailure::Elsewhere => "a block is elsewhere",
            LaneFailure::Miscompare => "the data differs",
            LaneFailure::Unavailable => "too many drives have failed, or the lane is closed",
        })
    }
}

/// What of a lane can neither be read nor rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LanePart {
    CheckpointTable,
    Map,
    LogEnd,
}

impl fmt::Display for LanePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LanePart::CheckpointTable => "the checkpoint's table",
            LanePart::Map => "the map",
            LanePart::LogEnd => "the end of the log",
        })
    }
}

/// How a structure on the drives contradicts itself or the pool, although its checksum is right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Contradiction {
    ChunksBeyondDrive,
    SegmentOnNoDrive,
    ChunkTwice,
    SegmentOverfull,
    LayerWithoutMap,
    CountTooHigh,
    SegmentIdsExhausted,
    TailTwice,
    LayerTwice,
    LayerOnNone,
    LayerNameTwice,
    LayerOverfull,
    LayersInCircle,
    MergeApart,
    BatchBeyondLayer,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contradiction::ChunksBeyondDrive => "a drive with more chunks than it has room for",
            Contradiction::SegmentOnNoDrive => "a segment on a drive or chunk that the pool does not have",
            Contradiction::ChunkTwice => "a chunk that is in two segments",
            Contradiction::SegmentOverfull => "more than a segment can hold",
            Contradiction::LayerWithoutMap => "a layer whose map is in no segment",
            Contradiction::CountTooHigh => "a number that nothing has counted up to",
            Contradiction::SegmentIdsExhausted => "segment ids that are exhausted",
            Contradiction::TailTwice => "a segment that is in the tail twice",
            Contradiction::LayerTwice => "a layer that is there twice",
            Contradiction::LayerOnNone => "a layer on another that is not there",
            Contradiction::LayerNameTwice => "two layers with one name",
            Contradiction::LayerOverfull => "a layer that maps more than it can",
            Contradiction::LayersInCircle => "layers that stand on each other",
            Contradiction::MergeApart => "a layer that is merged into one that is not beside it",
            Contradiction::BatchBeyondLayer => "a batch that writes beyond the end of a layer",
        })
    }
}

/// Why a pool cannot be made or opened. Drives that may not have a path are named by their ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolFailure {
    /// Too few or too many drives for the protection.
    Drives {
        have: u64,
        min: u64,
        max: u64,
    },
    Width {
        min: u64,
        max: u64,
    },
    Name,
    Lanes,
    TooSmall {
        path: String,
        has_bytes: u64,
        min_bytes: u64,
    },
    /// None of the drives has a label.
    NoLabel,
    /// The program ended while it made the pool.
    Unfinished,
    /// Another version of the program has written the drive.
    OtherVersion {
        path: String,
        version: u16,
        own_version: u16,
    },
    /// The pool uses features that this program does not know.
    UnknownFeatures {
        path: String,
        features: String,
    },
    /// Two heads have the array of the pool, and this head is not one of them.
    OfTwoHeads,
    TooManyMissing {
        missing: Vec<String>,
        allowed: u64,
    },
    /// Drives hold an older state of the pool.
    TooManyOutdated {
        outdated: Vec<String>,
        missing: u64,
        allowed: u64,
    },
    /// Another process has opened so many drives that it may be serving the pool.
    Held {
        held: u64,
    },
    TooManyFailed,
    NoCheckpoint {
        lane: u16,
    },
    Damaged {
        lane: u16,
        part: LanePart,
    },
    Contradicts {
        lane: u16,
        what: Contradiction,
    },
    NotRecovered {
        lane: u16,
        error: LaneFailure,
    },
    Io {
        path: String,
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
    /// The pool holds a volume that no catalog knows.
    VolumesNewerThanCatalog,
    /// The pool holds copies that no catalog knows.
    CopiesNewerThanCatalog,
    /// A lane did not say what copies in it refer to.
    ReferencesUnknown,
    /// A layer of a volume that has snapshots, or is a clone, is not there.
    LayerMissing,
}

const NOT_THIS_HEAD: &str =
    "it belongs to an array of two heads, and this head is not one of them; it is left untouched";

impl fmt::Display for PoolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BRING_BACK: &str =
            "bring back the drives of the other pools and the head's state directory, and restart";
        match self {
            PoolFailure::Drives { have, min, max } => {
                write!(f, "{have} drives are named; this protection takes {min} to {max}")
            }
            PoolFailure::Width { min, max } => {
                write!(f, "the width must be {min} to {max} with these drives and this protection")
            }
            PoolFailure::Name => write!(f, "a pool's name has 1 to {NAME_BYTES_MAX} bytes"),
            PoolFailure::Lanes => write!(f, "a pool has 1 to {SHARDS_MAX} lanes"),
            PoolFailure::TooSmall { path, has_bytes, min_bytes } => {
                write!(f, "{path} has {has_bytes} bytes; the smallest drive has {min_bytes}")
            }
            PoolFailure::NoLabel => f.write_str("none of these drives belongs to a pool"),
            PoolFailure::Unfinished => {
                f.write_str("it was never finished, and nothing has been stored in it: make it again")
            }
            PoolFailure::OtherVersion { path, version, own_version } => write!(
                f,
                "{path} was written by another Tangelo (format version {version}, and this one reads {own_version}); it is left untouched: install that version"
            ),
            PoolFailure::UnknownFeatures { path, features } => write!(
                f,
                "the pool of {path} uses what this Tangelo does not know (feature {features}); it is left untouched: install a newer version"
            ),
            PoolFailure::OfTwoHeads => f.write_str(NOT_THIS_HEAD),
            PoolFailure::TooManyMissing { missing, allowed } => write!(
                f,
                "{} drives are missing and only {allowed} may be: {}",
                missing.len(),
                missing.join(" ")
            ),
            PoolFailure::TooManyOutdated { outdated, missing, allowed } => write!(
                f,
                "{} drives hold an older state of the pool, {missing} are missing, and only {allowed} may; bring back those that were there last; of an older state are: {}",
                outdated.len(),
                outdated.join(" ")
            ),
            PoolFailure::Held { held } => {
                write!(f, "another process has {held} of its drives and may be serving it")
            }
            PoolFailure::TooManyFailed => f.write_str("too many drives refused to be written"),
            PoolFailure::NoCheckpoint { lane } => {
                write!(f, "lane {lane} has no checkpoint that can be read")
            }
            PoolFailure::Damaged { lane, part } => {
                write!(f, "{part} of lane {lane} can neither be read nor rebuilt")
            }
            PoolFailure::Contradicts { lane, what } => {
                write!(f, "the checkpoint of lane {lane} is whole, and names {what}: it is not used")
            }
            PoolFailure::NotRecovered { lane, error } => {
                write!(f, "lane {lane} could not be recovered: {error}")
            }
            PoolFailure::Io { path, error } => write!(f, "{path}: {error}"),
            PoolFailure::VolumesNewerThanCatalog => {
                write!(f, "it holds a volume that is newer than every catalog found: {BRING_BACK}")
            }
            PoolFailure::CopiesNewerThanCatalog => {
                write!(f, "it holds copies that are newer than every catalog found: {BRING_BACK}")
            }
            PoolFailure::ReferencesUnknown => f.write_str("it does not say what copies in it refer to: a reload (`systemctl reload tangelo`) tries again"),
            PoolFailure::LayerMissing => f.write_str(
                "it lacks a layer of a volume that has snapshots, or is a clone; it is left as it is: bring back the drives that are missing, of this pool and others",
            ),
        }
    }
}

/// What a pool did not take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotStored {
    Catalog,
    /// A layer of a volume.
    Layer,
}

/// A pool did not take something.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreFailure {
    pub pool: String,
    pub what: NotStored,
    pub error: LaneFailure,
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoreFailure { pool, what, error } = self;
        match what {
            NotStored::Catalog => write!(f, "pool {pool} cannot store the change: {error}"),
            NotStored::Layer => write!(f, "pool {pool} cannot take the volume: {error}"),
        }
    }
}

impl From<StoreFailure> for CommandError {
    fn from(failure: StoreFailure) -> CommandError {
        let hint = "`tangelo status` says what is wrong";
        CommandError::new(CommandErrorKind::Unavailable, failure.to_string(), hint)
    }
}
