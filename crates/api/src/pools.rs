//! Pools, as answers describe them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DriveStatus, Health, PoolSettings, ProblemFacts, RepairStatus, ScrubStatus};

/// A pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolStatus {
    pub name: String,
    /// 32 hexadecimal digits.
    pub id: String,
    pub protection: String,
    /// Columns of a segment, parity included.
    pub width: u8,
    /// Independent logs, fixed when the pool is made.
    pub lanes: u16,
    pub health: Health,
    /// The problems that make it unhealthy; none if it is healthy.
    #[serde(flatten, with = "causes_json")]
    #[schema(value_type = causes_json::CausesJson)]
    pub causes: Vec<ProblemFacts>,
    /// Drives that may still fail without loss of data.
    pub failures_survivable: u8,
    /// What the next one would lead to; null where it would not be survived.
    #[serde(default)]
    pub next_failure: Option<NextFailure>,
    /// What its volumes say they have, together; what is in the bin is not counted.
    #[serde(default)]
    pub provisioned_bytes: u64,
    /// Bytes that volumes can hold; parity and reserve are already taken off.
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    /// Of these, what is damaged beyond repair, as far as is known: hosts get errors where it cannot be read.
    #[serde(default)]
    pub lost_bytes: u64,
    /// Bytes that the log's segments hold without parity: the capacity, and the reserve that cleaning works with.
    #[serde(default)]
    pub log_bytes: u64,
    /// Of these, what is kept free for cleaning and checkpoints: where less is free, cleaning begins.
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
    /// What is being written anew; null where nothing is.
    pub repair: Option<RepairStatus>,
    pub scrub: ScrubStatus,
    /// What goes on in the pool, in plain words.
    pub activity: Vec<String>,
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
    /// Space that would be missing for it, whichever drive fails: the most.
    pub short_bytes: u64,
}

/// A pool's map, which tells where in the log each block is, and the memory for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolMap {
    /// What the map takes in the log.
    pub bytes: u64,
    /// Memory that the pool has for it, of the head's budget.
    pub memory_bytes: u64,
    /// Pages of the map that are in memory.
    pub cached_bytes: u64,
    /// Pages that were looked for in memory since the array was started.
    pub lookups: u64,
    /// Of those, the ones that were not there and had to be read from the drives.
    pub misses: u64,
}

/// Copies inside a pool that are references to what they were copied from (EXTENDED COPY).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolReferences {
    /// Bytes of volumes and snapshots that are references: what these copies would take as data.
    pub copied_bytes: u64,
    /// Of the used bytes, those that no volume or snapshot holds, only references: they are given back when the last of
    /// these goes.
    pub kept_bytes: u64,
}

/// What was written to a pool since the array was started, without headers and parity.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolWrites {
    /// By hosts; the array's own records, which are few, count here.
    pub host_bytes: u64,
    /// Live data that was written anew: by cleaning, which makes room, or by repair.
    pub moved_bytes: u64,
    /// Of those, what lacked redundancy, was damaged, or stood on a drive that is to go.
    pub restored_bytes: u64,
    /// Of the map: its pages and tables.
    pub map_bytes: u64,
}
