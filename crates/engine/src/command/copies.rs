//! Snapshots and clones, as they are asked for and told.

/// A change that has to do with snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyOrder {
    /// What the volume is now, with all that was acknowledged.
    Snapshot {
        volume: String,
        name: String,
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
}

/// A snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotStatus {
    pub volume: String,
    pub name: String,
    /// The volume's then.
    pub size_bytes: u64,
    /// Milliseconds since 1970.
    pub created_ms: u64,
    /// Written between the snapshot before it and this one. None where the pool is offline.
    pub own_bytes: Option<u64>,
    /// Given back when it is deleted. None where the pool is offline.
    pub freed_bytes: Option<u64>,
}
