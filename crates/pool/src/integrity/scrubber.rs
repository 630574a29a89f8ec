//! The progress of a scrub, and when counts were last compared with the map.

use std::cell::Cell;

use base::Nanos;

/// A scrub: the running one, or the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubStats {
    pub running: bool,
    pub segments_done: usize,
    pub segments_total: usize,
    /// Batches and copies of the root in which something was wrong; all their data is there and is being written anew.
    pub batches_repaired: u64,
    /// Batches of which some data can neither be read nor rebuilt.
    pub batches_unreadable: u64,
}

/// The state of a lane's scrub.
#[derive(Default)]
pub(crate) struct Scrubber {
    stats: Cell<ScrubStats>,
    stop: Cell<bool>,
    recounted: Cell<Option<Nanos>>,
}

impl Scrubber {
    /// Requests a scrub. Returns whether one begins: `false` if one is running, which continues, or if none
    /// `may_begin`.
    pub fn begin(&self, may_begin: bool) -> bool {
        self.stop.set(false);
        let begins = !self.stats.get().running && may_begin;
        if begins {
            self.stats.set(ScrubStats { running: true, ..ScrubStats::default() });
        }
        begins
    }

    /// The scrub is to end where it is.
    pub fn stop(&self) {
        self.stop.set(true);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.get()
    }

    pub fn stats(&self) -> ScrubStats {
        self.stats.get()
    }

    /// Updates the reported progress of the scrub.
    pub fn note(&self, change: impl FnOnce(&mut ScrubStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    pub fn note_recount(&self, now: Nanos) {
        self.recounted.set(Some(now));
    }

    pub fn last_recount(&self) -> Option<Nanos> {
        self.recounted.get()
    }
}
