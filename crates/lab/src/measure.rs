//! Measurements during a load: latencies, and a time line. The tallies of threads and hosts are added up.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies above this count as this: ten minutes.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Intervals of a time line; what comes after counts in the last.
const INTERVALS_MAX: usize = 1 << 20;

/// One interval of the time line.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    pub operations: u64,
    pub latency_ns_max: u64,
}

/// What one thread has seen.
pub struct Tally {
    reads: Histogram<u64>,
    writes: Histogram<u64>,
    line: Vec<Interval>,
    interval_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// Percentiles that are reported, in percent.
pub const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// Latencies of one direction, in nanoseconds.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct Latency {
    pub operations: u64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub p9999_ns: u64,
    pub max_ns: u64,
}

/// A tally on its way from one host to another: counts by latency.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Counts {
    pub reads: Vec<(u64, u64)>,
    pub writes: Vec<(u64, u64)>,
    pub line: Vec<Interval>,
    pub interval_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are fine")
}

impl Tally {
    pub fn new(interval_ms: u32) -> Tally {
        Tally {
            reads: histogram(),
            writes: histogram(),
            line: Vec::with_capacity(4096),
            interval_ns: u64::from(interval_ms) * 1_000_000,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// A request has ended, `at_ns` after measuring began.
    pub fn record(&mut self, write: bool, bytes: u32, latency_ns: u64, at_ns: u64) {
        if write {
            self.writes.saturating_record(latency_ns);
            self.written_bytes += u64::from(bytes);
        } else {
            self.reads.saturating_record(latency_ns);
            self.read_bytes += u64::from(bytes);
        }
        let index = ((at_ns / self.interval_ns) as usize).min(INTERVALS_MAX - 1);
        if self.line.len() <= index {
            self.line.resize(index + 1, Interval::default());
        }
        let interval = &mut self.line[index];
        interval.operations += 1;
        interval.latency_ns_max = interval.latency_ns_max.max(latency_ns);
    }

    /// Adds what another has seen in the same time.
    pub fn add(&mut self, other: &Tally) {
        assert_eq!(self.interval_ns, other.interval_ns, "tallies of one run have the same intervals");
        self.reads.add(&other.reads).expect("the same bounds");
        self.writes.add(&other.writes).expect("the same bounds");
        if self.line.len() < other.line.len() {
            self.line.resize(other.line.len(), Interval::default());
        }
        for (mine, theirs) in self.line.iter_mut().zip(&other.line) {
            mine.operations += theirs.operations;
            mine.latency_ns_max = mine.latency_ns_max.max(theirs.latency_ns_max);
        }
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }

    pub fn operations(&self) -> u64 {
        self.reads.len() + self.writes.len()
    }

    /// Intervals that lie wholly within the time measured.
    pub fn line(&self, seconds: f64) -> &[Interval] {
        let whole = (seconds * 1e9 / self.interval_ns as f64 + 1e-6) as usize;
        &self.line[..whole.min(self.line.len())]
    }

    pub fn reads(&self) -> Latency {
        Latency::of(&self.reads)
    }

    pub fn writes(&self) -> Latency {
        Latency::of(&self.writes)
    }

    /// Reads and writes together.
    pub fn all(&self) -> Latency {
        let mut all = self.reads.clone();
        all.add(&self.writes).expect("the same bounds");
        Latency::of(&all)
    }

    pub fn to_counts(&self) -> Counts {
        let pairs = |histogram: &Histogram<u64>| {
            let recorded = histogram.iter_recorded();
            recorded.map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
        };
        Counts {
            reads: pairs(&self.reads),
            writes: pairs(&self.writes),
            line: self.line.clone(),
            interval_ns: self.interval_ns,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
        }
    }

    pub fn from_counts(counts: &Counts) -> Result<Tally, String> {
        if counts.interval_ns == 0 || counts.line.len() > INTERVALS_MAX {
            return Err("a time line that cannot be: the other host runs another version".to_owned());
        }
        let fill = |pairs: &[(u64, u64)]| {
            let mut filled = histogram();
            pairs.iter().for_each(|&(value, count)| filled.saturating_record_n(value, count));
            filled
        };
        Ok(Tally {
            reads: fill(&counts.reads),
            writes: fill(&counts.writes),
            line: counts.line.clone(),
            interval_ns: counts.interval_ns,
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
        })
    }
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Latency {
        if histogram.is_empty() {
            return Latency::default();
        }
        let at = |percent: f64| histogram.value_at_percentile(percent);
        Latency {
            operations: histogram.len(),
            mean_ns: histogram.mean(),
            min_ns: histogram.min(),
            p50_ns: at(PERCENTILES[0]),
            p90_ns: at(PERCENTILES[1]),
            p99_ns: at(PERCENTILES[2]),
            p999_ns: at(PERCENTILES[3]),
            p9999_ns: at(PERCENTILES[4]),
            max_ns: at(PERCENTILES[5]),
        }
    }
}

/// Stretches in which next to nothing ended: start and length in intervals. An interval is frozen where less than a
/// twentieth of the median interval's operations ended; the median must be large enough to tell.
pub fn freezes(line: &[Interval]) -> Vec<(usize, usize)> {
    let mut sorted: Vec<u64> = line.iter().map(|interval| interval.operations).collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    if median < 20 {
        return Vec::new();
    }
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, interval) in line.iter().enumerate() {
        if interval.operations * 20 < median {
            match found.last_mut() {
                Some((start, length)) if *start + *length == index => *length += 1,
                _ => found.push((index, 1)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up_also_over_the_wire() {
        let mut one = Tally::new(100);
        let mut two = Tally::new(100);
        for latency in 1..=1000 {
            one.record(false, 4096, latency * 1000, 50_000_000);
            two.record(true, 512, latency * 2000, 250_000_000);
        }
        let text = serde_json::to_string(&two.to_counts()).expect("plain values");
        let counts: Counts = serde_json::from_str(&text).expect("what was written");
        one.add(&Tally::from_counts(&counts).expect("of this version"));
        assert_eq!((one.operations(), one.read_bytes, one.written_bytes), (2000, 4_096_000, 512_000));
        let within = |value: u64, expected: u64| value.abs_diff(expected) <= expected / 500;
        assert!(within(one.reads().p50_ns, 500_000) && within(one.writes().p99_ns, 1_980_000));
        assert!(within(one.all().max_ns, 2_000_000));
        let line = one.line(0.3);
        assert_eq!(line.iter().map(|interval| interval.operations).collect::<Vec<_>>(), [1000, 0, 1000]);
        assert_eq!(one.line(0.25).len(), 2, "an interval that was cut short does not count");
    }

    #[test]
    fn a_freeze_is_seen_and_a_slow_interval_is_not_one() {
        let line = |operations: &[u64]| -> Vec<Interval> {
            operations.iter().map(|&operations| Interval { operations, latency_ns_max: 0 }).collect()
        };
        assert_eq!(freezes(&line(&[100, 90, 0, 4, 100, 20, 100, 1])), [(2, 2), (7, 1)]);
        assert_eq!(freezes(&line(&[5, 0, 5])), []);
        assert_eq!(freezes(&[]), []);
    }
}
