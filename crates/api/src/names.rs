//! Renaming, and changes of a host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::NewChap;

/// A thing that can be given another name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    Volume(String),
    Pool(String),
    Host(String),
    Snapshot { volume: String, snapshot: String },
    Schedule(String),
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
