//! Writes on one shard that were recently refused for want of space. `status` names them while they are recent.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base::limits::SPACE_REFUSALS_MAX;
use base::{Nanos, VolumeId};
use block::{BlockError, BlockResult};

/// A host that cannot write retries within this time, or has given up.
pub const LATELY: Nanos = Nanos::from_secs(30);

/// For each host and volume: when a write was last refused.
#[derive(Default)]
pub struct SpaceRefusals(RefCell<BTreeMap<(VolumeId, String), Nanos>>);

impl SpaceRefusals {
    /// Records the result of a request of this host.
    pub fn see(&self, result: &BlockResult, volume: VolumeId, host: impl FnOnce() -> String, now: Nanos) {
        if let Err(BlockError::OutOfSpace) = result {
            self.note(volume, host(), now);
        }
    }

    fn note(&self, volume: VolumeId, host: String, now: Nanos) {
        let mut known = self.0.borrow_mut();
        known.insert((volume, host), now);
        if known.len() > SPACE_REFUSALS_MAX {
            let oldest = known.iter().min_by_key(|(_, last)| **last).map(|(key, _)| key.clone());
            oldest.map(|key| known.remove(&key));
        }
    }

    /// Refusals of the last half minute; older ones are forgotten.
    pub fn recent(&self, now: Nanos) -> Vec<(VolumeId, String)> {
        let mut known = self.0.borrow_mut();
        known.retain(|_, last| now.saturating_sub(*last) < LATELY);
        known.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_news_for_a_while_and_few() {
        let refusals = SpaceRefusals::default();
        let see = |result, volume, second| {
            refusals.see(&result, VolumeId(volume), || "alpha".to_owned(), Nanos::from_secs(second));
        };
        see(Err(BlockError::WriteProtected), 1, 1);
        assert_eq!(refusals.recent(Nanos::from_secs(1)), []);
        see(Err(BlockError::OutOfSpace), 1, 1);
        see(Err(BlockError::OutOfSpace), 2, 20);
        assert_eq!(refusals.recent(Nanos::from_secs(30)).len(), 2);
        assert_eq!(refusals.recent(Nanos::from_secs(31)), [(VolumeId(2), "alpha".to_owned())]);
        assert_eq!(refusals.recent(Nanos::from_secs(50)), []);
        for volume in 0..2 * SPACE_REFUSALS_MAX as u32 {
            see(Err(BlockError::OutOfSpace), volume, 100);
        }
        assert_eq!(refusals.recent(Nanos::from_secs(100)).len(), SPACE_REFUSALS_MAX);
    }
}
