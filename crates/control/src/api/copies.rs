//! Snapshots and clones, as they are asked for and told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do with snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyOrder {
    Snapshot(NewSnapshots),
    DeleteSnapshot {
        volume: String,
        snapshot: String,
    },
    RollBack {
        volume: String,
        snapshot: String,
    },
    Clone {
        volume: String,
        snapshot: String,
        clone: NewClone,
    },
    /// A volume that begins as what another is now.
    CopyVolume {
        volume: String,
        copy: NewClone,
    },
    Refresh {
        volume: String,
        snapshot: String,
        refresh: Refresh,
    },
    /// A clone takes over the snapshots that it stands on.
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

/// Snapshots to be taken, all at one moment: 1 to 64, each of another volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSnapshots {
    pub snapshots: Vec<NewSnapshot>,
}

/// A snapshot to be taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSnapshot {
    /// The volume, which is in a pool.
    pub volume: String,
    /// Unique among those of the volume.
    pub name: String,
}

/// A volume to be made of a snapshot, or of another volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClone {
    pub name: String,
}

/// Clones that are to become clones of another snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// Those of this snapshot, VOLUME@SNAPSHOT, or of any of this volume's, VOLUME, as they were called when the clones were
    /// made.
    pub clones_of: String,
    /// Those that are mapped, too: their hosts lose them and get them again with the new content. Else such are refused.
    #[serde(default)]
    pub remap: bool,
}

/// What a volume was at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    pub volume: String,
    pub name: String,
    /// The volume's then.
    pub size_bytes: u64,
    /// When it was taken, milliseconds since 1970.
    pub created_ms: u64,
    /// The schedule that has taken it; null where none has.
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

/// Snapshots, in the order in which they were taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    pub schema: u32,
    pub snapshots: Vec<Snapshot>,
}

/// A volume in the bin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Binned {
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
    /// Of the volume itself; null where its pool is offline.
    pub space: Option<CopySpace>,
}

/// What is in the bin, the oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bin {
    pub schema: u32,
    pub bin: Vec<Binned>,
}
