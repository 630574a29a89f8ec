//! Figures of the array for monitoring, as plain numbers. Names and units of series are made by the control plane.
//!
//! A counter only grows, from the start of the program. When a session ends, its counts are kept.

use base::LatencyHistogram;

use crate::{DriveStatus, Health, PoolStatus, PortalStatus, Problem};

/// Commands of one kind that were answered. Counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    /// Bytes of blocks that were read or stored.
    pub bytes: u64,
    /// Commands that the array could not carry out.
    pub failures: u64,
    /// Time from the arrival of a command with its data until its answer is ready to be sent. Its count is the number of
    /// commands.
    pub latency: LatencyHistogram,
}

impl Operations {
    pub fn merge(&mut self, other: &Operations) {
        self.bytes += other.bytes;
        self.failures += other.failures;
        self.latency.merge(&other.latency);
    }
}

/// Commands of hosts, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    pub reads: Operations,
    pub writes: Operations,
    pub others: Operations,
}

impl Traffic {
    pub fn merge(&mut self, other: &Traffic) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.others.merge(&other.others);
    }

    /// All commands.
    pub fn commands(&self) -> u64 {
        [&self.reads, &self.writes, &self.others].map(|kind| kind.latency.count()).iter().sum()
    }
}

/// Commands that were answered, and how many are running or waiting now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Load {
    pub traffic: Traffic,
    pub in_flight: u64,
}

impl Load {
    pub fn merge(&mut self, other: &Load) {
        self.traffic.merge(&other.traffic);
        self.in_flight += other.in_flight;
    }
}

/// Sessions with a load, discovery sessions not among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionsLoad {
    pub load: Load,
    /// Sessions now.
    pub sessions: u64,
    /// Sessions that have begun. A counter.
    pub logins: u64,
    /// Logins that were refused or not finished. A counter.
    pub refused_logins: u64,
}

impl SessionsLoad {
    pub fn merge(&mut self, other: &SessionsLoad) {
        self.load.merge(&other.load);
        self.sessions += other.sessions;
        self.logins += other.logins;
        self.refused_logins += other.refused_logins;
    }
}

/// All figures of the array.
#[derive(Clone, PartialEq, Debug)]
pub struct Metrics {
    pub array_id: String,
    pub target_name: String,
    pub health: Health,
    /// The same as in the status.
    pub problems: Vec<Problem>,
    pub uptime_ms: u64,
    pub pools: Vec<PoolStatus>,
    /// Drives of no pool.
    pub drives: Vec<DriveStatus>,
    pub lanes: Vec<LaneMetrics>,
    pub pool_drives: Vec<PoolDriveMetrics>,
    pub volumes: Vec<VolumeMetrics>,
    /// Volumes that are gone.
    pub other_volumes: Load,
    pub hosts: Vec<(String, SessionsLoad)>,
    /// Hosts that are gone, or have another name now.
    pub other_hosts: SessionsLoad,
    pub portals: Vec<(PortalStatus, SessionsLoad)>,
    /// Portals that are gone.
    pub other_portals: SessionsLoad,
    pub shards: Vec<ShardMetrics>,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeMetrics {
    pub name: String,
    /// Empty for a volume that is in no pool.
    pub pool: String,
    pub size_bytes: u64,
    pub load: Load,
}

/// A shard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShardMetrics {
    pub shard: u16,
    /// Commands of all its sessions, by the shard that served the session.
    pub sessions: SessionsLoad,
    /// Memory that commands' data takes now, and how much it may take.
    pub data_bytes: u64,
    pub data_bytes_max: u64,
}

/// What the lanes of a pool did with one of its drives since they were opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolDriveMetrics {
    /// The drive's id in its pool, as in [`DriveStatus::id`].
    pub id: String,
    pub reads: DriveOperations,
    pub writes: DriveOperations,
    /// Reads, writes and flushes that have not ended.
    pub in_flight: u64,
}

/// Operations of one kind on a drive, failed ones among them. Counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveOperations {
    pub bytes: u64,
    pub latency: LatencyHistogram,
}

/// A lane of a pool. Counters begin when the lane is opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaneMetrics {
    pub pool: String,
    pub lane: u16,
    pub host_written_bytes: u64,
    pub moved_bytes: u64,
    pub restored_bytes: u64,
    pub map_written_bytes: u64,
    pub read_bytes: u64,
    pub rebuilt_bytes: u64,
    pub healed_bytes: u64,
    pub batches: u64,
    pub checkpoints: u64,
    pub cleaned_segments: u64,
    pub segments: u64,
    pub free_segments: u64,
    pub degraded_segments: u64,
    /// Entries that wait for a batch, and batches that are being written.
    pub waiting_entries: u64,
    pub batches_in_flight: u64,
    pub map_memory_bytes: u64,
    pub map_cached_bytes: u64,
    pub map_dirty_bytes: u64,
    pub map_lookups: u64,
    pub map_misses: u64,
}
