//! Finds slow drives: compares the latency of a drive's reads and writes with its siblings'. A single slow operation
//! never counts.
//!
//! ```text
//!  interval 1 │ interval 2 │ … │ interval 6      each: the median latency of every drive, reads and writes apart
//!      slow        slow      …      slow         slow in all of them: the drive is slow
//! ```
//!
//! A drive is slow in an interval if its median latency is above a floor and exceeds its siblings' medians by a factor.
//! If all drives are slow together, none is slow in comparison.
//!
//! Reads and writes are counted apart: writes that are as fast as usual do not excuse slow reads. If an interval has too
//! few samples of a kind, they are kept, and the next interval adds to them: the slower a drive is, the fewer of its
//! operations end in an interval.

use base::{LatencyHistogram, Nanos};

use crate::drives::evidence::Patience;

/// How many intervals in a row a drive must have been slow.
const INTERVALS: u32 = 6;
/// With fewer reads or writes, an interval says nothing about a drive's reads or writes.
const SAMPLES_MIN: u32 = 16;
/// Drives to compare with.
const SIBLINGS_MIN: usize = 2;
/// Slow intervals, medians and samples older than this many times the slow time no longer count.
const STALE: u64 = 10;
/// Four buckets per doubling, from a microsecond to a quarter of an hour.
const BUCKETS: usize = 120;

/// The kind of access that was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

/// How fast a drive is, by the last interval with enough samples.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriveLatency {
    /// Median latencies.
    pub read: Option<Nanos>,
    pub write: Option<Nanos>,
    /// How many times slower than its siblings it has been, if for long enough.
    pub slow: Option<u32>,
}

/// All reads and all writes of a drive since the lane was opened, failed ones among them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriveTotals {
    pub read_bytes: u64,
    pub reads: LatencyHistogram,
    pub written_bytes: u64,
    pub writes: LatencyHistogram,
}

impl DriveTotals {
    fn add(&mut self, access: Access, bytes: usize, time: Nanos) {
        let (sum, histogram) = match access {
            Access::Read => (&mut self.read_bytes, &mut self.reads),
            Access::Write => (&mut self.written_bytes, &mut self.writes),
        };
        *sum += bytes as u64;
        histogram.add(time);
    }
}

#[derive(Clone, Default)]
struct Histogram {
    /// Empty until there is a sample.
    counts: Vec<u32>,
    total: u32,
}

impl Histogram {
    fn add(&mut self, time: Nanos) {
        if self.counts.is_empty() {
            self.counts.resize(BUCKETS, 0);
        }
        let value = (time.0 >> 10) + 4;
        let octave = value.ilog2() as usize;
        let bucket = (octave - 2) * 4 + (value >> (octave - 2)) as usize % 4;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.total += 1;
    }

    /// `None` if there are too few samples. Accurate to a quarter.
    fn median(&self) -> Option<Nanos> {
        if self.total < SAMPLES_MIN {
            return None;
        }
        let mut left = self.total / 2;
        let bucket = self.counts.iter().position(|&count| {
            let here = left < count;
            left = left.saturating_sub(count);
            here
        });
        let bucket = bucket.unwrap_or(BUCKETS - 1) as u64;
        Some(Nanos((((4 + bucket % 4) << (bucket / 4)) - 4) << 10))
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }
}

/// The reads of a drive, or its writes.
#[derive(Clone, Default)]
struct Accesses {
    samples: Histogram,
    /// When the first of these samples was taken.
    since: Nanos,
    /// The newest median, and when it was taken.
    median: Option<Nanos>,
    taken: Nanos,
    /// Intervals in a row in which they were slow, when the last of them ended, and how many times slower they were.
    slow: u32,
    last: Nanos,
    factor: u32,
}

impl Accesses {
    /// Takes the median, if there are enough samples, and begins anew; otherwise keeps them. `true` if there were enough.
    fn take_median(&mut self, now: Nanos, stale: Nanos) -> bool {
        let median = self.samples.median();
        if median.is_some() {
            (self.median, self.taken) = (median, now);
        }
        if median.is_some() || now.saturating_sub(self.since) > stale {
            self.samples.clear();
        }
        median.is_some()
    }

    /// Counts an interval in which they were so many times slower than usual, or were not slow.
    fn count_interval(&mut self, slower: Option<u32>, now: Nanos, stale: Nanos) {
        match slower {
            Some(factor) => {
                self.slow = if now.saturating_sub(self.last) > stale { 1 } else { self.slow + 1 };
                (self.last, self.factor) = (now, factor);
            }
            None => self.slow = 0,
        }
    }
}

#[derive(Clone, Default)]
struct Drive {
    accesses: [Accesses; 2],
}

/// The latencies of a lane's drives, by index.
#[derive(Default)]
pub(crate) struct Latencies {
    drives: Vec<Drive>,
    /// Nothing of these is forgotten.
    totals: Vec<DriveTotals>,
    /// When the interval ends.
    until: Nanos,
}

