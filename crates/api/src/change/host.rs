//! Steps about hosts and mappings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{NotMapped, WasMapped};
use crate::InWords;

/// A step about a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum HostStep {
    CreateHost {
        host: String,
        initiators: Vec<String>,
    },
    /// Its sessions end.
    DeleteHost {
        host: String,
    },
    AddInitiator {
        host: String,
        initiator: String,
    },
    /// Its sessions end.
    RemoveInitiator {
        host: String,
        initiator: String,
    },
    /// How the host proves who it is, from its next login on.
    SetChap {
        host: String,
        /// Null: it need not.
        user: Option<String>,
    },
    /// How the array proves to the host who it is.
    SetMutualChap {
        host: String,
        user: Option<String>,
    },
    /// Nothing was to change.
    LeaveHost {
        host: String,
    },
    MapVolume {
        volume: String,
        host: String,
        lun: u16,
        /// How clients of libiscsi write the LUN in their URLs: as the first two bytes of the field, without the
        /// addressing method that is required from 256 on.
        libiscsi_lun: u16,
        read_only: bool,
    },
    UnmapVolume {
        volume: String,
        host: String,
    },
    /// A volume from the bin is mapped as before.
    RestoreMapping {
        volume: String,
        host: String,
        number: WasMapped,
    },
    /// A volume from the bin is not mapped as before.
    DropMapping {
        volume: String,
        host: String,
        why: NotMapped,
    },
}

const NEXT: &str = "from its next login on; sessions that exist go on";

impl InWords for HostStep {
    fn text(&self) -> String {
        use HostStep::*;
        match self {
            CreateHost { host, initiators } => format!("create host {host} with {}", initiators.join(", ")),
            DeleteHost { host } => format!("delete host {host}, ending its sessions"),
            AddInitiator { host, initiator } => format!("host {host}: add initiator {initiator}"),
            RemoveInitiator { host, initiator } => {
                format!("host {host}: remove initiator {initiator}, ending its sessions")
            }
            SetChap { host, user: Some(user) } => format!("host {host}: CHAP user {user}, {NEXT}"),
            SetChap { host, user: None } => format!("host {host}: no CHAP"),
            SetMutualChap { host, user: Some(user) } => {
                format!("host {host}: the array answers as {user}, {NEXT}")
            }
            SetMutualChap { host, user: None } => format!("host {host}: no mutual CHAP"),
            LeaveHost { host } => format!("host {host}: nothing to change"),
            MapVolume { volume, host, lun, libiscsi_lun, read_only } => {
                let how = if *read_only { ", read-only" } else { "" };
                let url = match libiscsi_lun == lun {
                    true => String::new(),
                    false => format!(" (clients of libiscsi write {libiscsi_lun})"),
                };
                format!("map volume {volume} to host {host} as LUN {lun}{how}{url}")
            }
            UnmapVolume { volume, host } => format!("unmap volume {volume} from host {host}"),
            RestoreMapping { volume, host, number } => {
                format!("map volume {volume} to host {host} as {number} again")
            }
            DropMapping { host, why: NotMapped::Taken(number), .. } => {
                format!("not mapped to host {host}: its {number} is another volume now")
            }
            DropMapping { host, why: NotMapped::HostDeleted, .. } => {
                format!("not mapped to host {host}: that host has been deleted since")
            }
        }
    }
}
