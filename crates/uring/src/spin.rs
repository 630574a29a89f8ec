//! How long an idle shard polls before it sleeps.
//!
//! Sleeping and waking takes longer than a short request, and meanwhile the caches lose the shard's data. Polling
//! uses the core. So a shard polls only about as long as recent gaps between events, and only very briefly if
//! events are far apart:
//!
//! ```text
//!   gap ≤ longest   the limit may grow to twice the gap; what longer gaps allowed decays step by step
//!   gap > longest   the limit is halved, down to the shortest
//! ```

use base::Nanos;

/// The shortest limit: enough for a peer that answers at once.
const SHORTEST: Nanos = Nanos::from_micros(5);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    shortest: Nanos,
    longest: Nanos,
    limit: Nanos,
}

impl Spin {
    /// Polls for at most `longest`. Zero: sleeps at once.
    pub fn new(longest: Nanos) -> Spin {
        let shortest = SHORTEST.min(longest);
        Spin { shortest, longest, limit: shortest }
    }

    /// How long to poll now.
    pub fn limit(&self) -> Nanos {
        self.limit
    }

    /// There was nothing to do for this time, spent polling, sleeping, or both.
    pub fn on_gap(&mut self, gap: Nanos) {
        let limit = if gap > self.longest {
            self.limit.0 / 2
        } else {
            (self.limit.0 - self.limit.0 / 8).max(2 * gap.0)
        };
        self.limit = Nanos(limit.clamp(self.shortest.0, self.longest.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(gaps: impl IntoIterator<Item = u64>) -> u64 {
        let mut spin = Spin::new(Nanos::from_micros(50));
        gaps.into_iter().for_each(|micros| spin.on_gap(Nanos::from_micros(micros)));
        spin.limit().0 / 1000
    }

    #[test]
    fn short_gaps_are_waited_for_and_long_ones_are_not() {
        assert_eq!(after([]), 5);
        assert_eq!(after([12]), 24, "twice the gap, at once");
        assert_eq!(after([30; 3]), 50, "never longer than the longest");
        assert_eq!(after([1; 100]), 5);
        assert_eq!(after([40].into_iter().chain([3; 4])), 29, "forgotten bit by bit");
        assert_eq!(after([40, 1000]), 25);
        assert_eq!(after([40, 1000, 1000, 1000, 1000]), 5, "an idle shard does not burn its core");
    }

    #[test]
    fn zero_means_never() {
        let mut spin = Spin::new(Nanos(0));
        spin.on_gap(Nanos(0));
        spin.on_gap(Nanos::from_micros(3));
        assert_eq!(spin.limit(), Nanos(0));
    }
}