impl Latencies {
    /// Records how long a completed read or write took.
    pub fn add(&mut self, drive: u8, access: Access, time: Nanos, now: Nanos, patience: &Patience) {
        let index = usize::from(drive);
        if now >= self.until {
            self.end_interval(now, patience);
            self.until = now + Nanos(patience.slow_time.0 / u64::from(INTERVALS));
        }
        if self.drives.len() <= index {
            self.drives.resize_with(index + 1, Drive::default);
        }
        let accesses = &mut self.drives[index].accesses[access as usize];
        if accesses.samples.total == 0 {
            accesses.since = now;
        }
        accesses.samples.add(time);
    }

    fn end_interval(&mut self, now: Nanos, patience: &Patience) {
        let stale = Nanos(patience.slow_time.0 * STALE);
        for access in [Access::Read, Access::Write] {
            let mut all: Vec<&mut Accesses> =
                self.drives.iter_mut().map(|drive| &mut drive.accesses[access as usize]).collect();
            let judged: Vec<bool> = all.iter_mut().map(|accesses| accesses.take_median(now, stale)).collect();
            let medians: Vec<Option<Nanos>> = all
                .iter()
                .map(|accesses| accesses.median.filter(|_| now.saturating_sub(accesses.taken) <= stale))
                .collect();
            for (index, accesses) in all.into_iter().enumerate() {
                if let Some(factor) = times_slower(&medians, index).filter(|_| judged[index]) {
                    let slow = patience.slow_factor > 0
                        && factor >= patience.slow_factor
                        && medians[index].is_some_and(|median| median >= patience.slow_latency);
                    accesses.count_interval(slow.then_some(factor), now, stale);
                } else if now.saturating_sub(accesses.last) > stale {
                    accesses.slow = 0;
                }
            }
        }
    }

    /// Counts a completed read or write.
    pub fn count(&mut self, drive: u8, access: Access, bytes: usize, time: Nanos) {
        let index = usize::from(drive);
        if self.totals.len() <= index {
            self.totals.resize_with(index + 1, DriveTotals::default);
        }
        self.totals[index].add(access, bytes, time);
    }

    pub fn totals(&self) -> &[DriveTotals] {
        &self.totals
    }

    /// Forgets the slow intervals of a drive.
    pub fn forget(&mut self, drive: u8) {
        if let Some(drive) = self.drives.get_mut(usize::from(drive)) {
            *drive = Drive::default();
        }
    }

    pub fn all(&self) -> Vec<DriveLatency> {
        let latency = |drive: &Drive| {
            let [reads, writes] = &drive.accesses;
            let slow = |accesses: &&Accesses| accesses.slow >= INTERVALS;
            DriveLatency {
                read: reads.median,
                write: writes.median,
                slow: [reads, writes].into_iter().filter(slow).map(|accesses| accesses.factor).max(),
            }
        };
        self.drives.iter().map(latency).collect()
    }
}

