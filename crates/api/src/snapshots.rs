//! Commands for snapshots and clones, and how answers describe them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A change that has to do with snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyOrder {
    /// What volumes are now, all at one moment, with all that was acknowledged: each with its snapshot's name.
    Snapshot {
        snapshots: Vec<(String, String)>,
    },
    DeleteSnapshot {
        volume: String,
        snapshot: String,
    },
    /// The volume is again what the snapshot is; what was written since is gone. Refused while it is mapped.
    RollBack {
        volume: String,
        snapshot: String,
    },
    /// A volume of its own that begins as what the snapshot is.
    Clone {
        volume: String,
        snapshot: String,
        name: String,
    },
    /// A volume of its own that begins as what another is now, with all that was acknowledged.
    CopyVolume {
        volume: String,
        name: String,
    },
    /// Clones of another snapshot, or of any of a volume, become clones of this one, and keep who they are. Refused while one
    /// of them is mapped, unless `remap` has them unmapped and mapped again.
    Refresh {
        volume: String,
        snapshot: String,
        clones_of: String,
        remap: bool,
    },
    /// A clone takes over the snapshots that it stands on, as far down as they are its origin's.
    Promote {
        volume: String,
    },
    /// Brings back what is in the bin.
    Undelete {
        volume: String,
    },
    /// Deletes for good what is in the bin.
    Eradicate {
        volume: String,
    },
}

/// A volume in the bin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BinnedStatus {
    pub name: String,
    /// The name of its pool.
    pub pool: String,
    pub size_bytes: u64,
    /// When it was deleted, milliseconds since 1970.
    pub deleted_ms: u64,
    /// When it goes for good, unless its pool runs full before.
    pub eradicated_ms: u64,
    /// How many snapshots are in the bin with it.
    pub snapshots: u64,
    /// Of the volume itself; null if its pool is offline.
    pub space: Option<CopySpace>,
}

/// What a volume was at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotStatus {
    pub volume: String,
    pub name: String,
    /// The volume's then.
    pub size_bytes: u64,
    /// When it was taken, milliseconds since 1970.
    pub created_ms: u64,
    /// The schedule that has taken it; null if none has.
    #[serde(default)]
    pub schedule: Option<String>,
    /// Null where the pool is offline.
    pub space: Option<CopySpace>,
}

/// What a volume in a pool, or a snapshot, takes of it; parity is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CopySpace {
    /// Written since the snapshot that it stands on: the one before it, or for a clone the one that it began as.
    pub written_bytes: u64,
    /// Held for it and for the snapshots below it: `unique_bytes` and `shared_bytes` together.
    pub used_bytes: u64,
    /// Given back when it alone is deleted; of a volume, at least.
    pub unique_bytes: u64,
    /// Held for other snapshots, volumes and clones, too.
    pub shared_bytes: u64,
}

impl CopySpace {
    /// What is not unique is shared.
    pub fn new(written_bytes: u64, used_bytes: u64, unique_bytes: u64) -> CopySpace {
        CopySpace {
            written_bytes,
            used_bytes,
            unique_bytes,
            shared_bytes: used_bytes.saturating_sub(unique_bytes),
        }
    }
}

/// A change of what is taken by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScheduleOrder {
    Create {
        name: String,
        volumes: Vec<String>,
        keep: Keep,
    },
    /// The snapshots that it has taken stay.
    Delete {
        name: String,
    },
}

/// How many snapshots are kept, up to 1000 of each kind: the first of each of the last so many hours, days, weeks (from Monday
/// on) and months, by UTC.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    pub hourly: u32,
    pub daily: u32,
    pub weekly: u32,
    pub monthly: u32,
}

/// A schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleStatus {
    pub name: String,
    /// Without those in the bin, of which none are taken.
    pub volumes: Vec<String>,
    pub keep: Keep,
    /// When it has last taken snapshots, milliseconds since 1970; null: never.
    pub last_ms: Option<u64>,
    /// When it takes the next.
    pub next_ms: u64,
    /// How many that it has taken are there.
    pub snapshots: u64,
}
