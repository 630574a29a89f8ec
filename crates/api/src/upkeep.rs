//! Commands for adding, removing and replacing drives and for scrubs, and how answers describe these.

use std::fmt;

use base::units::size;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::NewSettings;

/// A change of a pool's drives, or of how it is looked after. Drives of a pool are named by path, or by the
/// beginning of their id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Upkeep {
    /// The pool grows. `force` names those of `drives` whose present content may be destroyed.
    DriveAdd {
        pool: String,
        drives: Vec<String>,
        force: Vec<String>,
    },
    /// Empties a drive, so that it can be taken away; `cancel` has it stay.
    DriveRemove {
        pool: String,
        drive: String,
        cancel: bool,
    },
    /// Adds `new` and empties `old`; where `old` cannot be read, what stood on it is rebuilt.
    DriveReplace {
        pool: String,
        old: String,
        new: String,
        force: bool,
    },
    /// Has drives join by themselves when the pool has lost one; `release` ends that.
    Spare {
        pool: String,
        drives: Vec<String>,
        release: bool,
    },
    /// Begins to read everything and to repair what is wrong, or stops that.
    Scrub {
        pool: String,
        stop: bool,
    },
    Set {
        pool: String,
        settings: NewSettings,
    },
    /// Moves the pool to the newest disk format. Programs of before cannot open it any more.
    Upgrade {
        pool: String,
    },
}

/// Data that is being written anew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RepairStatus {
    /// `rebuilding`: it lacks redundancy; `repairing`: something in it is damaged; `emptying`: its drive is to go.
    pub what: String,
    pub done_bytes: u64,
    /// Done and still to do.
    pub total_bytes: u64,
    pub bytes_per_second: u64,
    /// Null where nothing got done lately.
    pub seconds_left: Option<u64>,
    /// Space that is missing for it.
    pub short_bytes: u64,
}

impl fmt::Display for RepairStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total) = (size(self.done_bytes), size(self.total_bytes));
        let pace = match self.seconds_left {
            Some(seconds) => format!("{}/s, {} left", size(self.bytes_per_second), time(seconds)),
            None if self.short_bytes > 0 => format!("{} short", size(self.short_bytes)),
            None => "waiting".to_owned(),
        };
        write!(f, "{}: {done} of {total} written anew, {pace}", self.what)
    }
}

/// Rounded up, as times to wait are.
fn time(seconds: u64) -> String {
    match seconds {
        0..=90 => format!("{} s", seconds.max(1)),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// A pool's scrubs.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScrubStatus {
    pub running: bool,
    /// Of the one that runs.
    pub segments_done: u64,
    pub segments_total: u64,
    pub batches_repaired: u64,
    pub batches_unreadable: u64,
    pub last: Option<LastScrub>,
}

/// How the last scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LastScrub {
    /// Milliseconds since 1970.
    pub ended_ms: u64,
    /// False where it was stopped before it had read everything.
    pub complete: bool,
    /// Batches in which something was wrong and was written anew.
    pub repaired: u64,
    /// Batches of which something can neither be read nor rebuilt.
    pub unreadable: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_reads_well() {
        let repair = RepairStatus {
            what: "rebuilding".to_owned(),
            done_bytes: 3 << 30,
            total_bytes: 41 << 30,
            bytes_per_second: 180 << 20,
            seconds_left: Some(216),
            short_bytes: 0,
        };
        assert_eq!(repair.to_string(), "rebuilding: 3 GiB of 41 GiB written anew, 180 MiB/s, 4 min left");
        assert_eq!(time(5401), "2 h");
    }
}
