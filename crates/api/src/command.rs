//! Commands to the array, and the properties of new pools, volumes and hosts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    CopyOrder, DriveHealth, EventFacts, GroupAccess, HostUpdate, JournalTrouble, Lease, Named, ProblemFacts,
    ScheduleOrder, Subject, TransferId, TransferOrder, Upkeep,
};

/// A command from the administrator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Probes every configured drive. → [`crate::Reply::Drives`]
    DriveList,
    /// → [`crate::Reply::Changed`]
    PoolCreate { pool: NewPool, dry_run: bool },
    /// Refused while it has volumes; and while its bin has some, unless `eradicate`. Its drives are blank afterwards.
    /// → [`crate::Reply::Changed`]
    PoolDelete { name: String, eradicate: bool, dry_run: bool },
    /// → [`crate::Reply::Changed`]
    Upkeep { upkeep: Upkeep, dry_run: bool },
    /// Reads a drive for a while, in a rhythm, so that its activity light shows where it is. → [`crate::Reply::Changed`]
    DriveLocate { path: String, seconds: u32 },
    /// The drives to look at from now on. → [`crate::Reply::Changed`]
    DrivesFound(Vec<String>),
    /// → [`crate::Reply::Changed`]
    VolumeCreate { volume: NewVolume, dry_run: bool },
    /// Hosts are told (2Ah/09h). To a smaller size only where nothing is mapped behind it, or with `force`.
    /// → [`crate::Reply::Changed`]
    VolumeResize { name: String, size_bytes: u64, force: bool, dry_run: bool },
    /// Gives a portal group another access state for a volume; hosts are told (2Ah/06h). → [`crate::Reply::Changed`]
    VolumeAccess { name: String, access: GroupAccess, dry_run: bool },
    /// Into the bin, where it is in a pool and not `eradicate`. Refused while it is mapped, unless `unmap` ends those
    /// mappings too. → [`crate::Reply::Changed`]
    VolumeDelete { name: String, unmap: bool, eradicate: bool, dry_run: bool },
    /// Snapshots, clones, and what is in the bin. → [`crate::Reply::Changed`]
    Copy { order: CopyOrder, dry_run: bool },
    /// Begins to move the content of a volume, as long as the lease is held. A dry run of an import says what it would
    /// replace. → [`crate::Reply::TransferBegan`], or [`crate::Reply::Changed`] of a dry run
    TransferBegin { order: TransferOrder, lease: Lease, dry_run: bool },
    /// Everything of an import is written: it becomes the content of the volume `volume`. → [`crate::Reply::Changed`]
    TransferComplete { transfer: TransferId, volume: String },
    /// Snapshots that are taken by themselves. → [`crate::Reply::Changed`]
    Schedule { order: ScheduleOrder, dry_run: bool },
    /// Of a volume, or of all. → [`crate::Reply::Snapshots`]
    SnapshotList { volume: Option<String> },
    /// → [`crate::Reply::Changed`]
    HostCreate { host: NewHost, dry_run: bool },
    /// Sessions that are still valid go on. → [`crate::Reply::Changed`]
    HostUpdate { name: String, update: HostUpdate, dry_run: bool },
    /// Another name for what there is; hosts see no difference. → [`crate::Reply::Changed`]
    Rename { of: Named, name: String, dry_run: bool },
    /// Erases what a drive that is not in use holds at its beginning and its end. → [`crate::Reply::Changed`]
    DriveWipe { path: String, dry_run: bool },
    /// Takes note of what a drive did that a pool has had to do without, or all of them: `status` says it no more. The drive stays
    /// refused. → [`crate::Reply::Changed`]
    DriveClear { drive: Option<String>, dry_run: bool },
    /// Refused while anything is mapped to the host, unless `unmap` ends those mappings too.
    /// → [`crate::Reply::Changed`]
    HostDelete { name: String, unmap: bool, dry_run: bool },
    /// `lun`: where not given, the lowest that no other volume of this host had. → [`crate::Reply::Changed`]
    Map { volume: String, host: String, lun: Option<u16>, read_only: bool, dry_run: bool },
    /// → [`crate::Reply::Changed`]
    Unmap { volume: String, host: String, dry_run: bool },
    /// → [`crate::Reply::Status`]
    Status,
    /// → [`crate::Reply::Problems`]
    Problems,
    /// Figures for monitoring. Costs the array less than [`Command::Status`]. → [`crate::Reply::Metrics`]
    Metrics,
    /// Events with a number above `after`, at most `limit` of them. With `wait`, the answer comes when there is one; after
    /// half a minute without any, it is empty. → [`crate::Reply::Events`]
    Events { after: u64, limit: usize, wait: bool },
    /// Something has happened to the control plane, which shard 0 is to number and keep. → [`crate::Reply::Changed`]
    Report { subject: Subject, facts: EventFacts, count: u64 },
    /// Whether the control plane can keep events: why not. It is a problem as long as it cannot. →
    /// [`crate::Reply::Changed`]
    EventsKept(Result<(), JournalTrouble>),
    /// From the head that the array runs on, about what the array cannot see itself.
    Head(HeadCall),
    /// The head's file has changed: listen on these portals, look at these drives. → [`crate::Reply::Changed`]
    Reload { portals: Vec<PortalOptions>, drives: Vec<String> },
    /// Ends all sessions and I/O, writes checkpoints, then stops every shard. Answered when all of it is done.
    /// → [`crate::Reply::Stopped`]
    Shutdown,
}

