//! The array, its volumes and its hosts, as answers describe them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::volume_condition::condition_json::{self, ConditionJson};
use crate::{
    AccessState, BinnedStatus, CopySpace, DriveStatus, Health, IoError, PoolStatus, Problem, ScheduleStatus,
    VolumeCondition,
};

/// The whole array as it is now.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ArrayStatus {
    /// 32 hexadecimal digits.
    pub array_id: String,
    /// The iSCSI name of the target.
    pub target_name: String,
    pub health: Health,
    /// Worst first; empty if nothing is wrong.
    pub problems: Vec<Problem>,
    pub shards: u16,
    pub uptime_ms: u64,
    pub portals: Vec<PortalStatus>,
    /// The configured drives that belong to no pool; the others are with their pools.
    pub drives: Vec<DriveStatus>,
    pub pools: Vec<PoolStatus>,
    pub volumes: Vec<VolumeStatus>,
    /// Volumes that were deleted and can be brought back, the oldest first.
    #[serde(default)]
    pub bin: Vec<BinnedStatus>,
    #[serde(default)]
    pub schedules: Vec<ScheduleStatus>,
    pub hosts: Vec<HostStatus>,
    pub mappings: Vec<MappingStatus>,
    pub sessions: Vec<SessionStatus>,
}

impl ArrayStatus {
    /// The pools' drives in their order, then the others.
    pub fn every_drive(&self) -> Vec<DriveStatus> {
        let members = self.pools.iter().flat_map(|pool| &pool.drives);
        members.chain(&self.drives).cloned().collect()
    }
}

/// A volume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
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
    /// Whether it can be used, and if not, why.
    #[serde(flatten, with = "condition_json")]
    #[schema(value_type = ConditionJson)]
    pub condition: VolumeCondition,
    /// How each portal group reaches it.
    #[serde(default)]
    pub access: Vec<GroupAccess>,
    /// The snapshot of which it is a clone, VOLUME@SNAPSHOT, or the volume from which it was copied, by the names of that
    /// time; null if it is neither.
    #[serde(default)]
    pub clone_of: Option<String>,
    /// Number of its snapshots.
    #[serde(default)]
    pub snapshots: u64,
    /// Null if it is not in a pool that is online.
    #[serde(default)]
    pub space: Option<CopySpace>,
}

/// Where a volume's blocks are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VolumeBacking {
    /// In the pool of this name.
    Pool(String),
    /// The block device or file of this path.
    Raw(String),
    Memory,
    Null,
}

/// How a portal group reaches a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupAccess {
    /// The tag of the portal group, which is also the number of the target port group.
    pub group: u16,
    pub state: AccessState,
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HostStatus {
    pub name: String,
    pub initiators: Vec<String>,
    pub chap_user: Option<String>,
    pub mutual_chap_user: Option<String>,
    /// Number of its sessions now.
    pub sessions: u64,
}

/// A volume at a LUN of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MappingStatus {
    pub volume: String,
    pub host: String,
    pub lun: u16,
    pub read_only: bool,
}

/// A session of an initiator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionStatus {
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

/// An address that is listened on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PortalStatus {
    pub address: String,
    /// The iSCSI portal group, which is a SCSI target port and a target port group.
    pub group: u16,
    /// Names of the hosts that may log in here; empty if all may.
    pub hosts: Vec<String>,
    /// It is a portal of the other head of the pair, which forwards what hosts send.
    pub forwarded: bool,
    /// Why it does not listen; null if it does.
    #[serde(with = "portal_error_json")]
    #[schema(value_type = Option<portal_error_json::PortalErrorJson>)]
    pub error: Option<IoError>,
}

/// The error of a portal in JSON, with its words.
mod portal_error_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use utoipa::ToSchema;

    use crate::{IoError, IoErrorName};

    #[derive(Serialize, Deserialize, ToSchema)]
    #[schema(as = PortalError)]
    pub(super) struct PortalErrorJson {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        cause: IoError,
        /// The same in words, for people; the words may change.
        text: String,
    }

    pub(super) fn serialize<S: Serializer>(error: &Option<IoError>, to: S) -> Result<S::Ok, S::Error> {
        error.map(|cause| PortalErrorJson { cause, text: cause.to_string() }).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<IoError>, D::Error> {
        Ok(Option::<PortalErrorJson>::deserialize(from)?.map(|json| json.cause))
    }
}
