//! What the array answers: how it is, and what a command changed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::copies::{Binned, CopySpace, Snapshot};
use super::request::GroupAccess;
use super::schedules::Schedule;

macro_rules! answer {
    ($($(#[$meta:meta])* pub struct $name:ident $body:tt)*) => {
        $($(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
        pub struct $name $body)*
    };
}

macro_rules! words {
    ($($(#[$meta:meta])* pub enum $name:ident $body:tt)*) => {
        $($(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name $body)*
    };
}

words! {
    /// How well something is; later is worse.
    pub enum Health {
        /// All is well.
        Healthy,
        /// Served, with less protection or less space than there should be.
        Degraded,
        /// Not served.
        Offline,
    }

    /// How a drive is doing.
    pub enum DriveState {
        /// Belongs to no pool.
        Unused,
        /// Joins a pool by itself when that has lost a drive.
        Spare,
        /// Served to hosts as it is, as a raw volume.
        Exported,
        /// In its pool, and up to date.
        Online,
        /// In its pool's label, but not found.
        Missing,
        /// Taken out of service because of errors, or because it missed writes.
        Failed,
        /// Being emptied, so that it can be taken away.
        Draining,
    }

    /// How a portal group reaches a volume (SPC-4 §5.16.2.4).
    pub enum AccessState {
        /// All commands are served, as fast as can be.
        ActiveOptimized,
        /// All commands are served; hosts prefer other groups.
        ActiveNonOptimized,
        /// Hosts may look, and not read or write.
        Standby,
        /// Less than that.
        Unavailable,
        /// On its way to another state; cannot be asked for.
        Transitioning,
    }

    /// What a drive was found to hold.
    pub enum Content {
        /// Nothing that is known.
        Blank,
        /// Something that is not ours, such as a file system.
        Foreign,
        /// A drive of a pool.
        Member,
        /// Ours, from a newer version of the program: left untouched.
        FutureVersion,
        /// Ours, with no readable label.
        Damaged,
        /// It could not be opened or read.
        Unreadable,
    }
}

answer! {
    /// A drive: a block device or a file.
    pub struct Drive {
        pub path: String,
        pub size_bytes: u64,
        /// Empty where unknown, as for a file.
        pub model: String,
        pub serial: String,
        /// Where it is plugged in, or was: the enclosure's slot, or the PCI slot's name. Empty where nobody says.
        pub bay: String,
        pub state: DriveState,
        pub content: Content,
        /// More about the content: what is foreign, which pool, what is damaged.
        pub detail: String,
        /// Name of the pool that it is a member of.
        pub pool: Option<String>,
        pub errors: DriveErrors,
        /// Median latency of reads and writes lately; `null` where there were too few.
        #[serde(default)]
        pub read_latency_us: Option<u64>,
        #[serde(default)]
        pub write_latency_us: Option<u64>,
        /// Its id in its pool, 32 hexadecimal digits; empty for a drive of no pool.
        #[serde(default)]
        pub id: String,
        /// What there is to know beside that, in plain words; may be empty.
        #[serde(default)]
        pub note: String,
    }

    /// What went wrong with a drive for as long as it has been in its pool.
    #[derive(Copy, Eq, Default)]
    pub struct DriveErrors {
        pub read: u64,
        pub write: u64,
        /// Reads that came back with the wrong content.
        pub checksum: u64,
    }

    pub struct Pool {
        pub name: String,
        /// 32 hexadecimal digits.
        pub id: String,
        pub protection: String,
        /// Columns of a segment, parity included.
        pub width: u8,
        /// Independent logs, fixed when the pool is made.
        pub lanes: u16,
        pub health: Health,
        /// Why it is not healthy; empty where it is.
        pub reason: String,
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
        pub drives: Vec<Drive>,
        pub settings: Settings,
        /// What is being written anew; null where nothing is.
        pub repair: Option<Repair>,
        pub scrub: Scrub,
        /// What goes on in the pool, in plain words.
        pub activity: Vec<String>,
    }

    /// What the failure of one more drive would lead to.
    #[derive(Copy, Eq)]
    pub struct NextFailure {
        /// Whether enough drives would be left to rebuild on.
        pub rebuildable: bool,
        /// Space that would be missing for it, whichever drive fails: the most.
        pub short_bytes: u64,
    }

    /// A pool's map, which tells where in the log each block is, and the memory for it.
    #[derive(Copy, Eq, Default)]
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
    #[derive(Copy, Eq, Default)]
    pub struct PoolReferences {
        /// Bytes of volumes and snapshots that are references: what these copies would take as data.
        pub copied_bytes: u64,
        /// Of the used bytes, those that no volume or snapshot holds, only references: they are given back when the last of
        /// these goes.
        pub kept_bytes: u64,
    }

    /// What was written to a pool since the array was started, without headers and parity.
    #[derive(Copy, Eq, Default)]
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

    /// What holds for a pool, set or not.
    #[derive(Copy, Eq)]
    pub struct Settings {
        /// The share of time that rebuilding and scrubbing may take while hosts are served.
        pub repair_share_percent: u8,
        /// Errors of a drive within the window that are borne before it is taken out, by kind.
        pub write_errors: u32,
        pub read_errors: u32,
        pub checksum_errors: u32,
        pub error_window_seconds: u32,
        /// A drive so many times slower than its siblings is emptied; 0: none is.
        pub slow_factor: u32,
        /// What is faster than this is not slow.
        pub slow_latency_ms: u32,
        /// For how long it must have been.
        pub slow_seconds: u32,
        /// A drive that does not answer for so long is given up, if its siblings answer; 0: never.
        pub hung_seconds: u32,
        /// Null: no scrub by itself.
        pub scrub_every_seconds: Option<u32>,
        /// How long a deleted volume stays in the bin; 0: not at all.
        pub bin_seconds: u32,
    }

    /// Data that is being written anew.
    pub struct Repair {
        /// `rebuilding`: it lacks redundancy; `repairing`: something in it is damaged; `emptying`: its drive is to go.
        pub what: String,
        pub done_bytes: u64,
        /// Done and still to do.
        pub total_bytes: u64,
        pub bytes_per_second: u64,
        /// Null where nothing got done lately.
        pub seconds_left: Option<u64>,
        /// Space that is missing for it.
        pub short_bytes: u64,
    }

    /// A pool's scrubs.
    pub struct Scrub {
        pub running: bool,
        /// Of the one that runs.
        pub segments_done: u64,
        pub segments_total: u64,
        pub batches_repaired: u64,
        pub batches_unreadable: u64,
        pub last: Option<LastScrub>,
    }

    /// How the last scrub ended.
    #[derive(Copy, Eq)]
    pub struct LastScrub {
        /// Milliseconds since 1970.
        pub ended_ms: u64,
        /// False where it was stopped before it had read everything.
        pub complete: bool,
        /// Batches in which something was wrong and was written anew.
        pub repaired: u64,
        /// Batches of which something can neither be read nor rebuilt.
        pub unreadable: u64,
    }

    pub struct Volume {
        pub id: u32,
        pub name: String,
        pub backing: Backing,
        pub size_bytes: u64,
        pub block_bytes: u32,
        pub write_back: bool,
        /// NAA identifier as hosts see it: 32 hexadecimal digits.
        pub naa: String,
        pub serial: String,
        pub health: Health,
        /// Why it is not healthy; empty where it is.
        pub reason: String,
        /// How each portal group reaches it.
        #[serde(default)]
        pub access: Vec<GroupAccess>,
        /// The snapshot that it began as, VOLUME@SNAPSHOT, or the volume that it was copied from, as they were called then; null
        /// where it is neither.
        #[serde(default)]
        pub clone_of: Option<String>,
        /// How many it has.
        #[serde(default)]
        pub snapshots: u64,
        /// Null where it is not in a pool that is online.
        #[serde(default)]
        pub space: Option<CopySpace>,
    }

    pub struct Host {
        pub name: String,
        pub initiators: Vec<String>,
        pub chap_user: Option<String>,
        pub mutual_chap_user: Option<String>,
        /// How many sessions it has now.
        pub sessions: u64,
    }

    pub struct Mapping {
        pub volume: String,
        pub host: String,
        pub lun: u16,
        pub read_only: bool,
    }

    pub struct Session {
        pub initiator: String,
        /// Name of its host; empty for a discovery session of a stranger.
        pub host: String,
        /// Addresses of both ends.
        pub peer: String,
        pub portal: String,
        pub shard: u16,
        pub discovery: bool,
        pub commands: u64,
        pub read_bytes: u64,
        pub written_bytes: u64,
    }

    pub struct Portal {
        pub address: String,
        /// The iSCSI portal group, which is a SCSI target port and a target port group.
        pub group: u16,
        /// Names of the hosts that may log in here; all where there is none.
        pub hosts: Vec<String>,
        /// Empty where it listens; otherwise why it does not.
        pub error: String,
    }

    /// Something wrong: what, why, what to do.
    pub struct Problem {
        pub health: Health,
        /// What it is about, such as `pool fast` or `drive /dev/sdb`.
        pub subject: String,
        pub reason: String,
        pub action: String,
    }

    /// The whole array as it is now.
    pub struct ArrayStatus {
        /// 32 hexadecimal digits.
        pub array_id: String,
        /// The iSCSI name of the target.
        pub target_name: String,
        pub health: Health,
        /// Worst first; empty where nothing is wrong.
        pub problems: Vec<Problem>,
        pub shards: u16,
        pub uptime_ms: u64,
        pub portals: Vec<Portal>,
        /// The drives that were looked at and serve no pool; those that do are with their pools.
        pub drives: Vec<Drive>,
        pub pools: Vec<Pool>,
        pub volumes: Vec<Volume>,
        /// Volumes that were deleted and can be brought back, the oldest first.
        #[serde(default)]
        pub bin: Vec<Binned>,
        #[serde(default)]
        pub schedules: Vec<Schedule>,
        pub hosts: Vec<Host>,
        pub mappings: Vec<Mapping>,
        pub sessions: Vec<Session>,
    }

    /// The array in a few sentences.
    pub struct Summary {
        pub health: Health,
        /// In plain language, why it is in that state.
        pub reason: String,
        /// What to do; empty where nothing needs doing.
        pub action: String,
        /// Whether everything that was acknowledged is there and readable; null where there is no pool.
        pub data_safe: Option<bool>,
        /// Whether it would still be after one more drive fails; null where there is no pool.
        pub survives_next_failure: Option<bool>,
        /// Both, in plain language.
        pub data: String,
    }

    pub struct Status {
        pub schema: u32,
        /// Of the program.
        pub version: String,
        pub summary: Summary,
        /// Commands with which a Linux host connects.
        pub connect: Vec<String>,
        pub array: ArrayStatus,
        /// The snapshots with what each takes, counted afresh; null where they were not asked for, or there are more of them.
        #[serde(default)]
        pub snapshots: Option<Vec<Snapshot>>,
    }

    pub struct DriveList {
        pub schema: u32,
        pub drives: Vec<Drive>,
    }

    pub struct PoolList {
        pub schema: u32,
        pub pools: Vec<Pool>,
    }

    pub struct VolumeList {
        pub schema: u32,
        pub volumes: Vec<Volume>,
    }

    pub struct HostList {
        pub schema: u32,
        pub hosts: Vec<Host>,
    }

    pub struct MappingList {
        pub schema: u32,
        pub mappings: Vec<Mapping>,
    }

    /// What a command changed, or with `dry_run` would have changed.
    pub struct Changed {
        pub schema: u32,
        pub dry_run: bool,
        /// One line for each change, for people to read.
        pub lines: Vec<String>,
        /// Hosts that gained or lost something by it.
        pub hosts_affected: Vec<String>,
        /// What was made, as it is now; null for a removal or a dry run.
        pub made: Option<Made>,
    }
}

impl ArrayStatus {
    /// The pools' drives in their order, then the others.
    pub fn every_drive(&self) -> Vec<Drive> {
        let members = self.pools.iter().flat_map(|pool| &pool.drives);
        members.chain(&self.drives).cloned().collect()
    }
}

/// Where a volume's blocks are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// In the pool of this name.
    Pool(String),
    /// The block device or file of this path.
    Raw(String),
    Memory,
    Null,
}

/// A thing that a command made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    Pool(Box<Pool>),
    Volume(Box<Volume>),
    Host(Host),
    Mapping(Mapping),
    Snapshots(Vec<Snapshot>),
}