/// What a head tells the array that runs on it, or asks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeadCall {
    /// What the head knows to be wrong, as far as this source tells: all of it. Each is a problem until the source says otherwise. The
    /// array holds [`base::limits::HEAD_PROBLEMS_MAX`] of them for each source. → [`crate::Reply::Changed`]
    Problems { source: HeadSource, problems: Vec<(Subject, ProblemFacts)> },
    /// What is known of the health of drives, by their paths: of all of them. → [`crate::Reply::Changed`]
    DriveHealth(BTreeMap<String, DriveHealth>),
    /// The drives that the array knows. → [`crate::Reply::DrivePaths`]
    DrivePaths,
}

/// What of a head knows of problems that the array cannot see itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HeadSource {
    /// The pair that it is of.
    Pair,
    /// What its drives say of their health.
    Drives,
    /// What becomes of its alerts.
    Alerts,
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
    /// It is a portal of the other head of the pair, which forwards.
    pub forwarded: bool,
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
        PortalOptions { address, group: 1, hosts: Vec::new(), forwarded: false }
    }
}

/// A pool to be made of drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    pub name: String,
    /// `stripe`, `mirror-2`, `mirror-3`, `parity-1` or `parity-2`.
    #[schema(example = "parity-1")]
    pub protection: String,
    /// Columns of a segment, parity included; chosen from the number of drives where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
    /// Absolute paths of block devices or files on the head.
    pub drives: Vec<String>,
    /// Those of `drives` whose present content may be destroyed.
    #[serde(default)]
    pub force: Vec<String>,
    /// Each drive gets a twin on the other head, which the array's pair of heads needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across_heads: bool,
    /// Both heads of the array see these drives. Each is held by the owner with a persistent reservation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl NewPool {
    /// One on the drives of this head alone, which hold nothing.
    pub fn new(name: impl Into<String>, protection: impl Into<String>, drives: Vec<String>) -> NewPool {
        let (name, protection) = (name.into(), protection.into());
        NewPool {
            name,
            protection,
            width: None,
            drives,
            force: Vec::new(),
            across_heads: false,
            shared: false,
        }
    }
}

/// A volume to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVolume {
    pub name: String,
    pub backing: NewBacking,
    /// A multiple of 4096. Needed except for a raw volume, which is as large as its device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Logical block size that hosts see: 512 or 4096.
    #[serde(default = "default_block_bytes")]
    pub block_bytes: u32,
    /// Acknowledge writes before they are durable; SYNCHRONIZE CACHE and FUA are honoured.
    #[serde(default)]
    pub write_back: bool,
}

fn default_block_bytes() -> u32 {
    512
}

/// Where a new volume's blocks shall be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewBacking {
    /// Thin, in the pool of this name.
    Pool(String),
    /// An existing block device or file, by its absolute path, exported as it is.
    Raw(String),
    /// In memory, lost at every stop: for measuring.
    Memory,
    /// Nowhere, reads as zeros: for measuring.
    Null,
}

/// A host to be made known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHost {
    pub name: String,
    /// iSCSI names of its initiators.
    #[schema(example = json!(["iqn.1993-08.org.debian:01:abc"]))]
    pub initiators: Vec<String>,
    /// What the host must prove to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<NewChap>,
    /// What the array proves to know in return; only beside `chap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_chap: Option<NewChap>,
}

/// CHAP credentials on their way to the array.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewChap {
    pub user: String,
    /// 12 to 255 bytes.
    pub secret: String,
}

impl fmt::Debug for NewChap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewChap({}, secret not shown)", self.user)
    }
}
