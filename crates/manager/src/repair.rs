//! The progress of a repair: of writing anew the blocks of a pool that lack redundancy or are to be moved.

use std::collections::VecDeque;

use api::{EventFacts, RepairKind, RepairStatus};
use base::{BLOCK_BYTES, Nanos};
use pool::LaneStats;

/// The period over which the rate of repairs is measured.
const RATE_OVER: Nanos = Nanos::from_secs(30);

/// The progress of writing anew the blocks that lack redundancy or are to be moved.
#[derive(Default)]
pub(crate) struct Repair {
    /// Number of restored blocks when it began.
    began: Option<u64>,
    /// The worst reason since it began.
    kind: Option<RepairKind>,
    /// Times, and the number of blocks restored by then.
    samples: VecDeque<(Nanos, u64)>,
}

/// The blocks that are to be written anew, and what prevents it.
pub(crate) struct Remaining {
    pub(crate) blocks: u64,
    /// Columns that the most exposed block has lost.
    pub(crate) worst: usize,
    pub(crate) short_blocks: u64,
    restored: u64,
}

impl Remaining {
    pub(crate) fn of(lanes: &[&LaneStats]) -> Remaining {
        let short = |lane: &&LaneStats| lane.live_blocks.saturating_sub(lane.capacity_blocks);
        let blocks = lanes.iter().flat_map(|lane| lane.exposed_blocks).sum();
        Remaining {
            blocks,
            worst: lanes.iter().map(|lane| shard::worst_exposed(lane)).max().unwrap_or(0),
            short_blocks: if blocks > 0 { lanes.iter().map(short).sum() } else { 0 },
            restored: lanes.iter().map(|lane| lane.counters.blocks_restored).sum(),
        }
    }

    fn kind(&self, drains: bool) -> RepairKind {
        match self.worst {
            0 if drains => RepairKind::Emptying,
            0 => RepairKind::Repairing,
            _ => RepairKind::Rebuilding,
        }
    }
}

impl Repair {
    /// Records the present progress. Returns whether there is something to do, and what has begun or ended.
    pub(crate) fn sample(
        &mut self,
        now: Nanos,
        lanes: &[&LaneStats],
        drains: bool,
    ) -> (bool, Option<EventFacts>) {
        let remaining = Remaining::of(lanes);
        let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
        if remaining.blocks == 0 {
            let Repair { began, kind, .. } = std::mem::take(self);
            let ended = began.zip(kind).map(|(began, what)| EventFacts::RepairEnded {
                what,
                written_bytes: bytes(remaining.restored.saturating_sub(began)),
            });
            return (false, ended);
        }
        let what = remaining.kind(drains);
        let began = EventFacts::RepairBegan { what, bytes: bytes(remaining.blocks) };
        let began = self.began.is_none().then_some(began);
        self.began.get_or_insert(remaining.restored);
        self.kind = Some(self.kind.map_or(what, |before| before.min(what)));
        self.samples.push_back((now, remaining.restored));
        while self.samples.len() > 2 && self.samples[1].0 + RATE_OVER <= now {
            self.samples.pop_front();
        }
        (true, began)
    }

    /// Whether nothing was restored in the whole measured period.
    pub(crate) fn is_stuck(&self) -> bool {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else { return false };
        last.0.saturating_sub(first.0) >= RATE_OVER && first.1 == last.1
    }

    /// `enough`: enough drives are online for all of it to be written anew.
    pub(crate) fn status(&self, remaining: &Remaining, drains: bool, enough: bool) -> Option<RepairStatus> {
        if remaining.blocks == 0 {
            return None;
        }
        let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
        let done = remaining.restored.saturating_sub(self.began.unwrap_or(remaining.restored));
        let rate = match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                let blocks = u128::from(bytes(last.1.saturating_sub(first.1)));
                (blocks * 1_000_000_000 / u128::from((last.0 - first.0).0)) as u64
            }
            _ => 0,
        };
        Some(RepairStatus {
            what: remaining.kind(drains).word().to_owned(),
            done_bytes: bytes(done),
            total_bytes: bytes(done + remaining.blocks),
            bytes_per_second: rate,
            // work that cannot end under these conditions has no time left to report
            seconds_left: bytes(remaining.blocks)
                .checked_div(rate)
                .filter(|_| enough && remaining.short_blocks == 0),
            short_bytes: bytes(remaining.short_blocks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_half_minute() {
        let mut repair = Repair { began: Some(1000), ..Repair::default() };
        for second in 0..100u64 {
            // 256 blocks are 1 MiB; it was slow at first
            let restored = 1000 + if second < 60 { second } else { 60 + (second - 60) * 256 };
            repair.samples.push_back((Nanos::from_secs(second), restored));
            while repair.samples.len() > 2 && repair.samples[1].0 + RATE_OVER <= Nanos::from_secs(second) {
                repair.samples.pop_front();
            }
        }
        let restored = repair.samples.back().unwrap().1;
        let remaining = Remaining { blocks: 2560, worst: 1, short_blocks: 0, restored };
        let status = repair.status(&remaining, false, true).unwrap();
        assert_eq!((status.bytes_per_second, status.seconds_left), (1 << 20, Some(10)));
        assert_eq!(status.what, "rebuilding");
    }

    #[test]
    fn a_repair_begins_and_ends_once() {
        let mut repair = Repair::default();
        let mut sample = |blocks, worst: usize, restored| {
            let mut lane = LaneStats::default();
            lane.exposed_blocks[worst] = blocks;
            lane.counters.blocks_restored = restored;
            repair.sample(Nanos(restored), &[&lane], false).1
        };
        let (repairing, rebuilding) = (RepairKind::Repairing, RepairKind::Rebuilding);
        assert_eq!(sample(0, 0, 100), None);
        assert_eq!(sample(10, 0, 100), Some(EventFacts::RepairBegan { what: repairing, bytes: 40960 }));
        assert_eq!(sample(20, 1, 105), None, "it goes on, and is worse than it was");
        let ended = EventFacts::RepairEnded { what: rebuilding, written_bytes: 30 * 4096 };
        assert_eq!(sample(0, 0, 130), Some(ended));
        assert_eq!(sample(0, 0, 130), None);
    }

    #[test]
    fn what_cannot_end_has_no_time_left() {
        let samples = [(Nanos::from_secs(0), 0), (Nanos::from_secs(10), 1000)];
        let repair = Repair { began: Some(0), samples: samples.into(), ..Repair::default() };
        let said = |short_blocks, enough| {
            let remaining = Remaining { blocks: 6700, worst: 1, short_blocks, restored: 1000 };
            repair.status(&remaining, false, enough).unwrap().to_string()
        };
        assert!(said(0, true).ends_with("67 s left"), "{}", said(0, true));
        assert!(said(0, false).ends_with("waiting"), "too few drives are left: {}", said(0, false));
        assert!(said(256, true).ends_with("1 MiB short"), "{}", said(256, true));
    }
}
