//! Steps about volumes, and about the bin.

use base::units::size;
use catalog::period;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DeviceTrouble, InWords, VolumeBacking};

/// A step about a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum VolumeStep {
    CreateVolume {
        volume: String,
        size_bytes: u64,
        backing: VolumeBacking,
    },
    /// A raw volume has whole blocks only: so many bytes at the end of its device are not part of it.
    LeaveOutBytes {
        device: String,
        bytes: u64,
    },
    /// At once, and not into the bin.
    DeleteVolume {
        volume: String,
        size_bytes: u64,
        /// Of a raw volume, whose data stays.
        device: Option<String>,
    },
    BinVolume {
        volume: String,
        size_bytes: u64,
        /// How long it stays in the bin.
        seconds: u32,
        /// How many snapshots are in the bin with it.
        snapshots: u64,
    },
    UndeleteVolume {
        volume: String,
        snapshots: u64,
    },
    /// A volume in the bin is deleted for good.
    EradicateVolume {
        volume: String,
        snapshots: u64,
    },
    ResizeVolume {
        volume: String,
        before_bytes: u64,
        after_bytes: u64,
    },
    /// A volume that becomes smaller loses the data behind this size.
    LoseData {
        volume: String,
        behind_bytes: u64,
    },
    /// An import is to give a volume its content.
    FillVolume {
        volume: String,
        /// The volume holds data, which is replaced.
        replaces: bool,
    },
    /// What was imported is the content of the volume now.
    ImportVolume {
        volume: String,
    },
    /// A raw volume has its device again.
    TakeDevice {
        volume: String,
        device: String,
    },
    /// A raw volume is without its device.
    MissDevice {
        volume: String,
        device: String,
        trouble: DeviceTrouble,
    },
}

impl InWords for VolumeStep {
    fn text(&self) -> String {
        use VolumeStep::*;
        match self {
            CreateVolume { volume, size_bytes, backing } => {
                format!("create volume {volume}, {}, {}", size(*size_bytes), place(backing))
            }
            LeaveOutBytes { device, bytes } => format!(
                "leave out the last {bytes} bytes of {device}, which are no whole block of 4096 bytes: the \
                 backup header of a GPT is there; `--block-size 512` exports all of it"
            ),
            DeleteVolume { volume, device: Some(device), .. } => {
                format!("delete volume {volume}; what is on {device} stays")
            }
            DeleteVolume { volume, size_bytes, device: None } => {
                format!("delete volume {volume}, {}, with its data", size(*size_bytes))
            }
            BinVolume { volume, size_bytes, seconds, snapshots } => format!(
                "put volume {volume}, {}, into the bin for {}{}: `tangelo volume undelete {volume}` brings it back",
                size(*size_bytes),
                period(*seconds),
                with_snapshots(*snapshots)
            ),
            UndeleteVolume { volume, snapshots } => {
                format!("bring back volume {volume}{}", with_snapshots(*snapshots))
            }
            EradicateVolume { volume, snapshots } => {
                format!("delete volume {volume} for good{}", with_snapshots(*snapshots))
            }
            ResizeVolume { volume, before_bytes, after_bytes } => {
                format!("resize volume {volume} from {} to {}", size(*before_bytes), size(*after_bytes))
            }
            LoseData { volume, behind_bytes } => {
                format!("what volume {volume} holds behind {} is lost", size(*behind_bytes))
            }
            FillVolume { volume, replaces: true } => format!("replace what volume {volume} holds"),
            FillVolume { volume, replaces: false } => format!("fill volume {volume}"),
            ImportVolume { volume } => format!("import volume {volume}"),
            TakeDevice { volume, device } => format!("volume {volume} has its device {device} again"),
            MissDevice { volume, device, trouble } => {
                format!("volume {volume} is without its device {device}: {trouble}")
            }
        }
    }
}

fn place(backing: &VolumeBacking) -> String {
    match backing {
        VolumeBacking::Pool(pool) => format!("in pool {pool}"),
        VolumeBacking::Raw(path) => format!("on {path} as it is"),
        VolumeBacking::Memory => "in memory".to_owned(),
        VolumeBacking::Null => "without storage".to_owned(),
    }
}

fn with_snapshots(snapshots: u64) -> String {
    match snapshots {
        0 => String::new(),
        1 => ", with its snapshot".to_owned(),
        count => format!(", with its {count} snapshots"),
    }
}
