//! Snapshots and clones, as they are asked for and told.

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
    /// None where the pool is offline.
    pub space: Option<CopySpace>,
}

/// What a volume in a pool, or a snapshot, takes of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CopySpace {
    /// Written since the snapshot that it stands on.
    pub written_bytes: u64,
    /// Held for it and for the snapshots below it.
    pub used_bytes: u64,
    /// Given back when it alone is deleted.
    pub unique_bytes: u64,
}

impl CopySpace {
    /// What others hold, too.
    pub fn shared_bytes(&self) -> u64 {
        self.used_bytes - self.unique_bytes
    }
}
