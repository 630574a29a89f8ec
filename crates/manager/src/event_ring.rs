//! The newest events of the array, in a ring of a limited size, and who waits for them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use api::{Event, EventPage};
use base::limits::{EVENTS_AT_ONCE_MAX, EVENTS_HELD_MAX};
use task::{Io, Notify};

/// The newest events, by number.
#[derive(Default)]
pub(crate) struct Ring {
    events: VecDeque<Event>,
    /// The number of the newest event; 0 if there never was one.
    pub(crate) newest: u64,
}

impl Ring {
    pub(crate) fn push(&mut self, event: Event) {
        self.newest = event.sequence;
        self.events.push_back(event);
        if self.events.len() > EVENTS_HELD_MAX {
            self.events.pop_front();
        }
    }

    /// Events after this number, and how many of them are gone.
    pub(crate) fn page(&self, after: u64, limit: usize) -> EventPage {
        let oldest = self.events.front().map_or(self.newest + 1, |event| event.sequence);
        let dropped = oldest.saturating_sub(after + 1);
        let first = (after + 1).saturating_sub(oldest) as usize;
        let events = self.events.iter().skip(first).take(limit.min(EVENTS_AT_ONCE_MAX)).cloned().collect();
        EventPage { events, dropped, newest: self.newest }
    }
}

/// The ring, and those who wait for it.
pub(crate) struct Events {
    pub(crate) ring: RefCell<Ring>,
    pub(crate) recorded: Notify,
    pub(crate) readers: Cell<usize>,
    /// The newest event that a waiting reader was told; 0 if there was no such reader.
    pub(crate) told: Cell<u64>,
    pub(crate) was_told: Notify,
}

impl Events {
    /// `newest`: the number of the newest event of earlier runs.
    pub(crate) fn new(io: &Io, newest: u64) -> Events {
        let ring = Ring { newest, ..Ring::default() };
        Events {
            ring: RefCell::new(ring),
            recorded: Notify::new(io),
            readers: Cell::new(0),
            told: Cell::new(0),
            was_told: Notify::new(io),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::{EventFacts, Subject};

    use super::*;

    fn ring(newest: u64, count: u64) -> Ring {
        let mut ring = Ring { newest, ..Ring::default() };
        for sequence in newest + 1..=newest + count {
            let facts = EventFacts::ScrubBegan {};
            ring.push(Event { sequence, time_ms: 0, count: 1, subject: Subject::pool("fast"), facts });
        }
        ring
    }

    fn told(ring: &Ring, after: u64, limit: usize) -> (Vec<u64>, u64) {
        let page = ring.page(after, limit);
        assert_eq!(page.newest, ring.newest);
        (page.events.iter().map(|event| event.sequence).collect(), page.dropped)
    }

    #[test]
    fn a_reader_gets_what_follows_what_it_has() {
        let few = ring(100, 5);
        assert_eq!(told(&few, 100, 3), (vec![101, 102, 103], 0));
        assert_eq!(told(&few, 103, 3), (vec![104, 105], 0));
        assert_eq!(told(&few, 105, 3), (vec![], 0));
        assert_eq!(told(&few, 107, 3), (vec![], 0), "it is ahead");
        assert_eq!(told(&few, 90, 1), (vec![101], 10), "those are in the journal");
        assert_eq!(told(&ring(100, 0), 98, 1), (vec![], 2));
        assert_eq!(told(&ring(0, 0), 0, 1), (vec![], 0));
    }

    #[test]
    fn a_slow_reader_is_told_how_many_it_has_missed() {
        let full = ring(0, EVENTS_HELD_MAX as u64 + 10);
        assert_eq!(full.events.len(), EVENTS_HELD_MAX);
        assert_eq!(told(&full, 4, 2), (vec![11, 12], 6));
        assert_eq!(told(&full, 10, 2), (vec![11, 12], 0));
        assert_eq!(full.page(0, usize::MAX).events.len(), EVENTS_AT_ONCE_MAX, "an answer is bounded");
    }
}
