//! Bodies of requests: the parts of a command that are not in the path.

use api::Keep;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

/// Another name for something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    pub name: String,
}

/// What drives did that pools have had to do without, of which somebody takes note.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DriveClear {
    /// The drive's path, or the beginning of its id; all where it is left out.
    pub drive: Option<String>,
}

/// A drive that is to be erased.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveWipe {
    /// Absolute path of a block device or file on the head.
    pub path: String,
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

/// A schedule to be made. Snapshots are taken as often as one is kept, of all its volumes at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    pub name: String,
    /// 1 to 64, in pools.
    pub volumes: Vec<String>,
    pub keep: Keep,
}

/// Drives that are to join a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDrives {
    /// Absolute paths of block devices or files on the head.
    pub drives: Vec<String>,
    /// Those of `drives` whose present content may be destroyed.
    #[serde(default)]
    pub force: Vec<String>,
}

/// A drive that is to leave its pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveRemoval {
    /// Its path, or the beginning of its id.
    pub drive: String,
    /// Have it stay: what has been moved away stays where it is now.
    #[serde(default)]
    pub cancel: bool,
}

/// A drive that is to take the place of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveReplacement {
    /// Path, or the beginning of the id.
    pub old: String,
    /// Absolute path of a block device or file on the head.
    pub new: String,
    /// Whether the present content of `new` may be destroyed.
    #[serde(default)]
    pub force: bool,
}

/// Hot spares: drives that join a pool by themselves when it has lost one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Spares {
    /// Absolute paths of blank block devices or files on the head.
    pub drives: Vec<String>,
    /// They are no spares any more.
    #[serde(default)]
    pub release: bool,
}

/// A drive whose light is to blink.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Locating {
    pub path: String,
    /// 1 to 3600.
    #[serde(default = "default_seconds")]
    pub seconds: u32,
}

fn default_seconds() -> u32 {
    30
}

/// How both heads are to hold a pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Converting {
    /// Both see its drives. Otherwise each drive gets a twin on the other head.
    #[serde(default)]
    pub shared: bool,
}

/// Begin to read everything in a pool and to repair what is wrong, or stop that.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scrubbing {
    #[serde(default)]
    pub stop: bool,
}
