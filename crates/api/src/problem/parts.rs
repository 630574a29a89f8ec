//! The values in the facts of problems, and the words of each.

use std::fmt;

use base::calendar::moment;
use base::limits::DRIVE_BYTES_MIN;
use base::units::size;
use env::IoError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::failure::{LaneFailure, PoolFailure};
use super::io_error::IoErrorName;

/// Which limit of sessions is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoginLimit {
    Host,
    /// Of the network address from which the host logs in.
    Address,
    /// Of one core of the head.
    Core,
}

/// Why the control plane cannot keep events.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalTrouble {
    /// The file that cannot be written.
    pub path: String,
    #[serde(with = "IoErrorName")]
    #[schema(value_type = IoErrorName)]
    pub error: IoError,
}

/// Why the device of a raw volume cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceTrouble {
    Error {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
    /// It has fewer bytes than the volume.
    Smaller { has_bytes: u64 },
    /// Its serial number is not that of the device that was served.
    Another,
}

impl fmt::Display for DeviceTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceTrouble::Error { error } => error.fmt(f),
            DeviceTrouble::Smaller { has_bytes } => {
                write!(f, "it has {} now, less than the volume", size(*has_bytes))
            }
            DeviceTrouble::Another => {
                f.write_str("another device, with another serial number, is at its path")
            }
        }
    }
}

/// Why a pool is not served.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolOffline {
    Opening,
    /// Another process holds this drive, or it is mounted.
    WaitsForDrive {
        path: String,
    },
    Stopping,
    Deleting,
    /// No drive has shown the label of this pool.
    NotFound,
    NoUsableDrive,
    TooManyFailed,
    CatalogUnreadable {
        cause: LaneFailure,
    },
    CannotOpen {
        cause: PoolFailure,
    },
}

impl PoolOffline {
    pub(super) fn is_of_two_heads(&self) -> bool {
        matches!(self, PoolOffline::CannotOpen { cause: PoolFailure::OfTwoHeads })
    }
}

impl fmt::Display for PoolOffline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolOffline::Opening => f.write_str("it is being opened"),
            PoolOffline::WaitsForDrive { path } => {
                write!(f, "it waits for {path}, which is {}", IoError::Busy)
            }
            PoolOffline::Stopping => f.write_str("the array is stopping"),
            PoolOffline::Deleting => f.write_str("it is being deleted"),
            PoolOffline::NotFound => f.write_str("none of its drives has been found"),
            PoolOffline::NoUsableDrive => f.write_str("none of its drives can be used"),
            PoolOffline::TooManyFailed => f.write_str("more drives have failed than its protection allows"),
            PoolOffline::CatalogUnreadable { cause } => write!(f, "its catalog cannot be read: {cause}"),
            PoolOffline::CannotOpen { cause } => cause.fmt(f),
        }
    }
}

/// A drive that its pool cannot use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LostDrive {
    /// Its path; `drive` and its id where no path is known.
    pub drive: String,
    /// Empty where it is not known.
    pub bay: String,
    pub how: DriveLoss,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriveLoss {
    Missing,
    /// It was taken out for its errors.
    Failed,
    /// It is here, but could not be opened.
    Unusable {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
}

impl fmt::Display for LostDrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.drive)?;
        if !self.bay.is_empty() {
            write!(f, " (bay {})", self.bay)?;
        }
        match self.how {
            DriveLoss::Missing => f.write_str(" is missing"),
            DriveLoss::Failed => f.write_str(" has failed"),
            DriveLoss::Unusable { error } => write!(f, " cannot be used: {error}"),
        }
    }
}

/// Whose writes are refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedWrites {
    pub host: String,
    pub volume: String,
}

/// What a pool could give back.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolRoom {
    pub snapshots: u64,
    pub binned_volumes: u64,
    /// What only the bin keeps; 0 also where nobody has counted it.
    pub bin_bytes: u64,
}

/// Why a drive stays in service although it has made too many errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeptInService {
    /// As many drives are out as the protection allows.
    NoneToSpare,
    /// Something may stand nowhere else.
    Needed,
}

