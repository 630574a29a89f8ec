//! Answers: the array's values, with the version of the schema.

use api::{
    AlertChannel, AlertTestResult, ArrayStatus, BinnedStatus, Change, ChangeStep, DriveStatus, Event, Health,
    HostStatus, Made, MappingStatus, PairStatus, PoolStatus, ScheduleStatus, SnapshotStatus, VolumeStatus,
    Worded,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::SCHEMA;

/// The array in a few sentences.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    pub health: Health,
    /// In plain language, why it is in that state.
    pub reason: String,
    /// What to do; empty if nothing needs doing.
    pub action: String,
    /// Whether everything that was acknowledged is there and readable; null if there is no pool.
    pub data_safe: Option<bool>,
    /// Whether it would still be after one more drive fails; null if there is no pool.
    pub survives_next_failure: Option<bool>,
    /// Both, in plain language.
    pub data: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    pub schema: u32,
    /// Of the program.
    pub version: String,
    pub summary: Summary,
    /// Commands with which a Linux host connects.
    pub connect: Vec<String>,
    pub array: ArrayStatus,
    /// The two heads; null if the array has one.
    #[serde(default)]
    pub pair: Option<PairStatus>,
    /// The snapshots with what each takes, counted afresh; null if they were not asked for, or there are more of them.
    #[serde(default)]
    pub snapshots: Option<Vec<SnapshotStatus>>,
}

/// The two heads of the array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pair {
    pub schema: u32,
    pub pair: PairStatus,
}

/// The channels of a head's alerts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertList {
    pub schema: u32,
    pub channels: Vec<AlertChannel>,
}

/// What has become of test messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertTested {
    pub schema: u32,
    pub results: Vec<AlertTestResult>,
}

/// What the command line exported; the API answers with the content itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Exported {
    pub schema: u32,
    /// VOLUME or VOLUME@SNAPSHOT.
    pub source: String,
    pub file: String,
    pub size_bytes: u64,
    /// What came over the connection; the rest is zeros, or was there.
    pub data_bytes: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveList {
    pub schema: u32,
    pub drives: Vec<DriveStatus>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    pub schema: u32,
    pub pools: Vec<PoolStatus>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeList {
    pub schema: u32,
    pub volumes: Vec<VolumeStatus>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HostList {
    pub schema: u32,
    pub hosts: Vec<HostStatus>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MappingList {
    pub schema: u32,
    pub mappings: Vec<MappingStatus>,
}

/// What a command changed, or with `dry_run` would have changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    pub schema: u32,
    pub dry_run: bool,
    #[serde(with = "api::worded::list")]
    #[schema(value_type = Vec<Worded<ChangeStep>>)]
    pub steps: Vec<ChangeStep>,
    /// Hosts that gained or lost something by it.
    pub hosts_affected: Vec<String>,
    /// What was made, as it is now; null for a removal or a dry run.
    pub made: Option<Made>,
}

/// Snapshots, in the order in which they were taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    pub schema: u32,
    pub snapshots: Vec<SnapshotStatus>,
}

/// What is in the bin, the oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bin {
    pub schema: u32,
    pub bin: Vec<BinnedStatus>,
}

/// Events, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    pub schema: u32,
    pub events: Vec<Event>,
    /// Events before or between these that are not kept any more.
    pub dropped: u64,
    /// The number of the newest event that there is.
    pub newest: u64,
}

/// Schedules, in order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    pub schema: u32,
    pub schedules: Vec<ScheduleStatus>,
}

impl From<Change> for Changed {
    fn from(change: Change) -> Changed {
        let Change { dry_run, steps, hosts_affected, made } = change;
        Changed { schema: SCHEMA, dry_run, steps, hosts_affected, made }
    }
}
