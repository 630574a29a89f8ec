//! Reads the wall clock and records what it says.

use base::calendar::CLOCK_STEP_MS;
use base::{Nanos, VolumeId};
use catalog::{Binned, Catalog, Change};

use crate::bin::bin_seconds;
use crate::clock::{BELIEVED_AFTER, Doubt};
use crate::manager::Manager;
use api::{Problem, ProblemFacts, Subject};

/// How often the time of volumes in the bin is recorded: this many times while one is in it, within these limits.
const NOTED_TIMES: u64 = 24;
const NOTED_SECONDS: (u64, u64) = (10, 60 * 60);

impl Manager {
    /// Reads the clock.
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

    /// Reads the clock, and records what it says and how long volumes have been in the bin.
    pub(crate) async fn watch_clock(&self) {
        self.see_clock();
        let now = self.context.io.uptime();
        let Some(change) = self.worth_noting(now) else { return };
        let _lock = self.changes.acquire(1).await;
        // if this cannot be stored, the array reports why; volumes stay in the bin longer
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

    /// Records that a volume was put into the bin.
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

    /// Problems of a clock that is implausible, or was when something was recorded.
    pub(crate) fn clock_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(doubt) = self.clock.doubt.get() {
            let Doubt { says_ms, expected_ms, at_start } = doubt;
            let facts = ProblemFacts::ClockDoubted { says_ms, expected_ms, at_start };
            problems.push(Problem::new(Subject::Clock, facts));
        }
        let now_ms = self.context.io.wall_clock_ms();
        let state = self.state.borrow();
        let future = state.catalog.snapshots().iter().filter(|one| one.created_ms > now_ms + CLOCK_STEP_MS);
        let latest = future.clone().max_by_key(|one| one.created_ms);
        if let Some(latest) = latest {
            let volume = state.catalog.volume(latest.volume);
            let name = volume.map_or_else(String::new, |volume| format!("{}@{}", volume.name, latest.name));
            let facts = ProblemFacts::SnapshotsFromFuture {
                snapshots: future.count() as u64,
                latest: name,
                latest_ms: latest.created_ms,
            };
            problems.push(Problem::new(Subject::Clock, facts));
        }
        problems
    }
}