/// The ratio of a drive's median to the median of its siblings' medians; of two in the middle the slower counts.
fn times_slower(medians: &[Option<Nanos>], drive: usize) -> Option<u32> {
    let siblings = medians.iter().enumerate().filter(|(index, _)| *index != drive);
    let mut siblings: Vec<Nanos> = siblings.filter_map(|(_, median)| *median).collect();
    if siblings.len() < SIBLINGS_MIN {
        return None;
    }
    siblings.sort_unstable();
    let usual = siblings[siblings.len() / 2].0.max(1 << 10);
    Some(u32::try_from(medians[drive]?.0 / usual).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Every drive does 40 writes a second, with these latencies; returns the drives that are slow after `seconds`.
    fn run(
        latencies: &mut Latencies,
        from: u64,
        seconds: u64,
        times: impl Fn(u64, usize) -> u64,
    ) -> Vec<usize> {
        let patience = Patience::default();
        for tick in from * 40..(from + seconds) * 40 {
            for drive in 0..5 {
                let time = Nanos(times(tick, drive));
                latencies.add(drive as u8, Access::Write, time, Nanos(tick * 25 * MS), &patience);
            }
        }
        let all = latencies.all();
        (0..5).filter(|&drive| all[drive].slow.is_some()).collect()
    }

    #[test]
    fn medians_are_exact_to_a_quarter() {
        for time in [1_000, 80_000, 5 * MS, 700 * MS, 90_000 * MS] {
            let mut histogram = Histogram::default();
            (0..99).for_each(|_| histogram.add(Nanos(time)));
            let median = histogram.median().unwrap().0;
            assert!(median <= time && median * 5 / 4 + 1100 >= time, "{time}: {median}");
        }
        let mut few = Histogram::default();
        few.add(Nanos(MS));
        assert_eq!(few.median(), None);
    }

    #[test]
    fn one_slow_drive_is_found_and_not_before_its_time() {
        let one_slow = |_: u64, drive: usize| if drive == 3 { 10 * MS } else { MS / 5 };
        let mut latencies = Latencies::default();
        assert_eq!(run(&mut latencies, 0, 55, one_slow), []);
        assert_eq!(run(&mut latencies, 55, 10, one_slow), [3]);
        let latency = latencies.all()[3];
        assert!((40..=60).contains(&latency.slow.unwrap()), "{latency:?}");
        latencies.forget(3);
        assert_eq!(latencies.all()[3], DriveLatency::default());
    }

    #[test]
    fn all_slow_together_most_of_them_or_a_little_are_not() {
        let all: fn(u64, usize) -> u64 = |_, _| 500 * MS;
        let most: fn(u64, usize) -> u64 = |_, drive| if drive < 3 { 50 * MS } else { MS / 5 };
        let below_the_floor: fn(u64, usize) -> u64 = |_, drive| if drive == 3 { MS } else { MS / 50 };
        let a_little: fn(u64, usize) -> u64 = |_, drive| if drive == 3 { 20 * MS } else { 3 * MS };
        for times in [all, most, below_the_floor, a_little] {
            assert_eq!(run(&mut Latencies::default(), 0, 300, times), []);
        }
    }

    #[test]
    fn hiccups_are_borne_with() {
        // one of a hundred takes ten seconds; for most of a minute it is slow, but not for all of it
        let spikes = |tick: u64, drive: usize| {
            if drive == 3 && tick.is_multiple_of(100) { 10_000 * MS } else { MS / 5 }
        };
        assert_eq!(run(&mut Latencies::default(), 0, 300, spikes), []);
        let bouts =
            |tick: u64, drive: usize| if drive == 3 && tick / 40 % 60 < 45 { 100 * MS } else { MS / 5 };
        let mut latencies = Latencies::default();
        for from in (0..600).step_by(15) {
            assert_eq!(run(&mut latencies, from, 15, bouts), []);
        }
    }

    /// Each drive does `reads` and `writes` an interval, with these latencies; returns the drives that are slow after
    /// `intervals`.
    fn run_intervals(
        intervals: u64,
        counts: impl Fn(u64, usize) -> [u64; 2],
        times: impl Fn(usize) -> [u64; 2],
    ) -> Vec<usize> {
        let (mut latencies, patience) = (Latencies::default(), Patience::default());
        for interval in 0..intervals {
            let now = Nanos(interval * 10_000 * MS);
            for drive in 0..5 {
                for access in [Access::Read, Access::Write] {
                    let time = Nanos(times(drive)[access as usize]);
                    for _ in 0..counts(interval, drive)[access as usize] {
                        latencies.add(drive as u8, access, time, now, &patience);
                    }
                }
            }
        }
        let all = latencies.all();
        (0..5).filter(|&drive| all[drive].slow.is_some()).collect()
    }

    #[test]
    fn writes_as_usual_do_not_excuse_slow_reads() {
        let times = |drive: usize| if drive == 3 { [4_000 * MS, 500 * MS] } else { [50 * MS, 100 * MS] };
        // in every other interval too few reads of it end to say anything
        let counts = |interval: u64, drive: usize| {
            if drive == 3 && interval % 2 == 1 { [8, 30] } else { [30, 30] }
        };
        assert_eq!(run_intervals(20, counts, times), [3]);
    }

    #[test]
    fn a_drive_is_not_too_slow_to_be_judged() {
        // a host that asks for one thing after the other: the drive ends two reads an interval, and others hardly more
        let times = |drive: usize| if drive == 3 { [4_000 * MS; 2] } else { [MS; 2] };
        let few = |_: u64, drive: usize| if drive == 3 { [2, 0] } else { [2 + drive as u64 % 2, 0] };
        assert_eq!(run_intervals(60, few, times), [3]);
        assert_eq!(run_intervals(40, few, times), []);
        // what was measured long ago says nothing together with what is measured now
        let rarely = |interval: u64, _: usize| [u64::from(interval.is_multiple_of(10)); 2];
        assert_eq!(run_intervals(2_000, rarely, times), []);
    }

    #[test]
    fn two_drives_have_no_siblings_to_compare_with() {
        let mut latencies = Latencies::default();
        let patience = Patience::default();
        for tick in 0..8000 {
            let now = Nanos(tick * 25 * MS);
            latencies.add(0, Access::Read, Nanos(100 * MS), now, &patience);
            latencies.add(1, Access::Read, Nanos(MS / 5), now, &patience);
        }
        assert!(latencies.all().iter().all(|latency| latency.slow.is_none()));
    }

    #[test]
    fn totals_are_of_all_and_are_not_forgotten() {
        let (mut latencies, patience) = (Latencies::default(), Patience::default());
        for tick in 0..10_000u64 {
            let (access, time) = if tick % 4 == 0 { (Access::Read, MS) } else { (Access::Write, 2 * MS) };
            latencies.add(2, access, Nanos(time), Nanos(tick * 25 * MS), &patience);
            latencies.count(2, access, 4096, Nanos(time));
        }
        latencies.forget(2);
        let [before, _, totals] = latencies.totals() else { panic!("three drives") };
        assert_eq!(*before, DriveTotals::default());
        assert_eq!((totals.reads.count(), totals.read_bytes), (2_500, 2_500 * 4096));
        assert_eq!((totals.writes.count(), totals.written_bytes), (7_500, 7_500 * 4096));
        assert_eq!((totals.reads.sum(), totals.writes.sum()), (Nanos(2_500 * MS), Nanos(15_000 * MS)));
    }
}
