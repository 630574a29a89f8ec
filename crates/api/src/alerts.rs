//! Channels of alerts, as the head knows them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Problem;

/// A channel that the head's file names in `[alerts]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertChannel {
    /// `mail`, `webhook`, `command` or `heartbeat`.
    pub name: String,
    /// Where it leads: addresses, a host, a program.
    pub target: String,
    /// When something was delivered last, in milliseconds since 1970; null if nothing was since the daemon began.
    pub delivered_ms: Option<u64>,
    /// Since when every attempt has failed, in milliseconds since 1970; null if the last one has succeeded.
    pub failing_since_ms: Option<u64>,
    /// Why the last attempt has failed, or what was wrong with it although it has succeeded; empty if nothing was.
    pub error: String,
    /// Number of messages that were delivered since the daemon began.
    pub deliveries: u64,
    /// Number of attempts that have failed since the daemon began.
    pub failures: u64,
    /// Problems that it was told, and not yet their end.
    pub told: Vec<Problem>,
}

/// Which channels are to be tried.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AlertTest {
    /// All of them where it is left out.
    pub channel: Option<String>,
}

/// What has become of a test message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertTestResult {
    pub channel: String,
    pub target: String,
    pub delivered: bool,
    /// Why it was not delivered, or not to all; empty if everything is well.
    pub error: String,
    pub took_ms: u64,
}
