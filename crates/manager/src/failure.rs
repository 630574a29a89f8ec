//! Why a pool or a lane has failed, as the administrator's values.

use api::{Contradiction, LaneFailure, LanePart, PoolFailure};
use base::DriveId;
use pool::{LaneError, PoolError};

pub(crate) fn lane_failure(error: LaneError) -> LaneFailure {
    match error {
        LaneError::OutOfSpace => LaneFailure::OutOfSpace,
        LaneError::Unreadable { block } => LaneFailure::Unreadable { block },
        LaneError::Miscompare { .. } => LaneFailure::Miscompare,
        LaneError::NoSuchLayer => LaneFailure::NoSuchLayer,
        LaneError::Frozen => LaneFailure::Frozen,
        LaneError::Elsewhere => LaneFailure::Elsewhere,
        LaneError::Unavailable => LaneFailure::Unavailable,
    }
}

pub(crate) fn pool_failure(error: PoolError) -> PoolFailure {
    let ids = |drives: Vec<DriveId>| drives.iter().map(DriveId::to_string).collect();
    match error {
        PoolError::Drives { have, min, max } => {
            PoolFailure::Drives { have: have as u64, min: min as u64, max: max as u64 }
        }
        PoolError::Width(range) => {
            PoolFailure::Width { min: u64::from(range.min), max: u64::from(range.max) }
        }
        PoolError::Name => PoolFailure::Name,
        PoolError::Lanes => PoolFailure::Lanes,
        PoolError::TooSmall { path, size_bytes: has_bytes, min_bytes } => {
            PoolFailure::TooSmall { path, has_bytes, min_bytes }
        }
        PoolError::NoLabel => PoolFailure::NoLabel,
        PoolError::Unfinished => PoolFailure::Unfinished,
        PoolError::FutureVersion { path, version } => {
            PoolFailure::OtherVersion { path, version, own_version: pool::FORMAT_VERSION }
        }
        PoolError::UnknownFeatures { path, features } => {
            PoolFailure::UnknownFeatures { path, features: features.to_string() }
        }
        PoolError::OfTwoHeads => PoolFailure::OfTwoHeads,
        PoolError::TooManyMissing { missing, allowed } => {
            PoolFailure::TooManyMissing { missing: ids(missing), allowed: allowed as u64 }
        }
        PoolError::TooManyOutdated { outdated, missing, allowed } => PoolFailure::TooManyOutdated {
            outdated: ids(outdated),
            missing: missing as u64,
            allowed: allowed as u64,
        },
        PoolError::Held { held } => PoolFailure::Held { held: held as u64 },
        PoolError::TooManyFailed => PoolFailure::TooManyFailed,
        PoolError::NoRoot { lane } => PoolFailure::NoCheckpoint { lane },
        PoolError::Damaged { lane, part } => PoolFailure::Damaged { lane, part: lane_part(part) },
        PoolError::Contradiction { lane, what } => {
            PoolFailure::Contradicts { lane, what: contradiction(what) }
        }
        PoolError::Recovery { lane, error } => PoolFailure::NotRecovered { lane, error: lane_failure(error) },
        PoolError::Io { path, error } => PoolFailure::Io { path, error },
    }
}

fn lane_part(part: pool::LanePart) -> LanePart {
    match part {
        pool::LanePart::CheckpointTable => LanePart::CheckpointTable,
        pool::LanePart::Map => LanePart::Map,
        pool::LanePart::LogEnd => LanePart::LogEnd,
    }
}

fn contradiction(contradiction: pool::Contradiction) -> Contradiction {
    match contradiction {
        pool::Contradiction::ChunksBeyondDrive => Contradiction::ChunksBeyondDrive,
        pool::Contradiction::SegmentOnNoDrive => Contradiction::SegmentOnNoDrive,
        pool::Contradiction::ChunkTwice => Contradiction::ChunkTwice,
        pool::Contradiction::SegmentOverfull => Contradiction::SegmentOverfull,
        pool::Contradiction::LayerWithoutMap => Contradiction::LayerWithoutMap,
        pool::Contradiction::CountTooHigh => Contradiction::CountTooHigh,
        pool::Contradiction::SegmentIdsExhausted => Contradiction::SegmentIdsExhausted,
        pool::Contradiction::TailTwice => Contradiction::TailTwice,
        pool::Contradiction::LayerTwice => Contradiction::LayerTwice,
        pool::Contradiction::LayerOnNone => Contradiction::LayerOnNone,
        pool::Contradiction::LayerNameTwice => Contradiction::LayerNameTwice,
        pool::Contradiction::LayerOverfull => Contradiction::LayerOverfull,
        pool::Contradiction::LayersInCircle => Contradiction::LayersInCircle,
        pool::Contradiction::MergeApart => Contradiction::MergeApart,
        pool::Contradiction::BatchBeyondLayer => Contradiction::BatchBeyondLayer,
    }
}
