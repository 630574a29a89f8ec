//! A histogram of latencies with fixed buckets: adding one value is one count and one sum, and needs no memory.
//!
//! ```text
//!   bucket    0          1          2        …   20        21
//!   up to     2^14 ns    2^15 ns    2^16 ns  …   2^34 ns   no limit
//!             16.4 us    32.8 us    65.5 us  …   17.2 s
//! ```

use crate::Nanos;

/// The upper end of the first bucket is this power of two, in nanoseconds.
const FIRST: u32 = 14;
/// Buckets with an upper end.
const BOUNDED: usize = 21;
const BUCKETS: usize = BOUNDED + 1;

/// How often each latency occurred; see the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatencyHistogram {
    counts: [u64; BUCKETS],
    sum_ns: u64,
}

impl LatencyHistogram {
    pub fn add(&mut self, time: Nanos) {
        self.counts[bucket_of(time)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(time.0);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> Nanos {
        Nanos(self.sum_ns)
    }

    /// Each bucket in order: its upper end, which still belongs to it, and how many values it has. The last bucket ends at
    /// [`Nanos::MAX`].
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let end =
            |bucket: usize| if bucket < BOUNDED { Nanos(1 << (FIRST + bucket as u32)) } else { Nanos::MAX };
        self.counts.iter().enumerate().map(move |(bucket, &count)| (end(bucket), count))
    }
}

/// The first bucket whose upper end is not below the value.
fn bucket_of(time: Nanos) -> usize {
    let bits = u64::BITS - time.0.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(FIRST) as usize).min(BOUNDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_that_does_not_end_below_it() {
        let ends: Vec<Nanos> = LatencyHistogram::default().buckets().map(|(end, _)| end).collect();
        assert_eq!(
            (ends.len(), ends[0], ends[20], ends[21]),
            (22, Nanos(16_384), Nanos(1 << 34), Nanos::MAX)
        );
        for end in [0, 1, 2].into_iter().chain(ends.iter().map(|end| end.0)) {
            for value in [end.saturating_sub(1), end, end.saturating_add(1)] {
                let expected = ends.iter().position(|&end| value <= end.0).expect("the last has no end");
                assert_eq!(bucket_of(Nanos(value)), expected, "{value} ns");
            }
        }
    }

    #[test]
    fn sums_have_what_their_parts_have() {
        let (mut one, mut other) = (LatencyHistogram::default(), LatencyHistogram::default());
        [0, 16_384, 16_385].iter().for_each(|&ns| one.add(Nanos(ns)));
        [16_385, 20_000_000_000].iter().for_each(|&ns| other.add(Nanos(ns)));
        one.merge(&other);
        let filled: Vec<(u64, u64)> =
            one.buckets().filter(|(_, count)| *count > 0).map(|(end, count)| (end.0, count)).collect();
        assert_eq!(filled, [(16_384, 2), (32_768, 2), (u64::MAX, 1)]);
        assert_eq!((one.count(), one.sum()), (5, Nanos(20_000_049_154)));
    }
}