impl fmt::Display for KeptInService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeptInService::NoneToSpare => "the pool has lost as many drives as it can do without",
            KeptInService::Needed => "something may be readable only with it until repairs are done",
        })
    }
}

/// What a drive did before its pool went on without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriveTrouble {
    /// It made too many errors.
    Failed,
    Missing,
    /// It was much slower than its siblings.
    Slow,
}

impl From<catalog::Trouble> for DriveTrouble {
    fn from(trouble: catalog::Trouble) -> DriveTrouble {
        match trouble {
            catalog::Trouble::Failed => DriveTrouble::Failed,
            catalog::Trouble::Missing => DriveTrouble::Missing,
            catalog::Trouble::Slow => DriveTrouble::Slow,
        }
    }
}

/// A drive without which its pool goes on. Texts are empty if nothing is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveGivenUp {
    pub pool: String,
    pub trouble: DriveTrouble,
    pub model: String,
    pub serial: String,
    pub bay: String,
    /// Milliseconds since 1970.
    pub given_up_ms: u64,
    /// The hot spare that has joined in its place.
    pub spare: Option<String>,
}

impl From<&catalog::FailedDrive> for DriveGivenUp {
    fn from(failed: &catalog::FailedDrive) -> DriveGivenUp {
        let catalog::DriveName { model, serial, bay, .. } = failed.name.clone();
        DriveGivenUp {
            pool: failed.pool.to_string(),
            trouble: failed.trouble.into(),
            model,
            serial,
            bay,
            given_up_ms: failed.since_ms,
            spare: failed.spare.clone(),
        }
    }
}

impl fmt::Display for DriveGivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.trouble {
            DriveTrouble::Failed => "was taken out for its errors",
            DriveTrouble::Missing => "was not there any more",
            DriveTrouble::Slow => "was much slower than its siblings",
        };
        let device = match self.serial.is_empty() {
            true => String::new(),
            false => format!("{} serial {}", self.model.trim(), self.serial).trim_start().to_owned(),
        };
        let bay = if self.bay.is_empty() { String::new() } else { format!("bay {}", self.bay) };
        let known: Vec<String> = [device, bay].into_iter().filter(|part| !part.is_empty()).collect();
        let which = if known.is_empty() { "it".to_owned() } else { format!("it ({})", known.join(", ")) };
        let when = moment(self.given_up_ms);
        write!(f, "{which} {what}, {when}: pool {} goes on without it", self.pool)?;
        match &self.spare {
            Some(spare) => write!(f, ", with spare {spare} in its place"),
            None => Ok(()),
        }
    }
}

/// What a file is used for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum FileUse {
    /// It is a drive of this pool.
    Pool(String),
    /// It is the device of this raw volume.
    Volume(String),
}

/// Why a spare could not join.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpareObstacle {
    Absent,
    GivenUp(DriveGivenUp),
    TooSmall {
        has_bytes: u64,
    },
    /// It is not blank; `what` is what was found on it.
    Holds {
        what: String,
    },
    /// It has the label of this pool.
    Member {
        pool: String,
    },
    OtherVersion,
    /// It has a label that cannot be read.
    Damaged,
    /// It could not be opened or read.
    Unreadable {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
}

impl fmt::Display for SpareObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpareObstacle::Absent => f.write_str("it is not there"),
            SpareObstacle::GivenUp(given_up) => given_up.fmt(f),
            SpareObstacle::TooSmall { has_bytes } => {
                write!(f, "it has {}, the smallest drive has {}", size(*has_bytes), size(DRIVE_BYTES_MIN))
            }
            SpareObstacle::Holds { what } => write!(f, "it holds {what}"),
            SpareObstacle::Member { pool } => write!(f, "it holds a drive of pool {pool}"),
            SpareObstacle::OtherVersion => f.write_str("it holds a drive of another Tangelo's pool"),
            SpareObstacle::Damaged => f.write_str("neither of its labels can be read"),
            SpareObstacle::Unreadable { error: IoError::TimedOut } => f.write_str("it does not answer"),
            SpareObstacle::Unreadable { error } => error.fmt(f),
        }
    }
}
