//! Detects pauses of this machine. One thread on each processor sleeps repeatedly, and notes when it wakes late.
//!
//! If the host of a virtual machine does not run it for a moment, every program in it pauses. The target did not cause
//! latencies that were measured across such a pause, and a run reports them. Only this machine is watched.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::measure::Interval;

const SLEEP: Duration = Duration::from_millis(5);
/// Waking later than this is a pause: more than other threads of this machine cause.
const LATE_MIN: Duration = Duration::from_millis(20);

/// A stretch in which some processor of this machine stood still, in seconds since measuring began.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub struct Pause {
    pub at_seconds: f64,
    pub seconds: f64,
}

/// Threads that watch.
pub struct Watch {
    ended: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<Vec<Pause>>>,
}

impl Watch {
    /// Watches all processors that this process may use; measuring begins at `start`.
    pub fn begin(start: Instant) -> Watch {
        let ended = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let threads = cores.map(|core| {
            let ended = ended.clone();
            std::thread::spawn(move || watch(core, start, &ended))
        });
        Watch { threads: threads.collect(), ended }
    }

    /// The pauses, in order; those of several processors at once are one.
    pub fn end(mut self) -> Vec<Pause> {
        self.ended.store(true, Relaxed);
        let threads = std::mem::take(&mut self.threads);
        merged(threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
    }
}

fn watch(core: usize, start: Instant, ended: &AtomicBool) -> Vec<Pause> {
    let mut set = CpuSet::new();
    set.set(core);
    // Before the others of its processor, where it may be: otherwise their turns are seen, which are short.
    let _ = (sched_setaffinity(None, &set), rustix::process::nice(-20));
    let mut pauses = Vec::new();
    let mut before = Instant::now();
    while !ended.load(Relaxed) {
        std::thread::sleep(SLEEP);
        let now = Instant::now();
        if now - before >= SLEEP + LATE_MIN && now > start {
            let begin = before.max(start);
            pauses.push(Pause {
                at_seconds: (begin - start).as_secs_f64(),
                seconds: (now - begin).as_secs_f64(),
            });
        }
        before = now;
    }
    pauses
}

/// Pauses that overlap are one.
pub fn merged(mut pauses: Vec<Pause>) -> Vec<Pause> {
    pauses.sort_by(|one, other| one.at_seconds.total_cmp(&other.at_seconds));
    let mut found: Vec<Pause> = Vec::new();
    for pause in pauses {
        match found.last_mut() {
            Some(last) if last.at_seconds + last.seconds >= pause.at_seconds => {
                let end = (last.at_seconds + last.seconds).max(pause.at_seconds + pause.seconds);
                last.seconds = end - last.at_seconds;
            }
            _ => found.push(pause),
        }
    }
    found
}

/// The longest latency of the intervals whose slowest request no pause can have touched.
pub fn longest_between(line: &[Interval], interval_seconds: f64, pauses: &[Pause]) -> u64 {
    let touched = |index: usize, interval: &Interval| {
        let end = (index + 1) as f64 * interval_seconds;
        let begin = index as f64 * interval_seconds - interval.latency_ns_max as f64 / 1e9;
        pauses.iter().any(|pause| pause.at_seconds < end && pause.at_seconds + pause.seconds > begin)
    };
    let between = line.iter().enumerate().filter(|&(index, interval)| !touched(index, interval));
    between.map(|(_, interval)| interval.latency_ns_max).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(at_seconds: f64, seconds: f64) -> Pause {
        Pause { at_seconds, seconds }
    }

    #[test]
    fn what_several_processors_see_at_once_is_one_pause() {
        let seen = vec![pause(2.0, 0.5), pause(0.0, 0.1), pause(2.25, 0.5), pause(9.0, 0.1)];
        assert_eq!(merged(seen), [pause(0.0, 0.1), pause(2.0, 0.75), pause(9.0, 0.1)]);
        assert_eq!(merged(Vec::new()), []);
    }

    #[test]
    fn a_request_is_the_targets_unless_a_pause_touched_it() {
        let line = [3, 200, 5, 150, 4].map(|ms| Interval { operations: 1, latency_ns_max: ms * 1_000_000 });
        assert_eq!(longest_between(&line, 0.1, &[]), 200_000_000);
        // in the second interval: the fourth's slowest may have begun before 0.3 - 0.15
        assert_eq!(longest_between(&line, 0.1, &[pause(0.12, 0.05)]), 5_000_000);
        assert_eq!(longest_between(&line, 0.1, &[pause(0.0, 0.6)]), 0);
    }

    #[test]
    fn a_thread_on_each_processor_that_ends() {
        let watch = Watch::begin(Instant::now());
        let allowed = sched_getaffinity(None).expect("known").count() as usize;
        assert_eq!(watch.threads.len(), allowed);
        std::thread::sleep(2 * SLEEP);
        let pauses = watch.end();
        assert!(pauses.iter().all(|pause| pause.seconds >= LATE_MIN.as_secs_f64()), "{pauses:?}");
    }
}
