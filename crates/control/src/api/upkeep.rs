//! The life of drives, scrubbing and pools' settings, as they are asked for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A change of a pool's drives, or of how it is looked after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Upkeep {
    DriveAdd(NewDrives),
    DriveRemove(DriveRemoval),
    DriveReplace(DriveReplacement),
    Spare(Spares),
    Scrub(Scrubbing),
    Set(NewSettings),
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

/// Begin to read everything in a pool and to repair what is wrong, or stop that.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scrubbing {
    #[serde(default)]
    pub stop: bool,
}

/// Settings of a pool to change; what is left out stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewSettings {
    /// Everything else goes back to its default first.
    pub defaults: bool,
    /// The share of time that rebuilding and scrubbing may take while hosts are served: 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_share_percent: Option<u8>,
    /// Failed writes of a drive, within the window, that are borne before it is taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_errors: Option<u32>,
    /// Failed reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_errors: Option<u32>,
    /// Blocks that came back with the wrong content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum_errors: Option<u32>,
    /// Errors that are older are forgiven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_window_seconds: Option<u32>,
    /// A drive so many times slower than its siblings is emptied; 0: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_factor: Option<u32>,
    /// What is faster than this is not slow, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_latency_ms: Option<u32>,
    /// For how long it must have been, without a break.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_seconds: Option<u32>,
    /// A drive that does not answer for so long is given up, if its siblings answer; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hung_seconds: Option<u32>,
    /// Time from one scrub to the next; 0: none by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub_every_seconds: Option<u32>,
    /// How long a deleted volume stays in the bin; 0: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin_seconds: Option<u32>,
}
