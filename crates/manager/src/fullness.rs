//! The problems of a pool's space: how full it is, whose writes are refused, what the next failure would leave, and
//! what could be deleted to free space.

use std::collections::BTreeMap;

use base::limits::{SPACE_THRESHOLD_PERCENT, SPACE_WARNING_PERCENT};
use base::{BLOCK_BYTES, LayerId, Nanos, PoolId, VolumeId};
use catalog::{Catalog, Volume};
use pool::LaneStats;

use shard::{Answer, ShardCall, pool_layer};

use crate::bin::full_percent;
use crate::manager::Manager;
use api::{NextFailure, PoolRoom, Problem, ProblemFacts, RefusedWrites, Subject};

/// How much later than its lane a host's shard may see a refusal.
const TOLD_LATER: Nanos = Nanos::from_secs(1);

/// The use of a pool's space.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct SpaceUse {
    /// The total size of its volumes.
    pub(crate) provisioned_bytes: u64,
    snapshots: usize,
    /// Number of volumes in the bin, and the blocks that nothing else keeps.
    binned: usize,
    bin_blocks: u64,
    /// Volumes whose writes are refused, each with its host.
    refused: Vec<RefusedWrites>,
}

impl Manager {
    /// The use of every pool's space. The bin is counted only if the pool is so full that this is reported.
    pub(crate) async fn uses(&self, stats: &[(PoolId, LaneStats)]) -> BTreeMap<PoolId, SpaceUse> {
        let mut refused = Vec::new();
        for answer in self.context.ask_all(|| ShardCall::SpaceRefusals).await {
            let Answer::SpaceRefusals(of_shard) = answer else {
                unreachable!("the answer to what is refused")
            };
            refused.extend(of_shard);
        }
        refused.sort();
        refused.dedup();
        let (mut uses, bins) = {
            let catalog = &self.state.borrow().catalog;
            (uses_of(catalog, &refused), bin_layers(catalog))
        };
        for (pool, layers) in bins {
            let lanes: Vec<&LaneStats> =
                stats.iter().filter(|(id, _)| *id == pool).map(|(_, stats)| stats).collect();
            if full_percent(&lanes) >= SPACE_WARNING_PERCENT {
                let blocks = self.kept_by(pool, layers.into()).await;
                uses.entry(pool).or_default().bin_blocks = blocks;
            }
        }
        uses
    }
}

fn uses_of(catalog: &Catalog, refused: &[(VolumeId, String)]) -> BTreeMap<PoolId, SpaceUse> {
    let mut uses: BTreeMap<PoolId, SpaceUse> = BTreeMap::new();
    for (volume, (pool, _)) in catalog.volumes().iter().filter_map(|volume| Some((volume, volume.place()?))) {
        let uses = uses.entry(pool).or_default();
        uses.provisioned_bytes = uses.provisioned_bytes.saturating_add(volume.size_bytes);
    }
    for snapshot in catalog.snapshots() {
        let Some((pool, _)) = catalog.volume(snapshot.volume).and_then(Volume::place) else { continue };
        uses.entry(pool).or_default().snapshots += 1;
    }
    for (pool, _) in catalog.bin().iter().filter_map(|binned| binned.volume.place()) {
        uses.entry(pool).or_default().binned += 1;
    }
    for (id, host) in refused {
        let Some(volume) = catalog.volume(*id) else { continue };
        let Some((pool, _)) = volume.place() else { continue };
        uses.entry(pool)
            .or_default()
            .refused
            .push(RefusedWrites { host: host.clone(), volume: volume.name.to_string() });
    }
    uses
}

/// The layers of volumes in the bin, by the pools' ids.
fn bin_layers(catalog: &Catalog) -> BTreeMap<PoolId, Vec<LayerId>> {
    let mut layers: BTreeMap<PoolId, Vec<LayerId>> = BTreeMap::new();
    for binned in catalog.bin() {
        let Some((pool, top)) = Volume::place(&binned.volume) else { continue };
        let frozen = binned.snapshots.iter().map(|snapshot| snapshot.layer);
        layers.entry(pool).or_default().extend([top].into_iter().chain(frozen).map(pool_layer));
    }
    layers
}

/// Whether recent refusals of writes may be due to missing space below the drives. That is a problem of its own
/// ([`ProblemFacts::NoSpaceBelow`]): room in the pool does not help.
fn refused_below(lanes: &[&LaneStats], now: Nanos) -> bool {
    let recently = |at: Nanos| now.saturating_sub(at) < shard::REFUSED_LATELY + TOLD_LATER;
    lanes.iter().any(|lane| lane.stalled || lane.short_of_space_at.is_some_and(recently))
}

