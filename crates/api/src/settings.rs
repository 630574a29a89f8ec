//! A pool's settings, as they are set and told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

/// What holds for a pool, set or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Settings)]
pub struct PoolSettings {
    /// The share of time that rebuilding and scrubbing may take while hosts are served.
    pub repair_share_percent: u8,
    /// Errors of a drive within the window that are borne before it is taken out, by kind.
    pub write_errors: u32,
    pub read_errors: u32,
    pub checksum_errors: u32,
    pub error_window_seconds: u32,
    /// A drive so many times slower than its siblings is emptied; 0: none is.
    pub slow_factor: u32,
    /// What is faster than this is not slow.
    pub slow_latency_ms: u32,
    /// For how long it must have been.
    pub slow_seconds: u32,
    /// A drive that does not answer for so long is given up, if its siblings answer; 0: never.
    pub hung_seconds: u32,
    /// Null: no scrub by itself.
    pub scrub_every_seconds: Option<u32>,
    /// How long a deleted volume stays in the bin; 0: not at all.
    pub bin_seconds: u32,
}
