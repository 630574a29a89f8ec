//! Counts of what a run did, so that what it never did is visible.

use std::fmt;

use pool::LaneStats;

use crate::fault::FaultCounts;

macro_rules! totals {
    ($($name:ident = $text:literal,)*) => {
        /// What the pool's lanes counted, summed over all processes of a run.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct PoolTotals { $(pub $name: u64,)* }

        impl PoolTotals {
            pub fn merge(&mut self, other: &PoolTotals) {
                $(self.$name += other.$name;)*
            }

            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$name),)*].into_iter()
            }
        }
    };
}

totals! {
    opened = "pool: lanes opened",
    created = "pool: pools created",
    batches = "pool: batches written",
    blocks_rebuilt = "pool: blocks rebuilt",
    blocks_healed = "pool: blocks healed",
    blocks_cleaned = "pool: blocks cleaned",
    segments_cleaned = "pool: segments cleaned",
    checkpoints = "pool: checkpoints",
    replayed = "recovery: batches replayed",
    dropped = "recovery: torn batches dropped",
    completed = "recovery: batches completed from parity",
    moves_stale = "conditional moves that did not apply",
    pages_merged = "layers: leaf pages merged",
    drives_lost = "pool: drives taken out",
    proved_whole = "pool: whole without as many drives as promised",
}

impl PoolTotals {
    pub fn add(&mut self, stats: &LaneStats) {
        let counters = &stats.counters;
        self.opened += 1;
        self.batches += counters.batches;
        self.blocks_rebuilt += counters.blocks_rebuilt;
        self.blocks_healed += counters.blocks_healed;
        self.blocks_cleaned += counters.blocks_cleaned;
        self.segments_cleaned += counters.segments_cleaned;
        self.checkpoints += counters.checkpoints;
        self.replayed += counters.replayed;
        self.dropped += counters.dropped;
        self.completed += counters.completed;
        self.moves_stale += counters.moves_stale;
        self.pages_merged += counters.pages_merged;
    }
}

/// A run that passed, or the sum of several.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    pub seed: u64,
    /// Equal for two runs exactly where all that happened was.
    pub digest: u64,
    pub seeds: u64,
    /// Starts of the pool.
    pub rounds: u64,
    pub requests: u64,
    pub out_of_space: u64,
    /// Errors that were answered where more had gone wrong than was promised.
    pub refused: u64,
    pub checked_blocks: u64,
    pub events: u64,
    pub simulated_ms: u64,
    pub faults: FaultCounts,
    pub pool: PoolTotals,
}

impl Report {
    pub fn merge(&mut self, other: &Report) {
        self.seeds += other.seeds;
        self.rounds += other.rounds;
        self.requests += other.requests;
        self.out_of_space += other.out_of_space;
        self.refused += other.refused;
        self.checked_blocks += other.checked_blocks;
        self.events += other.events;
        self.simulated_ms += other.simulated_ms;
        self.faults.merge(&other.faults);
        self.pool.merge(&other.pool);
    }

    /// Every count by name.
    pub fn totals(&self) -> Vec<(String, u64)> {
        let own = [
            ("run: seeds", self.seeds),
            ("run: starts of the pool", self.rounds),
            ("run: requests", self.requests),
            ("run: requests without space", self.out_of_space),
            ("run: errors beyond the promise", self.refused),
            ("run: blocks checked", self.checked_blocks),
            ("run: events", self.events),
            ("run: simulated milliseconds", self.simulated_ms),
        ];
        let own = own.into_iter().map(|(name, count)| (name.to_owned(), count));
        let faults = self.faults.iter().map(|(kind, count)| (format!("fault: {}", kind.name()), count));
        let pool = self.pool.iter().map(|(name, count)| (name.to_owned(), count));
        own.chain(faults).chain(pool).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} passed, digest {:016x}", self.seed, self.digest)?;
        for (name, count) in self.totals() {
            writeln!(f, "{count:>14}  {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_names_every_count() {
        let one = Report { seeds: 1, requests: 5, ..Report::default() };
        let mut sum = one.clone();
        sum.merge(&one);
        let totals = sum.totals();
        assert!(totals.contains(&("run: requests".to_owned(), 10)));
        let mut names: Vec<&String> = totals.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), totals.len());
    }
}
