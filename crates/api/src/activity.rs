//! What a pool is doing, and has done: values, and the words for them.

use base::calendar::moment;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{InWords, LastScrub, RepairStatus};

/// Something that a pool is doing or has done. Its `code` tells the kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum PoolActivity {
    /// Data is being written anew.
    Repair(RepairStatus),
    Scrub {
        percent: u64,
        batches_repaired: u64,
        batches_unreadable: u64,
    },
    /// The last scrub has ended.
    Scrubbed {
        #[serde(flatten)]
        last: LastScrub,
        /// How long ago that was.
        ago_ms: u64,
    },
    NeverScrubbed {},
    /// A hot spare has joined.
    SpareJoined {
        spare: String,
        /// The path of the drive in whose place it is.
        instead_of: String,
    },
    /// A volume was deleted from the bin for good, because the pool was running full.
    VolumeGaveWay {
        volume: String,
        /// When that was, milliseconds since 1970.
        deleted_ms: u64,
    },
    /// Counts of used blocks were wrong and have been corrected since the start: a program or the memory of the head had
    /// an error.
    CountsCorrected {
        counts: u64,
    },
}

impl InWords for PoolActivity {
    fn text(&self) -> String {
        use PoolActivity::*;
        match self {
            Repair(repair) => repair.to_string(),
            Scrub { percent, batches_repaired, batches_unreadable } => {
                let so_far = found(*batches_repaired, *batches_unreadable);
                format!("scrubbing: {percent} % read, {so_far} so far")
            }
            Scrubbed { last, ago_ms } => {
                let how = if last.complete { "" } else { ", stopped before the end" };
                format!("last scrub: {}{how}, {}", ago(*ago_ms), found(last.repaired, last.unreadable))
            }
            NeverScrubbed {} => {
                "never scrubbed: `tangelo pool scrub` reads everything and repairs what is wrong".to_owned()
            }
            SpareJoined { spare, instead_of } => {
                format!("spare {spare} has joined in the place of drive {instead_of}")
            }
            VolumeGaveWay { volume, deleted_ms } => {
                let when = moment(*deleted_ms);
                format!("the pool was running full: volume {volume} has left the bin for good, {when}")
            }
            CountsCorrected { counts } => format!(
                "counts of used blocks were wrong and have been corrected ({counts} since the start). A program or \
                 this machine's memory had an error: run `tangelo pool scrub`, and report it"
            ),
        }
    }
}

fn found(repaired: u64, unreadable: u64) -> String {
    match (repaired, unreadable) {
        (0, 0) => "nothing wrong".to_owned(),
        (repaired, 0) => format!("{repaired} batches repaired"),
        (repaired, unreadable) => format!("{repaired} batches repaired, {unreadable} UNREADABLE"),
    }
}

fn ago(ms: u64) -> String {
    match ms / 3_600_000 {
        0 => "less than an hour ago".to_owned(),
        hours @ 1..48 => format!("{hours} h ago"),
        hours => format!("{} days ago", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<(PoolActivity, &'static str)> {
        let last = LastScrub { ended_ms: 1, complete: false, repaired: 3, unreadable: 1 };
        let repair = RepairStatus {
            what: "rebuilding".to_owned(),
            done_bytes: 3 << 30,
            total_bytes: 41 << 30,
            bytes_per_second: 180 << 20,
            seconds_left: Some(216),
            short_bytes: 0,
        };
        let text = |text: &str| text.to_owned();
        vec![
            (PoolActivity::Repair(repair), "rebuilding: 3 GiB of 41 GiB written anew, 180 MiB/s, 4 min left"),
            (
                PoolActivity::Scrub { percent: 40, batches_repaired: 0, batches_unreadable: 0 },
                "scrubbing: 40 % read, nothing wrong so far",
            ),
            (
                PoolActivity::Scrubbed { last, ago_ms: 3_600_000 * 47 },
                "last scrub: 47 h ago, stopped before the end, 3 batches repaired, 1 UNREADABLE",
            ),
            (
                PoolActivity::NeverScrubbed {},
                "never scrubbed: `tangelo pool scrub` reads everything and repairs what is wrong",
            ),
            (
                PoolActivity::SpareJoined { spare: text("/dev/sdf"), instead_of: text("/dev/sdb") },
                "spare /dev/sdf has joined in the place of drive /dev/sdb",
            ),
            (
                PoolActivity::VolumeGaveWay { volume: text("old"), deleted_ms: 1_795_694_400_000 },
                "the pool was running full: volume old has left the bin for good, 2026-11-26 12:00Z",
            ),
            (
                PoolActivity::CountsCorrected { counts: 2 },
                "counts of used blocks were wrong and have been corrected (2 since the start). A program or this \
                 machine's memory had an error: run `tangelo pool scrub`, and report it",
            ),
        ]
    }

    #[test]
    fn an_activity_reads_well_and_is_read_back() {
        for (activity, words) in examples() {
            assert_eq!(activity.text(), words);
            crate::worded::check(activity);
        }
        let words = [0, 1, 47, 48, 100].map(|hours| ago(hours * 3_600_000));
        assert_eq!(words, ["less than an hour ago", "1 h ago", "47 h ago", "2 days ago", "4 days ago"]);
    }
}
