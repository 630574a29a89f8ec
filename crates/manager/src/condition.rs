//! What is wrong with a pool as a whole: at most one problem, the worst that applies.
//!
//! A pure function of what is known of the pool and its lanes. It never accesses a drive.

use api::{LostDrive, PoolOffline, ProblemFacts, RepairStatus};
use base::BLOCK_BYTES;
use pool::LaneStats;

use crate::loss;
use crate::repair::Remaining;

/// What is known of a pool, without its lanes.
pub(crate) struct Condition {
    pub(crate) offline: Option<PoolOffline>,
    /// The pool was served since the start: hosts may have received errors.
    pub(crate) was_served: bool,
    /// Drives that it cannot use.
    pub(crate) drives: Vec<LostDrive>,
    /// Enough drives are online for a segment to have a drive for each column.
    pub(crate) enough_online: bool,
    /// The paths of drives below which there is no space.
    pub(crate) short_of_space: Vec<String>,
    pub(crate) repair: Option<RepairStatus>,
}

impl Condition {
    /// `None` if the pool is served with all the redundancy that it promises.
    pub(crate) fn problem(self, remaining: &Remaining, lanes: &[&LaneStats]) -> Option<ProblemFacts> {
        let failed = lanes.iter().any(|lane| lane.failed).then_some(PoolOffline::TooManyFailed);
        let drives = self.drives;
        if let Some(why) = self.offline.or(failed) {
            return Some(ProblemFacts::PoolOffline { why, drives, needs_reload: self.was_served });
        }
        if lanes.iter().any(|lane| lane.stalled) {
            return Some(ProblemFacts::NoSpaceBelow { paths: self.short_of_space });
        }
        if drives.is_empty() && remaining.worst == 0 {
            let segments: usize = lanes.iter().map(|lane| lane.segments_degraded).sum();
            return (segments > 0).then_some(ProblemFacts::SegmentsIncomplete { segments: segments as u64 });
        }
        Some(match remaining.short_blocks * BLOCK_BYTES as u64 {
            _ if !self.enough_online => ProblemFacts::RebuildLacksDrives { drives },
            short_bytes @ 1.. => ProblemFacts::RebuildLacksSpace { drives, short_bytes },
            0 => {
                let lost_bytes = loss::lost_bytes(lanes);
                ProblemFacts::PoolDegraded { drives, repair: self.repair, lost_bytes }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use api::{DriveLoss, ProblemCode};

    use super::*;

    fn lost() -> Vec<LostDrive> {
        vec![LostDrive { drive: "/dev/sdb".to_owned(), bay: String::new(), how: DriveLoss::Missing }]
    }

    fn pool(drives: Vec<LostDrive>) -> Condition {
        Condition {
            offline: None,
            was_served: true,
            drives,
            enough_online: true,
            short_of_space: vec!["/srv/drive-1".to_owned()],
            repair: None,
        }
    }

    #[test]
    fn the_worst_that_applies_is_reported() {
        let well = LaneStats::default();
        let stalled = LaneStats { stalled: true, ..LaneStats::default() };
        let failed = LaneStats { failed: true, ..stalled.clone() };
        let incomplete = LaneStats { segments_degraded: 7, ..LaneStats::default() };
        // as many blocks lack redundancy as the missing drive leaves without space
        let mut short = LaneStats { live_blocks: 300, capacity_blocks: 100, ..LaneStats::default() };
        short.exposed_blocks[1] = 300;
        let offline = Condition { offline: Some(PoolOffline::NotFound), ..pool(lost()) };
        let few = |lane: &LaneStats| (Condition { enough_online: false, ..pool(lost()) }, lane.clone());
        let table = [
            ((pool(Vec::new()), well.clone()), None),
            ((offline, stalled.clone()), Some(ProblemCode::PoolOffline)),
            ((pool(Vec::new()), failed), Some(ProblemCode::PoolOffline)),
            ((pool(lost()), stalled), Some(ProblemCode::NoSpaceBelow)),
            ((pool(Vec::new()), incomplete), Some(ProblemCode::SegmentsIncomplete)),
            (few(&short), Some(ProblemCode::RebuildLacksDrives)),
            ((pool(lost()), short), Some(ProblemCode::RebuildLacksSpace)),
            ((pool(lost()), well), Some(ProblemCode::PoolDegraded)),
        ];
        for (number, ((pool, lane), expected)) in table.into_iter().enumerate() {
            let found = pool.problem(&Remaining::of(&[&lane]), &[&lane]);
            assert_eq!(found.as_ref().map(ProblemFacts::code), expected, "row {number}: {found:?}");
        }
    }
}
