//! The kinds of commands that change something.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of a command that changes something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandKind {
    PoolCreate,
    PoolDelete,
    PoolScrub,
    PoolSet,
    PoolUpgrade,
    DriveAdd,
    DriveRemove,
    DriveReplace,
    DriveSpare,
    DriveLocate,
    DriveWipe,
    DriveClear,
    VolumeCreate,
    VolumeResize,
    VolumeAccess,
    VolumeDelete,
    VolumeCopy,
    VolumePromote,
    VolumeUndelete,
    VolumeEradicate,
    VolumeImport,
    SnapshotCreate,
    SnapshotDelete,
    SnapshotRollBack,
    SnapshotClone,
    SnapshotRefresh,
    ScheduleCreate,
    ScheduleDelete,
    HostCreate,
    HostSet,
    HostDelete,
    Rename,
    Map,
    Unmap,
    Reload,
    UserAdd,
    UserSet,
    UserDelete,
    SessionEnd,
    TokenAdd,
    TokenRevoke,
}
