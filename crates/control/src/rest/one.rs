//! Answers about one thing, with what belongs to it.

use api::{
    BinnedStatus, DriveStatus, HostStatus, MappingStatus, PoolStatus, Problem, ScheduleStatus, SessionStatus,
    SnapshotStatus, VolumeStatus,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneDrive {
    pub schema: u32,
    pub drive: DriveStatus,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OnePool {
    pub schema: u32,
    pub pool: PoolStatus,
    /// In it.
    pub volumes: Vec<VolumeStatus>,
    pub bin: Vec<BinnedStatus>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneVolume {
    pub schema: u32,
    pub volume: VolumeStatus,
    /// Who sees it.
    pub mappings: Vec<MappingStatus>,
    /// Its own, with what each takes, counted afresh.
    pub snapshots: Vec<SnapshotStatus>,
    /// The schedules that take them.
    pub schedules: Vec<ScheduleStatus>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A snapshot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneSnapshot {
    pub schema: u32,
    pub snapshot: SnapshotStatus,
    /// Volumes that began as it.
    pub clones: Vec<String>,
}

/// A schedule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneSchedule {
    pub schema: u32,
    pub schedule: ScheduleStatus,
}

/// A host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneHost {
    pub schema: u32,
    pub host: HostStatus,
    /// What it sees.
    pub mappings: Vec<MappingStatus>,
    pub sessions: Vec<SessionStatus>,
}

/// A mapping.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OneMapping {
    pub schema: u32,
    pub mapping: MappingStatus,
}
