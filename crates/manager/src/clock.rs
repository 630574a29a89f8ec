//! The wall clock gives names and dates. It is not trusted for decisions that would destroy data.
//!
//! The time that a volume has been in the bin counts only while the array runs. Schedules keep snapshots by the order
//! in which they were taken, and they delete none while the clock is distrusted. The clock is distrusted if it has
//! jumped, or if its time at the start does not fit the last time that the array knew. After it has run steadily for a
//! day, it is trusted again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use base::calendar::CLOCK_STEP_MS;
use base::{Nanos, VolumeId};
use catalog::Binned;

/// Clock corrections within a day are smaller than this.
const JUMP_MS: u64 = 15 * 60 * 1000;
/// At a start, a clock that is ahead of the last known time by more than this is distrusted.
const AHEAD_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// A clock that has run steadily for this long is trusted.
pub(crate) const BELIEVED_AFTER: Nanos = Nanos::from_secs(24 * 60 * 60);
/// What is known of the wall clock.
#[derive(Default)]
pub(crate) struct Clock {
    /// Since when the clock has run steadily, and its time at that moment.
    pub(crate) steady: Cell<Option<(Nanos, u64)>>,
    pub(crate) doubt: Cell<Option<Doubt>>,
    /// Since when the time of a volume in the bin is not recorded yet.
    pub(crate) held_since: RefCell<BTreeMap<VolumeId, Nanos>>,
    pub(crate) noted: Cell<Nanos>,
}

/// Why the clock is distrusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Doubt {
    pub(crate) expected_ms: u64,
    pub(crate) says_ms: u64,
    pub(crate) at_start: bool,
}

impl Clock {
    /// Records what the clock says now; `known_ms` is the last time that the array knew.
    pub(crate) fn see(&self, now: Nanos, says_ms: u64, known_ms: Option<u64>) {
        let Some((since, said_ms)) = self.steady.get() else {
            self.steady.set(Some((now, says_ms)));
            let fits =
                known_ms.is_none_or(|known| says_ms + CLOCK_STEP_MS >= known && says_ms <= known + AHEAD_MS);
            if !fits {
                let expected_ms = known_ms.unwrap_or_default();
                self.doubt.set(Some(Doubt { expected_ms, says_ms, at_start: true }));
            }
            return;
        };
        let expected_ms = said_ms + now.saturating_sub(since).0 / 1_000_000;
        if says_ms.abs_diff(expected_ms) >= JUMP_MS {
            self.steady.set(Some((now, says_ms)));
            self.doubt.set(Some(Doubt { expected_ms, says_ms, at_start: false }));
        } else if now.saturating_sub(since) >= BELIEVED_AFTER {
            self.steady.set(Some((now, says_ms)));
            self.doubt.set(None);
        }
    }

    pub(crate) fn is_doubted(&self) -> bool {
        self.doubt.get().is_some()
    }

    /// For how many seconds a volume has been in the bin while the array ran.
    pub(crate) fn held_seconds(&self, binned: &Binned, now: Nanos) -> u64 {
        let since = self.held_since.borrow().get(&binned.volume.id).copied().unwrap_or(now);
        binned.held_seconds + now.saturating_sub(since).0 / 1_000_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000;
    const DAY: u64 = 86_400_000;

    fn at(hours: u64) -> Nanos {
        Nanos::from_secs(hours * 3600)
    }

    #[test]
    fn a_clock_that_runs_is_believed() {
        let clock = Clock::default();
        for hour in 0..100 {
            // the clock gains a second in each hour
            clock.see(at(hour), START + hour * 3_601_000, Some(START - DAY));
            assert!(!clock.is_doubted(), "after {hour} h");
        }
    }

    #[test]
    fn one_that_jumps_is_not_until_a_day_has_passed() {
        for (before, after) in
            [(START, START + 365 * DAY), (START, START - 365 * DAY), (START, START + DAY / 12)]
        {
            let clock = Clock::default();
            clock.see(at(0), before, None);
            clock.see(at(1), after, None);
            assert!(clock.is_doubted());
            clock.see(at(24), after + 23 * 3_600_000, None);
            assert!(clock.is_doubted());
            clock.see(at(25), after + DAY, None);
            assert!(!clock.is_doubted());
        }
    }

    #[test]
    fn at_a_start_it_has_to_fit_what_was_known() {
        let doubted = |says_ms, known_ms| {
            let clock = Clock::default();
            clock.see(at(0), says_ms, known_ms);
            clock.is_doubted()
        };
        assert!(
            !doubted(START, None) && !doubted(START, Some(START)) && !doubted(START + 6 * DAY, Some(START))
        );
        assert!(doubted(START + 365 * DAY, Some(START)), "a year ahead");
        assert!(doubted(START - DAY, Some(START)), "behind");
        assert!(doubted(0, Some(START)), "a battery that is empty");
    }
}
