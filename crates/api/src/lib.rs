//! The management vocabulary: what the control plane may ask of the array, and what it is answered. Plain values, all of
//! them `Send`.
//!
//! Every command goes to shard 0 and is answered exactly once through its [`ReplyChannel`]. A command with `dry_run` checks everything and changes nothing; its answer describes what
//! would have changed. Secrets travel in here only towards the array, never back.

mod error;
mod names;
mod pool_usage;
mod problem;
mod reply;
mod snapshots;
mod upkeep;

use std::fmt;
use std::net::SocketAddr;

pub use error::{CommandError, CommandErrorKind};
pub use names::{HostUpdate, Named};
pub use pool_usage::{PoolMap, PoolReferences, PoolWrites};
pub use problem::{Harm, Problem};
pub use reply::{Caller, ReplyChannel, patient_caller};
pub use reservation::AccessState;
pub use snapshots::{
    BinnedStatus, CopyOrder, CopySpace, Keep, ScheduleOrder, ScheduleStatus, SnapshotStatus,
};
pub use upkeep::{LastScrub, NewSettings, PoolSettings, RepairStatus, ScrubStatus, Upkeep};

/// A command from the administrator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Probes every configured drive. → [`Reply::Drives`]
    DriveList,
    /// → [`Reply::Changed`]
    PoolCreate { pool: NewPool, dry_run: bool },
    /// Refused while it has volumes; and while its bin has some, unless `eradicate`. Its drives are blank afterwards.
    /// → [`Reply::Changed`]
    PoolDelete { name: String, eradicate: bool, dry_run: bool },
    /// → [`Reply::Changed`]
    Upkeep { upkeep: Upkeep, dry_run: bool },
    /// Reads a drive for a while, in a rhythm, so that its activity light shows where it is. → [`Reply::Changed`]
    DriveLocate { path: String, seconds: u32 },
    /// The drives to look at from now on. → [`Reply::Changed`]
    DrivesFound(Vec<String>),
    /// → [`Reply::Changed`]
    VolumeCreate { volume: NewVolume, dry_run: bool },
    /// Hosts are told (2Ah/09h). To a smaller size only where nothing is mapped behind it, or with `force`.
    /// → [`Reply::Changed`]
    VolumeResize { name: String, size_bytes: u64, force: bool, dry_run: bool },
    /// Gives a portal group another access state for a volume; hosts are told (2Ah/06h). → [`Reply::Changed`]
    VolumeAccess { name: String, access: GroupAccess, dry_run: bool },
    /// Into the bin, where it is in a pool and not `eradicate`. Refused while it is mapped, unless `unmap` ends those
    /// mappings too. → [`Reply::Changed`]
    VolumeDelete { name: String, unmap: bool, eradicate: bool, dry_run: bool },
    /// Snapshots, clones, and what is in the bin. → [`Reply::Changed`]
    Copy { order: CopyOrder, dry_run: bool },
    /// Snapshots that are taken by themselves. → [`Reply::Changed`]
    Schedule { order: ScheduleOrder, dry_run: bool },
    /// Of a volume, or of all. → [`Reply::Snapshots`]
    SnapshotList { volume: Option<String> },
    /// → [`Reply::Changed`]
    HostCreate { host: NewHost, dry_run: bool },
    /// Sessions that are still valid go on. → [`Reply::Changed`]
    HostUpdate { name: String, update: HostUpdate, dry_run: bool },
    /// Another name for what there is; hosts see no difference. → [`Reply::Changed`]
    Rename { of: Named, name: String, dry_run: bool },
    /// Erases what a drive that is not in use holds at its beginning and its end. → [`Reply::Changed`]
    DriveWipe { path: String, dry_run: bool },
    /// Takes note of what a drive did that a pool has had to do without, or all of them: `status` says it no more. The drive stays
    /// refused. → [`Reply::Changed`]
    DriveClear { drive: Option<String>, dry_run: bool },
    /// Refused while anything is mapped to the host, unless `unmap` ends those mappings too.
    /// → [`Reply::Changed`]
    HostDelete { name: String, unmap: bool, dry_run: bool },
    /// `lun`: where not given, the lowest that no other volume of this host had. → [`Reply::Changed`]
    Map { volume: String, host: String, lun: Option<u16>, read_only: bool, dry_run: bool },
    /// → [`Reply::Changed`]
    Unmap { volume: String, host: String, dry_run: bool },
    /// → [`Reply::Status`]
    Status,
    /// → [`Reply::Problems`]
    Problems,
    /// The head's file has changed: listen on these portals, look at these drives. → [`Reply::Changed`]
    Reload { portals: Vec<PortalOptions>, drives: Vec<String> },
    /// Ends all sessions and I/O, writes checkpoints, then stops every shard. Answered when all of it is done.
    /// → [`Reply::Stopped`]
    Shutdown,
}

