//! One thing, with what belongs to it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::copies::{Binned, Snapshot};
use super::schedules::Schedule;
use super::status::{Drive, Host, Mapping, Pool, Problem, Session, Volume};

/// A drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneDrive {
    pub schema: u32,
    pub drive: Drive,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OnePool {
    pub schema: u32,
    pub pool: Pool,
    /// In it.
    pub volumes: Vec<Volume>,
    pub bin: Vec<Binned>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneVolume {
    pub schema: u32,
    pub volume: Volume,
    /// Who sees it.
    pub mappings: Vec<Mapping>,
    /// Its own, with what each takes, counted afresh.
    pub snapshots: Vec<Snapshot>,
    /// The schedules that take them.
    pub schedules: Vec<Schedule>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A snapshot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneSnapshot {
    pub schema: u32,
    pub snapshot: Snapshot,
    /// Volumes that began as it.
    pub clones: Vec<String>,
}

/// A schedule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneSchedule {
    pub schema: u32,
    pub schedule: Schedule,
}

/// A host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneHost {
    pub schema: u32,
    pub host: Host,
    /// What it sees.
    pub mappings: Vec<Mapping>,
    pub sessions: Vec<Session>,
}

/// A mapping.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneMapping {
    pub schema: u32,
    pub mapping: Mapping,
}
