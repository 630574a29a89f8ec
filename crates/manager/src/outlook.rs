//! The effect of one more drive failure.

use base::BLOCK_BYTES;
use pool::{LaneStats, Membership};

use api::NextFailure;

/// The effect of the next failure on a pool that would survive it. It assumes the failure of the drive without which
/// most is missing.
pub(crate) fn next_failure(membership: &Membership, lanes: &[&LaneStats]) -> NextFailure {
    let online = membership.online();
    let drives = || online.iter().enumerate().filter(|(_, online)| **online).map(|(index, _)| index);
    let left = drives().count().saturating_sub(1);
    if left <= usize::from(membership.protection.parity()) {
        return NextFailure { rebuildable: false, short_bytes: 0 };
    }
    let short_blocks = drives().map(|drive| short_without(drive, lanes)).max().unwrap_or(0);
    NextFailure { rebuildable: true, short_bytes: short_blocks * BLOCK_BYTES as u64 }
}

fn short_without(drive: usize, lanes: &[&LaneStats]) -> u64 {
    let short = |lane: &&LaneStats| {
        lane.live_blocks.saturating_sub(lane.capacity_without.get(drive).copied().unwrap_or(0))
    };
    lanes.iter().map(short).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_that_of_all_lanes_without_the_same_drive() {
        let lane = |live_blocks, capacity_without: &[u64]| LaneStats {
            live_blocks,
            capacity_without: capacity_without.to_vec(),
            ..LaneStats::default()
        };
        let (one, two) = (lane(100, &[90, 50, 200]), lane(80, &[80, 90, 60]));
        let short = |drive| short_without(drive, &[&one, &two]);
        assert_eq!([short(0), short(1), short(2)], [10, 50, 20]);
    }
}