/// An address to listen on, and who may come by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalOptions {
    pub address: SocketAddr,
    /// The iSCSI portal group's tag, which is also the number of the SCSI target port and of the target port group:
    /// 1 to [`base::limits::PORTAL_GROUPS_MAX`].
    pub group: u16,
    /// Names of the hosts that may log in here; all where there is none.
    pub hosts: Vec<String>,
}

impl PortalOptions {
    /// Whether this host may log in here.
    pub fn admits(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|name| name == host)
    }
}

impl From<SocketAddr> for PortalOptions {
    /// In the first group, for all hosts.
    fn from(address: SocketAddr) -> PortalOptions {
        PortalOptions { address, group: 1, hosts: Vec::new() }
    }
}

/// A pool to be made of drives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPool {
    pub name: String,
    /// `stripe`, `mirror-2`, `mirror-3`, `parity-1` or `parity-2`.
    pub protection: String,
    /// Columns of a segment, parity included; chosen from the number of drives where not given.
    pub width: Option<u8>,
    /// Paths, as they are opened; they need not be configured yet.
    pub drives: Vec<String>,
    /// Those of `drives` whose present content may be destroyed.
    pub force: Vec<String>,
}

/// A volume to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewVolume {
    pub name: String,
    pub backing: NewBacking,
    /// Needed except for raw volumes, which are as large as their device.
    pub size_bytes: Option<u64>,
    /// Logical block size shown to hosts: 512 or 4096.
    pub block_bytes: u32,
    /// Acknowledge writes before they are durable; hosts use SYNCHRONIZE CACHE and FUA.
    pub write_back: bool,
}

/// Where a new volume's blocks live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewBacking {
    /// Thin, in the pool of this name.
    Pool(String),
    /// An existing block device or file, as it is.
    Raw(String),
    /// In memory, lost at every stop; for measuring.
    Memory,
    /// Nowhere; for measuring.
    Null,
}

/// A host to be made known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewHost {
    pub name: String,
    /// iSCSI names of its initiators (`iqn.`, `eui.`, `naa.`).
    pub initiators: Vec<String>,
    /// What the host must prove to know (one-way CHAP).
    pub chap: Option<NewChap>,
    /// What the array proves to know to this host (mutual CHAP); only together with `chap`.
    pub mutual_chap: Option<NewChap>,
}

/// CHAP credentials on their way in.
#[derive(Clone, PartialEq, Eq)]
pub struct NewChap {
    pub user: String,
    pub secret: String,
}

impl fmt::Debug for NewChap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewChap({}, secret not shown)", self.user)
    }
}

/// The answer to a command that was carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Drives(Vec<DriveStatus>),
    Changed(Change),
    Snapshots(Vec<SnapshotStatus>),
    Status(Box<ArrayStatus>),
    Problems(Vec<Problem>),
    Stopped,
}

/// What a command changed, or with `dry_run` would have changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub dry_run: bool,
    /// One line for each change, for people to read.
    pub lines: Vec<String>,
    /// Hosts that gained or lost something by it.
    pub hosts_affected: Vec<String>,
    /// What was made, as it is now; nothing for a removal or a dry run.
    pub made: Option<Made>,
}

/// A thing that a command made or changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Made {
    Pool(Box<PoolStatus>),
    Volume(Box<VolumeStatus>),
    Host(HostStatus),
    Mapping(MappingStatus),
    Snapshots(Vec<SnapshotStatus>),
}

/// How well something is. Ordered: worse is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Health {
    /// All is well.
    Healthy,
    /// Served, with less protection or less space than there should be.
    Degraded,
    /// Not served.
    Offline,
}

/// The whole array, as it is now.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayStatus {
    /// Hexadecimal, 32 digits.
    pub array_id: String,
    /// The iSCSI name of the target.
    pub target_name: String,
    pub health: Health,
    /// What is wrong and what to do about it, worst first; empty where nothing is.
    pub problems: Vec<Problem>,
    pub shards: u16,
    /// Since the shards started.
    pub uptime_ms: u64,
    pub portals: Vec<PortalStatus>,
    pub drives: Vec<DriveStatus>,
    pub pools: Vec<PoolStatus>,
    pub volumes: Vec<VolumeStatus>,
    /// Volumes that were deleted and can be brought back, the oldest first.
    pub bin: Vec<BinnedStatus>,
    pub schedules: Vec<ScheduleStatus>,
    pub hosts: Vec<HostStatus>,
    pub mappings: Vec<MappingStatus>,
    pub sessions: Vec<SessionStatus>,
}

