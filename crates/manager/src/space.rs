//! How full pools are: announced to every shard from time to time, and to hosts when usage crosses a threshold.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{SPACE_THRESHOLD_PERCENT, SPACE_WATCH_NS};
use base::{BLOCK_BYTES, Nanos, PoolId};

use crate::manager::Manager;
use shard::{Answer, Call, ShardCall, Space, Spaces, Stage};

/// How far usage must fall below the threshold before crossing it counts again, in percent of the capacity.
const HYSTERESIS_PERCENT: u64 = 2;

impl Manager {
    /// Watches the space of pools as long as hosts are served.
    pub(crate) async fn watch_space(self: Rc<Self>) {
        let mut above = BTreeSet::new();
        while self.context.stage.get() == Stage::Serving {
            let pools = self.spaces().await;
            let crossed = crossed(&pools, &mut above);
            let spaces = Arc::new(Spaces { pools, crossed });
            self.context.ask_all(|| Call::Spaces(spaces.clone())).await;
            self.context.io.sleep(Nanos(SPACE_WATCH_NS)).await;
        }
    }

    /// Announces the present pools to every shard: hosts ask for the space of a volume in a new pool.
    pub(crate) async fn tell_spaces(&self) {
        let spaces = Arc::new(Spaces { pools: self.spaces().await, crossed: Vec::new() });
        self.context.ask_all(|| Call::Spaces(spaces.clone())).await;
    }

    async fn spaces(&self) -> Vec<(PoolId, Space)> {
        let mut pools: std::collections::BTreeMap<PoolId, Space> = Default::default();
        for answer in self.context.ask_all(|| ShardCall::LaneStats).await {
            let Answer::LaneStats(of_shard) = answer else {
                unreachable!("the answer to a question for stats")
            };
            for (pool, stats) in of_shard {
                let space = pools.entry(pool).or_insert(Space { capacity_bytes: 0, used_bytes: 0 });
                space.capacity_bytes += stats.capacity_blocks * BLOCK_BYTES as u64;
                space.used_bytes += stats.live_blocks * BLOCK_BYTES as u64;
            }
        }
        pools.into_iter().collect()
    }
}

/// Pools that are above the threshold now and were not before; `above` remembers.
fn crossed(pools: &[(PoolId, Space)], above: &mut BTreeSet<PoolId>) -> Vec<PoolId> {
    let percent =
        |space: &Space| (u128::from(space.used_bytes) * 100 / u128::from(space.capacity_bytes.max(1))) as u64;
    above.retain(|pool| {
        let now = pools.iter().find(|(id, _)| id == pool);
        now.is_some_and(|(_, space)| percent(space) + HYSTERESIS_PERCENT >= SPACE_THRESHOLD_PERCENT)
    });
    let full = pools.iter().filter(|(_, space)| percent(space) >= SPACE_THRESHOLD_PERCENT);
    full.map(|(id, _)| *id).filter(|&id| above.insert(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_crossed_once_until_the_pool_has_emptied() {
        let mut above = BTreeSet::new();
        let mut at = |percent| {
            let space = Space { capacity_bytes: 1000, used_bytes: percent * 10 };
            !crossed(&[(PoolId(1), space)], &mut above).is_empty()
        };
        let threshold = SPACE_THRESHOLD_PERCENT;
        let steps = [
            (0, false),
            (threshold - 1, false),
            (threshold, true),
            (100, false),
            (threshold - 1, false),
            (threshold, false),
            (threshold - 3, false),
            (threshold, true),
        ];
        for (step, (percent, expected)) in steps.into_iter().enumerate() {
            assert_eq!(at(percent), expected, "step {step}");
        }
    }
}
