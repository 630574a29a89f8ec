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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BinnedStatus {
    pub name: String,
    pub pool: String,
    pub size_bytes: u64,
    /// Milliseconds since 1970.
    pub deleted_ms: u64,
    /// When it goes for good, unless its pool runs full before.
    pub eradicated_ms: u64,
    /// Those that are in the bin with it.
    pub snapshots: u64,
    /// None where the pool is offline.
    pub space: Option<CopySpace>,
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
    /// The schedule that has taken it.
    pub schedule: Option<String>,
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

/// How many snapshots are kept: the first of each of the last so many hours, days, weeks and months (UTC).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Keep {
    pub hourly: u32,
    pub daily: u32,
    pub weekly: u32,
    pub monthly: u32,
}

/// A schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleStatus {
    pub name: String,
    /// Those in the bin are left out, here as in its snapshots.
    pub volumes: Vec<String>,
    pub keep: Keep,
    /// Milliseconds since 1970; `None`: it has taken none.
    pub last_ms: Option<u64>,
    pub next_ms: u64,
    /// Those that it has taken and that are there.
    pub snapshots: u64,
}
