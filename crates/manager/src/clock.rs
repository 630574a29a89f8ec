//! The clock on the wall is asked for names and dates; it is not believed where something would be destroyed for it.
//!
//! How long something has been in the bin is counted in time that has passed while the array ran. Schedules keep snapshots by
//! the order in which they were taken, and delete none while the clock is doubted: it has jumped, or at the start it said
//! something that does not fit what the array knew last. One that has then run steadily for a day is believed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use base::calendar::{CLOCK_STEP_MS, moment};
use base::{Nanos, VolumeId};
use catalog::{Binned, Catalog, Change};

use crate::bin::bin_seconds;
use crate::manager::Manager;
use api::{Harm, Health, Problem};

/// Clocks are corrected by less than this in a day.
const JUMP_MS: u64 = 15 * 60 * 1000;
/// At a start, a clock that is later than what the array knew last by more than this is doubted.
const AHEAD_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// A clock that has run steadily for so long is believed.
const BELIEVED_AFTER: Nanos = Nanos::from_secs(24 * 60 * 60);
/// How often it is put on record how long volumes have been in the bin: so many times while one is in it, and not more or less often than
/// this.
const NOTED_TIMES: u64 = 24;
const NOTED_SECONDS: (u64, u64) = (10, 60 * 60);

/// What is known of the clock.
#[derive(Default)]
pub(crate) struct Clock {
    /// From when on it has run steadily, and what it said then.
    steady: Cell<Option<(Nanos, u64)>>,
    doubt: Cell<Option<Doubt>>,
    /// From when on the record of a volume in the bin is to be counted further.
    held_since: RefCell<BTreeMap<VolumeId, Nanos>>,
    noted: Cell<Nanos>,
}

/// Why the clock is not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Doubt {
    expected_ms: u64,
    says_ms: u64,
    at_start: bool,
}

impl Clock {
    /// Takes in what it says now; `known_ms` is what the array knew last.
    fn see(&self, now: Nanos, says_ms: u64, known_ms: Option<u64>) {
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

    fn is_doubted(&self) -> bool {
        self.doubt.get().is_some()
    }

    /// For how many seconds a volume has been in the bin while the array ran.
    fn held_seconds(&self, binned: &Binned, now: Nanos) -> u64 {
        let since = self.held_since.borrow().get(&binned.volume.id).copied().unwrap_or(now);
        binned.held_seconds + now.saturating_sub(since).0 / 1_000_000_000
    }
}

impl Manager {
    /// Looks at the clock.
    pub(crate) fn see_clock(&self) {
        let now = self.context.io.uptime();
        let state = self.state.borrow();
        self.clock.see(now, self.context.io.wall_clock_ms(), state.catalog.clock_ms());
        let mut since = self.clock.held_since.borrow_mut();
        since.retain(|id, _| state.catalog.bin().iter().any(|binned| binned.volume.id == *id));
        for binned in state.catalog.bin() {
            since.entry(binned.volume.id).or_insert(now);
        }
    }

    /// Looks at the clock, and puts on record what it says and how long volumes have been in the bin.
    pub(crate) async fn watch_clock(&self) {
        self.see_clock();
        let now = self.context.io.uptime();
        let Some(change) = self.worth_noting(now) else { return };
        let _turn = self.changes.acquire(1).await;
        // where it cannot be stored, the array says why; volumes stay in the bin for longer
        if let Ok(planned) = self.plan(&change)
            && self.commit(&planned.next).await.is_ok()
        {
            let mut since = self.clock.held_since.borrow_mut();
            since.values_mut().for_each(|since| *since = now);
            self.clock.noted.set(now);
        }
    }

    fn worth_noting(&self, now: Nanos) -> Option<Change> {
        let says_ms = self.context.io.wall_clock_ms();
        let state = self.state.borrow();
        if state.catalog.bin().is_empty() && state.catalog.schedules().is_empty() {
            return None;
        }
        let due = now.saturating_sub(self.clock.noted.get()) >= Manager::noted_every(&state.catalog);
        let believed = (!self.clock.is_doubted()).then_some(says_ms);
        let news = believed.is_some_and(|says| {
            let known = state.catalog.clock_ms();
            known.is_none_or(|known| says.abs_diff(known) >= BELIEVED_AFTER.0 / 1_000_000)
        });
        if !news && (!due || state.catalog.bin().is_empty()) {
            return None;
        }
        let held = state.catalog.bin().iter().map(|one| (one.volume.id, self.clock.held_seconds(one, now)));
        Some(Change::NoteTime { clock_ms: believed, held_seconds: held.collect() })
    }

    fn noted_every(catalog: &Catalog) -> Nanos {
        let pools = catalog.bin().iter().filter_map(|binned| binned.volume.place());
        let shortest = pools.map(|(pool, _)| u64::from(bin_seconds(catalog, pool))).min();
        Nanos::from_secs((shortest.unwrap_or(u64::MAX) / NOTED_TIMES).clamp(NOTED_SECONDS.0, NOTED_SECONDS.1))
    }

    /// A volume goes into the bin.
    pub(crate) fn note_binned(&self, volume: VolumeId) {
        self.clock.held_since.borrow_mut().insert(volume, self.context.io.uptime());
    }

    /// For how many seconds a volume has been in the bin, without the time in which the array did not run.
    pub(crate) fn held_seconds(&self, binned: &Binned) -> u64 {
        self.clock.held_seconds(binned, self.context.io.uptime())
    }

    /// Whether nothing may be destroyed because of what the clock says.
    pub(crate) fn is_clock_doubted(&self) -> bool {
        self.clock.is_doubted()
    }

    /// That the clock does not make sense, or did not when something was recorded.
    pub(crate) fn clock_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(doubt) = self.clock.doubt.get() {
            let (says, expected) = (moment(doubt.says_ms), moment(doubt.expected_ms));
            let what = match doubt.at_start {
                true => format!("at the start it said {says}, and the array last knew it to be {expected}"),
                false => format!("it has jumped from {expected} to {says}"),
            };
            problems.push(Problem {
                harm: Harm::Other,
                health: Health::Degraded,
                subject: "clock".to_owned(),
                reason: format!("{what}: until it has run steadily for a day, schedules delete no snapshots"),
                action:
                    "set the clock (`timedatectl`) if it is wrong; if it is right, there is nothing to do"
                        .to_owned(),
            });
        }
        let now_ms = self.context.io.wall_clock_ms();
        let state = self.state.borrow();
        let future = state.catalog.snapshots().iter().filter(|one| one.created_ms > now_ms + CLOCK_STEP_MS);
        let latest = future.clone().max_by_key(|one| one.created_ms);
        if let Some(latest) = latest {
            let volume = state.catalog.volume(latest.volume);
            let name = volume.map_or_else(String::new, |volume| format!("{}@{}", volume.name, latest.name));
            problems.push(Problem {
                harm: Harm::Other,
                health: Health::Degraded,
                subject: "clock".to_owned(),
                reason: format!(
                    "{} snapshots say that they were taken in the future, the latest ({name}) at {}: the clock was wrong then, or is now",
                    future.count(),
                    moment(latest.created_ms)
                ),
                action: "set the clock (`timedatectl`) if it is wrong now; else go by the order of the snapshots, and delete those when they are not needed"
                    .to_owned(),
            });
        }
        problems
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
            // a second is gained in each hour
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
