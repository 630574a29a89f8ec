//! Pools, as answers describe them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    DriveStatus, Health, PoolActivity, PoolSettings, ProblemFacts, RepairStatus, ScrubStatus, Worded,
};

/// A pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolStatus {
    pub name: String,
    /// 32 hexadecimal digits.
    pub id: String,
    pub protection: String,
    /// The version of its disk format; 0 if the pool is offline.
    #[serde(default)]
    pub format: u16,
    /// Columns of a segment, parity included.
    pub width: u8,
    /// Independent logs, fixed when the pool is made.
    pub lanes: u16,
    pub health: Health,
    /// The problems that make it unhealthy; none if it is healthy.
    #[serde(flatten, with = "causes_json")]
    #[schema(value_type = causes_json::CausesJson)]
    pub causes: Vec<ProblemFacts>,
    /// How many more drives may fail without loss of data.
    pub failures_survivable: u8,
    /// What the next one would lead to; null if it would not be survived.
    #[serde(default)]
    pub next_failure: Option<NextFailure>,
    /// Sum of the sizes of its volumes, without those in the bin.
    #[serde(default)]
    pub provisioned_bytes: u64,
    /// Bytes that volumes can hold; parity and reserve are already taken off.
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    /// Part of these that is known to be damaged beyond repair: hosts get errors when they read it.
    #[serde(default)]
    pub lost_bytes: u64,
    /// Bytes that the log's segments hold without parity: the capacity, and the reserve that cleaning works with.
    #[serde(default)]
    pub log_bytes: u64,
    /// Part of these that is kept free for cleaning and checkpoints: if less is free, cleaning begins.
    #[serde(default)]
    pub reserve_bytes: u64,
    #[serde(default)]
    pub references: PoolReferences,
    #[serde(default)]
    pub written: PoolWrites,
    #[serde(default)]
    pub map: PoolMap,
    pub drives: Vec<DriveStatus>,
    pub settings: PoolSettings,
    /// The running repair; null if there is none.
    pub repair: Option<RepairStatus>,
    pub scrub: ScrubStatus,
    /// What the pool is doing, and has done.
    #[serde(with = "crate::worded::list")]
    #[schema(value_type = Vec<Worded<PoolActivity>>)]
    pub activity: Vec<PoolActivity>,
}

impl PoolStatus {
    /// Why it is not healthy, in words; empty if it is healthy.
    pub fn reason(&self) -> String {
        reason_of(&self.causes)
    }
}

fn reason_of(causes: &[ProblemFacts]) -> String {
    causes.iter().map(ProblemFacts::reason).collect::<Vec<_>>().join("; ")
}

/// The causes in JSON, with the words that are made from them.
mod causes_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use utoipa::ToSchema;

    use crate::ProblemFacts;

    #[derive(Serialize, Deserialize, ToSchema)]
    #[schema(as = PoolCauses)]
    pub(super) struct CausesJson {
        /// Why it is not healthy, in words; empty if it is healthy.
        reason: String,
        /// The problems that make it unhealthy, without their words.
        #[serde(default)]
        causes: Vec<ProblemFacts>,
    }

    pub(super) fn serialize<S: Serializer>(causes: &[ProblemFacts], to: S) -> Result<S::Ok, S::Error> {
        CausesJson { reason: super::reason_of(causes), causes: causes.to_vec() }.serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<ProblemFacts>, D::Error> {
        CausesJson::deserialize(from).map(|json| json.causes)
    }
}

/// What the failure of one more drive would lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NextFailure {
    /// Whether enough drives would be left to rebuild on.
    pub rebuildable: bool,
    /// Space that would be missing for it, in the worst case.
    pub short_bytes: u64,
}

/// A pool's map, which gives the position of each block in the log, and its memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolMap {
    /// Space that the map takes in the log.
    pub bytes: u64,
    /// The share of the head's memory budget for it.
    pub memory_bytes: u64,
    /// Pages of the map that are in memory.
    pub cached_bytes: u64,
    /// Lookups of pages since the array was started.
    pub lookups: u64,
    /// Lookups of pages that were not in memory and had to be read from the drives.
    pub misses: u64,
}

/// Copies inside a pool that are references to what they were copied from (EXTENDED COPY).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolReferences {
    /// Bytes of volumes and snapshots that are references: what these copies would take as data.
    pub copied_bytes: u64,
    /// Part of the used bytes that only references hold, and no volume or snapshot: it is freed when the last of these
    /// references is gone.
    pub kept_bytes: u64,
}

/// What was written to a pool since the array was started, without headers and parity.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolWrites {
    /// By hosts; the array's own records, which are few, count here.
    pub host_bytes: u64,
    /// Live data that was written anew: by cleaning, which makes room, or by repair.
    pub moved_bytes: u64,
    /// Part of these that lacked redundancy, was damaged, or was on a drive that is being emptied.
    pub restored_bytes: u64,
    /// Pages and tables of the map.
    pub map_bytes: u64,
}
