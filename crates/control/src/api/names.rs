//! Names, and what can be changed of hosts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::NewChap;

/// A thing that can be given another name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    Volume(String),
    Pool(String),
    Host(String),
    Snapshot { volume: String, snapshot: String },
    Schedule(String),
}

/// Another name for something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    pub name: String,
}

/// What to change of a host; what is not named stays as it is. Sessions that are still valid go on.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostUpdate {
    /// iSCSI names.
    pub add_initiators: Vec<String>,
    /// Their sessions end.
    pub remove_initiators: Vec<String>,
    /// What the host must prove to know from its next login on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chap: Option<NewChap>,
    /// What the array proves to know from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutual_chap: Option<NewChap>,
    /// No CHAP is asked for any more, in either direction.
    pub no_chap: bool,
    /// The array proves nothing any more.
    pub no_mutual_chap: bool,
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
