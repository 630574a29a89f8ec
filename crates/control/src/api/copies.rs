//! Snapshots and clones, as they are asked for and told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do with snapshots of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyOrder {
    Snapshot(NewSnapshot),
    DeleteSnapshot { snapshot: String },
    RollBack { snapshot: String },
    Clone { snapshot: String, clone: NewClone },
}

/// A snapshot to be taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSnapshot {
    /// Unique among those of the volume.
    pub name: String,
}

/// A volume to be made of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClone {
    pub name: String,
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
    /// Written between the snapshot before it and this one; none where the pool is offline.
    pub own_bytes: Option<u64>,
    /// Given back when it is deleted; none where the pool is offline.
    pub freed_bytes: Option<u64>,
}

/// A volume's snapshots, the oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    pub schema: u32,
    pub snapshots: Vec<Snapshot>,
}