/// A pool.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolStatus {
    pub name: String,
    /// Hexadecimal, 32 digits.
    pub id: String,
    pub protection: String,
    pub width: u8,
    pub lanes: u16,
    pub health: Health,
    /// Why it is not healthy; empty where it is.
    pub reason: String,
    /// Drives that may still fail without loss of data.
    pub failures_survivable: u8,
    /// What the next one would lead to; nothing where it would not be survived.
    pub next_failure: Option<NextFailure>,
    /// What its volumes say they have, together.
    pub provisioned_bytes: u64,
    /// Bytes that volumes can hold, parity and reserve already taken off.
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    /// Of these, what is damaged beyond repair, as far as is known.
    pub lost_bytes: u64,
    /// What all segments hold, the reserve of cleaning among it.
    pub log_bytes: u64,
    /// Of that, what cleaning and checkpoints keep free.
    pub reserve_bytes: u64,
    pub references: PoolReferences,
    pub written: PoolWrites,
    pub map: PoolMap,
    pub drives: Vec<DriveStatus>,
    pub settings: PoolSettings,
    /// Nothing where nothing is being written anew.
    pub repair: Option<RepairStatus>,
    pub scrub: ScrubStatus,
    /// What goes on in the pool, in plain words.
    pub activity: Vec<String>,
}

/// What the failure of one more drive would lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextFailure {
    /// Enough drives would be left to rebuild on.
    pub rebuildable: bool,
    /// Space that would be missing for it, at worst.
    pub short_bytes: u64,
}

/// What a drive was found to hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriveContent {
    /// Nothing that is known.
    Blank,
    /// Something that is not ours, such as a file system; what it is.
    Foreign(String),
    /// A drive of this pool (name).
    Member(String),
    /// Ours, from a newer version of the program: left untouched.
    FutureVersion,
    /// Ours, with no readable label; what is wrong with it.
    Damaged(String),
    /// It could not be opened or read; why.
    Unreadable(String),
}

/// How a drive is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// A drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveStatus {
    pub path: String,
    pub size_bytes: u64,
    /// Empty where unknown, as for a file.
    pub model: String,
    pub serial: String,
    /// Where it is plugged in, or was.
    pub bay: String,
    pub content: DriveContent,
    /// Name of the pool that it is a member of.
    pub pool: Option<String>,
    pub state: DriveState,
    pub errors: DriveErrors,
    /// Median latency of reads and writes lately; `None` where there were too few.
    pub read_latency_us: Option<u64>,
    pub write_latency_us: Option<u64>,
    /// Its id in its pool, 32 hexadecimal digits; empty for a drive of no pool.
    pub id: String,
    /// What there is to know about it beside that, in plain words; may be empty.
    pub note: String,
}

/// What went wrong with a drive for as long as it has been in its pool, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriveErrors {
    pub read: u64,
    pub write: u64,
    /// Reads that came back with the wrong content.
    pub checksum: u64,
}

/// A volume.
#[derive(Clone, PartialEq, Debug)]
pub struct VolumeStatus {
    pub id: u32,
    pub name: String,
    pub backing: VolumeBacking,
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
    pub access: Vec<GroupAccess>,
    /// The snapshot that it began as, VOLUME@SNAPSHOT as they were called then.
    pub clone_of: Option<String>,
    /// How many it has.
    pub snapshots: u64,
    /// None where it is not in a pool that is open. What it has unique is the least that comes back.
    pub space: Option<CopySpace>,
}

/// How a portal group reaches a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupAccess {
    /// The tag of the portal group, which is also the number of the target port group.
    pub group: u16,
    /// `Transitioning` is told, never asked for.
    pub state: AccessState,
}

/// Where a volume's blocks live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VolumeBacking {
    Pool(String),
    Raw(String),
    Memory,
    Null,
}

/// A host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostStatus {
    pub name: String,
    pub initiators: Vec<String>,
    pub chap_user: Option<String>,
    pub mutual_chap_user: Option<String>,
    pub sessions: usize,
}

/// A volume at a LUN of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappingStatus {
    pub volume: String,
    pub host: String,
    pub lun: u16,
    pub read_only: bool,
}

/// A session of an initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionStatus {
    pub initiator: String,
    /// Name of its host.
    pub host: String,
    /// Addresses of both ends.
    pub peer: String,
    pub portal: String,
    pub shard: u16,
    /// `true` for a discovery session.
    pub discovery: bool,
    pub commands: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// An address that is listened on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalStatus {
    pub address: String,
    pub group: u16,
    /// Who may log in here; empty: every host.
    pub hosts: Vec<String>,
    /// Empty where it listens; otherwise why it does not.
    pub error: String,
}
