//! What may be asked of the array.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::copies::CopyOrder;
use super::names::{DriveClear, DriveWipe, HostUpdate, Named};
use super::schedules::ScheduleOrder;
use super::status::AccessState;
use super::upkeep::{Locating, Upkeep};

/// A command for the array. With `dry_run` everything is checked and nothing changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    DriveList,
    Status,
    /// Of the status, what is wrong alone: for whoever looks every few seconds.
    Problems,
    PoolCreate {
        pool: NewPool,
        dry_run: bool,
    },
    /// Of the pool of this name.
    Upkeep {
        pool: String,
        upkeep: Upkeep,
        dry_run: bool,
    },
    PoolDelete {
        name: String,
        /// What is in its bin, too.
        eradicate: bool,
        dry_run: bool,
    },
    DriveLocate(Locating),
    DriveWipe {
        wipe: DriveWipe,
        dry_run: bool,
    },
    DriveClear {
        clear: DriveClear,
        dry_run: bool,
    },
    HostUpdate {
        name: String,
        update: HostUpdate,
        dry_run: bool,
    },
    Rename {
        of: Named,
        name: String,
        dry_run: bool,
    },
    /// From the head itself: the drives to look at from now on.
    DrivesFound(Vec<String>),
    VolumeCreate {
        volume: NewVolume,
        dry_run: bool,
    },
    VolumeResize {
        name: String,
        size_bytes: u64,
        force: bool,
        dry_run: bool,
    },
    VolumeAccess {
        name: String,
        access: GroupAccess,
        dry_run: bool,
    },
    VolumeDelete {
        name: String,
        unmap: bool,
        /// Not into the bin: at once, and for good.
        eradicate: bool,
        dry_run: bool,
    },
    /// Snapshots and clones.
    Copy {
        order: CopyOrder,
        dry_run: bool,
    },
    /// Snapshots that are taken by themselves.
    Schedule {
        order: ScheduleOrder,
        dry_run: bool,
    },
    /// Of a volume, or of all.
    SnapshotList {
        volume: Option<String>,
    },
    HostCreate {
        host: NewHost,
        dry_run: bool,
    },
    HostDelete {
        name: String,
        unmap: bool,
        dry_run: bool,
    },
    Map {
        mapping: NewMapping,
        dry_run: bool,
    },
    Unmap {
        volume: String,
        host: String,
        dry_run: bool,
    },
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

/// What to change of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeUpdate {
    /// A multiple of 4096.
    pub size_bytes: u64,
    /// Make it smaller even where it holds data behind the new end, which is lost.
    #[serde(default)]
    pub force: bool,
}

/// How a portal group reaches a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupAccess {
    /// The tag of the portal group, which is also the number of the target port group.
    pub group: u16,
    pub state: AccessState,
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

/// A mapping to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMapping {
    pub volume: String,
    pub host: String,
    /// 0 to 16383; where not given, the lowest that no other volume of this host had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun: Option<u16>,
    #[serde(default)]
    pub read_only: bool,
}