/// The problems of a pool's space, the worst first.
pub(crate) fn problems(
    pool: &str,
    lanes: &[&LaneStats],
    next_failure: Option<NextFailure>,
    uses: &SpaceUse,
    now: Nanos,
) -> Vec<Problem> {
    let full_percent = full_percent(lanes);
    let room = uses.room();
    let full = match full_percent {
        _ if !uses.refused.is_empty() && !refused_below(lanes, now) => {
            Some(ProblemFacts::WritesRefused { full_percent, writers: uses.refused.clone(), room })
        }
        full if full >= SPACE_THRESHOLD_PERCENT => Some(ProblemFacts::PoolNearlyFull { full_percent, room }),
        full if full >= SPACE_WARNING_PERCENT => Some(ProblemFacts::PoolFilling { full_percent, room }),
        _ => None,
    };
    let short = match next_failure {
        Some(NextFailure { rebuildable: true, short_bytes: short_bytes @ 1.. }) => {
            Some(ProblemFacts::RebuildWouldLackSpace { short_bytes, room })
        }
        _ => None,
    };
    full.into_iter().chain(short).map(|facts| Problem::new(Subject::pool(pool), facts)).collect()
}

impl SpaceUse {
    fn room(&self) -> PoolRoom {
        PoolRoom {
            snapshots: self.snapshots as u64,
            binned_volumes: self.binned as u64,
            bin_bytes: self.bin_blocks * BLOCK_BYTES as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::ProblemCode;

    fn at(percent: u64, short_bytes: u64, uses: &SpaceUse) -> Vec<Problem> {
        let lane = LaneStats { capacity_blocks: 1000, live_blocks: percent * 10, ..LaneStats::default() };
        let next = Some(NextFailure { rebuildable: true, short_bytes });
        problems("fast", &[&lane], next, uses, Nanos::from_secs(100))
    }

    #[test]
    fn space_is_warned_of_then_missed_then_refused() {
        let codes = |problems: Vec<Problem>| problems.iter().map(Problem::code).collect::<Vec<_>>();
        let mut uses = SpaceUse::default();
        assert_eq!(codes(at(79, 0, &uses)), []);
        assert_eq!(codes(at(80, 0, &uses)), [ProblemCode::PoolFilling]);
        assert_eq!(codes(at(90, 0, &uses)), [ProblemCode::PoolNearlyFull]);
        let short = at(50, 3 << 30, &uses);
        assert!(short[0].reason().contains("3 GiB short"), "{short:?}");
        assert_eq!(codes(short), [ProblemCode::RebuildWouldLackSpace]);
        uses.refused = vec![RefusedWrites { host: "alpha".to_owned(), volume: "thin".to_owned() }];
        let refused = at(60, 0, &uses);
        assert!(refused[0].reason().contains("of host alpha to volume thin"), "{refused:?}");
        assert_eq!(codes(refused), [ProblemCode::WritesRefused]);
    }

    #[test]
    fn refusals_for_want_of_space_below_are_not_called_a_full_pool() {
        let refused = vec![RefusedWrites { host: "alpha".to_owned(), volume: "thin".to_owned() }];
        let uses = SpaceUse { refused, ..SpaceUse::default() };
        let codes = |stalled, seconds: Option<u64>, live_blocks| {
            let short_of_space_at = seconds.map(Nanos::from_secs);
            let lane = LaneStats {
                capacity_blocks: 1000,
                live_blocks,
                stalled,
                short_of_space_at,
                ..LaneStats::default()
            };
            let found = problems("fast", &[&lane], None, &uses, Nanos::from_secs(100));
            found.iter().map(Problem::code).collect::<Vec<_>>()
        };
        assert_eq!(codes(false, None, 0), [ProblemCode::WritesRefused]);
        assert_eq!(codes(true, Some(100), 0), []);
        assert_eq!(codes(true, Some(100), 850), [ProblemCode::PoolFilling], "this is so as well");
        // there is space again, and the refusals are remembered a little longer
        assert_eq!(codes(false, Some(70), 0), []);
        assert_eq!(codes(false, Some(60), 0), [ProblemCode::WritesRefused]);
    }

    #[test]
    fn who_could_give_space_back_is_named() {
        let uses = SpaceUse { snapshots: 3, binned: 1, bin_blocks: 512, ..SpaceUse::default() };
        let said = at(95, 0, &uses)[0].action();
        assert!(said.contains("the bin (1 volume) holds 2 MiB"), "{said}");
        assert!(said.contains("there are 3 snapshots"), "{said}");
        assert!(!at(95, 0, &SpaceUse::default())[0].action().contains("bin"));
    }
}
