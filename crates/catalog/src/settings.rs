//! Settings of a pool, and the result of its last scrub.

use serde::{Deserialize, Serialize};

use crate::error::CatalogError;

/// The administrator's settings of a pool; settings that are not set have the program's defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolSettings {
    /// The share of time that rebuilding and scrubbing may take while hosts are served: 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_share_percent: Option<u8>,
    /// Error thresholds: a drive is taken out at this number of errors within the window, by kind: 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_errors: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_errors: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum_errors: Option<u32>,
    /// 1 s to 30 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_window_seconds: Option<u32>,
    /// A drive that is this many times slower than the others is emptied: 2 to 10,000; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_factor: Option<u32>,
    /// A drive with a lower latency is never slow: 1 ms to 1 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_latency_ms: Option<u32>,
    /// How long a drive must have been slow: 1 s to 1 day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_seconds: Option<u32>,
    /// A drive that does not answer for this time is given up: 1 s to 1 hour; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hung_seconds: Option<u32>,
    /// Time from one scrub to the next, 1 minute to 1 year; 0: no automatic scrubs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub_every_seconds: Option<u32>,
    /// How long a deleted volume stays in the bin, 1 minute to 1 year; 0: it is deleted at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin_seconds: Option<u32>,
}

/// The result of a scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScrubRecord {
    /// Wall clock, milliseconds since 1970.
    pub ended_ms: u64,
    /// `false` where it was stopped before it had read everything.
    pub complete: bool,
    /// Batches with damage that was repaired.
    pub repaired: u64,
    /// Batches with data that can neither be read nor rebuilt.
    pub unreadable: u64,
}

const DAY: u32 = 24 * 60 * 60;
/// How long a deleted volume stays in the bin where nothing was set.
const BIN_SECONDS: u32 = DAY;
/// How often a pool is scrubbed by itself where nothing was set.
const SCRUB_SECONDS: u32 = 30 * DAY;

impl PoolSettings {
    pub(crate) fn is_default(&self) -> bool {
        *self == PoolSettings::default()
    }

    /// How long a deleted volume stays in the bin; 0: not at all.
    pub fn bin_seconds(&self) -> u32 {
        self.bin_seconds.unwrap_or(BIN_SECONDS)
    }

    /// Time from one scrub to the next; `None`: none by itself.
    pub fn scrub_every_seconds(&self) -> Option<u32> {
        Some(self.scrub_every_seconds.unwrap_or(SCRUB_SECONDS)).filter(|&seconds| seconds > 0)
    }

    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        let errors = 1_000_000;
        let bounds = [
            ("the repair share, in percent", self.repair_share_percent.map(u32::from), 1, 100),
            ("the limit of write errors", self.write_errors, 1, errors),
            ("the limit of read errors", self.read_errors, 1, errors),
            ("the limit of checksum errors", self.checksum_errors, 1, errors),
            ("the window of errors, in seconds", self.error_window_seconds, 1, 30 * DAY),
            ("the times slower than its siblings", self.slow_factor.filter(|&factor| factor > 0), 2, 10_000),
            ("the latency of a slow drive, in milliseconds", self.slow_latency_ms, 1, 60_000),
            ("the time that a drive must have been slow, in seconds", self.slow_seconds, 1, DAY),
            (
                "the time that a drive may take to answer, in seconds",
                self.hung_seconds.filter(|&seconds| seconds > 0),
                1,
                3600,
            ),
            (
                "the time between scrubs, in seconds",
                self.scrub_every_seconds.filter(|&seconds| seconds > 0),
                60,
                366 * DAY,
            ),
            (
                "the time in the bin, in seconds",
                self.bin_seconds.filter(|&seconds| seconds > 0),
                60,
                366 * DAY,
            ),
        ];
        for (what, value, min, max) in bounds {
            if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
                return Err(CatalogError::Setting { what, value, min, max });
            }
        }
        Ok(())
    }
}
