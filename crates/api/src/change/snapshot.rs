//! Steps about snapshots, clones, and schedules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::NameList;
use crate::InWords;

/// A step about snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum SnapshotStep {
    TakeSnapshot {
        volume: String,
        snapshot: String,
    },
    DeleteSnapshot {
        volume: String,
        snapshot: String,
    },
    /// The volume is again what the snapshot is.
    RollBackVolume {
        volume: String,
        snapshot: String,
    },
    /// A new volume `clone` begins as what the snapshot is.
    CloneVolume {
        clone: String,
        volume: String,
        snapshot: String,
    },
    /// A new volume `copy` begins as what the volume is now.
    CopyVolume {
        copy: String,
        volume: String,
    },
    /// A snapshot becomes one of another volume, because that is promoted.
    MoveSnapshot {
        snapshot: String,
        from_volume: String,
        to_volume: String,
    },
    /// Clones become clones of this snapshot.
    RefreshClones {
        clones: NameList,
        /// A snapshot or a volume: whose clones they are.
        clones_of: String,
        volume: String,
        snapshot: String,
    },
    CreateSchedule {
        schedule: String,
        volumes: Vec<String>,
    },
    DeleteSchedule {
        schedule: String,
    },
}

impl InWords for SnapshotStep {
    fn text(&self) -> String {
        use SnapshotStep::*;
        match self {
            TakeSnapshot { volume, snapshot } => format!("take snapshot {volume}@{snapshot}"),
            DeleteSnapshot { volume, snapshot } => format!("delete snapshot {volume}@{snapshot}"),
            RollBackVolume { volume, snapshot } => {
                format!("roll volume {volume} back to {volume}@{snapshot}; what was written since is gone")
            }
            CloneVolume { clone, volume, snapshot } => {
                format!("create volume {clone}, a clone of {volume}@{snapshot}")
            }
            CopyVolume { copy, volume } => format!("create volume {copy}, a copy of {volume}"),
            MoveSnapshot { snapshot, from_volume, to_volume } => {
                format!("snapshot {from_volume}@{snapshot} becomes {to_volume}@{snapshot}")
            }
            RefreshClones { clones, clones_of, volume, snapshot } => {
                let count = match clones.total {
                    1 => "1 clone".to_owned(),
                    count => format!("{count} clones"),
                };
                format!(
                    "refresh {count} of {clones_of} to {volume}@{snapshot}: {clones}; what was written to them is gone"
                )
            }
            CreateSchedule { schedule, volumes } => {
                format!("take snapshots of {} by schedule {schedule}", volumes.join(", "))
            }
            DeleteSchedule { schedule } => {
                format!("delete schedule {schedule}; the snapshots that it has taken stay")
            }
        }
    }
}
