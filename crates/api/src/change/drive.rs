//! Steps about drives.

use base::units::size;
use env::IoError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::DriveHolds;
use crate::{DriveGivenUp, InWords, IoErrorName};

/// A step about a drive. `drive` is its path, or `drive` and its id where no path is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum DriveStep {
    /// It joins a pool; what is on it is erased.
    AddDrive {
        drive: String,
        pool: String,
        size_bytes: u64,
    },
    /// It is emptied, and leaves the pool then.
    EmptyDrive {
        drive: String,
        pool: String,
    },
    /// It is not emptied any more.
    KeepDrive {
        drive: String,
        pool: String,
    },
    /// It is out of service. What it held is rebuilt on the other drives of its pool.
    RebuildDrive {
        drive: String,
    },
    EraseDrive {
        drive: String,
        size_bytes: u64,
        /// Null where it was not looked at for this step.
        holds: Option<DriveHolds>,
    },
    EraseLabel {
        drive: String,
    },
    /// The label of a pool that is deleted stays on a drive.
    LeaveLabel {
        drive: String,
        cause: LabelLeft,
    },
    /// Its activity light blinks.
    BlinkDrive {
        drive: String,
        seconds: u32,
    },
    /// The light of its bay is on.
    LightBay {
        drive: String,
        seconds: u32,
        /// The file that switches the light.
        switch: String,
    },
    /// What it did is not reported any more.
    ClearDrive {
        drive: String,
        did: DriveGivenUp,
    },
    SetSpare {
        drive: String,
        pool: String,
        /// It is a spare no longer.
        release: bool,
    },
}

/// Why the label of a pool that is deleted stays on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelLeft {
    /// The drive is not there.
    Away,
    /// It could not be erased.
    Error {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
}

impl InWords for DriveStep {
    fn text(&self) -> String {
        use DriveStep::*;
        match self {
            AddDrive { drive, pool, size_bytes } => {
                format!("add {drive} to pool {pool}, erasing what is on it, {}", size(*size_bytes))
            }
            EmptyDrive { drive, pool } => format!("empty {drive}, then take it out of pool {pool}"),
            KeepDrive { drive, pool } => format!("keep {drive} in pool {pool}"),
            RebuildDrive { drive } => format!("{drive} is out: what stood on it is rebuilt on the others"),
            EraseDrive { drive, size_bytes, holds } => {
                let holds = holds.as_ref().map_or(String::new(), |holds| format!(", which holds {holds}"));
                format!("erase {drive}, {}{holds}", size(*size_bytes))
            }
            EraseLabel { drive } => format!("erase the label of {drive}"),
            LeaveLabel { drive, cause: LabelLeft::Away } => format!(
                "{drive} is away and keeps its label: when it is back, `tangelo drive wipe DRIVE` erases it"
            ),
            LeaveLabel { drive, cause: LabelLeft::Error { error } } => {
                format!("{drive} keeps its label ({error}): `tangelo drive wipe {drive}` tries again")
            }
            BlinkDrive { drive, seconds } => format!(
                "{drive} is read for half of every second, {seconds} s long: its activity light blinks"
            ),
            LightBay { drive, seconds, switch } => {
                format!("the light of {drive}'s bay is on for {seconds} s ({switch})")
            }
            ClearDrive { drive, did } => format!("drive {drive}: {did}"),
            SetSpare { drive, pool, release: false } => {
                format!("{drive} is a spare of pool {pool}: it joins when a drive is lost")
            }
            SetSpare { drive, pool, release: true } => {
                format!("{drive} is no spare of pool {pool} any more")
            }
        }
    }
}
