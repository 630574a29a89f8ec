//! The events of the array: numbered, held in a ring, and handed to readers as soon as there are some.
//!
//! A reader has at most one request here, which is answered when there is something to read. So the array never waits
//! for a reader, and what is on its way to one is bounded. A reader that is too slow learns how many events it has
//! missed.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use api::{
    AskedChange, Caller, CommandError, CommandErrorKind, Event, EventCode, EventFacts, EventPage, Origin,
    Reply, ReplyChannel, Subject,
};
use base::Nanos;
use base::limits::{EVENT_READERS_MAX, EVENTS_AT_ONCE_MAX, EVENTS_HELD_MAX};
use shard::Report;
use task::{Io, Notify, race};

use crate::manager::Manager;

/// How long a reader waits for an event before it gets an empty answer.
const WAIT_MAX: Nanos = Nanos::from_secs(30);
/// How long a stop waits for the reader of the last events.
const LAST_WAIT_MAX: Nanos = Nanos::from_secs(2);

/// The newest events, by number.
#[derive(Default)]
struct Ring {
    events: VecDeque<Event>,
    /// The number of the newest event; 0 where there never was one.
    newest: u64,
}

impl Ring {
    fn push(&mut self, event: Event) {
        self.newest = event.sequence;
        self.events.push_back(event);
        if self.events.len() > EVENTS_HELD_MAX {
            self.events.pop_front();
        }
    }

    /// Events after this number, and how many of them are gone.
    fn page(&self, after: u64, limit: usize) -> EventPage {
        let oldest = self.events.front().map_or(self.newest + 1, |event| event.sequence);
        let dropped = oldest.saturating_sub(after + 1);
        let first = (after + 1).saturating_sub(oldest) as usize;
        let events = self.events.iter().skip(first).take(limit.min(EVENTS_AT_ONCE_MAX)).cloned().collect();
        EventPage { events, dropped, newest: self.newest }
    }
}

/// See the module's words.
pub(crate) struct Events {
    ring: RefCell<Ring>,
    recorded: Notify,
    readers: Cell<usize>,
    /// The newest event that a waiting reader was told; 0 where there was no such reader.
    told: Cell<u64>,
    was_told: Notify,
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

impl Manager {
    /// Records an event.
    pub(crate) fn record(&self, subject: Subject, facts: EventFacts) {
        self.record_report(Report { subject, facts, count: 1 });
    }

    /// Records an event that stands for several occurrences.
    pub(crate) fn record_report(&self, report: Report) {
        let Report { subject, facts, count } = report;
        let time_ms = self.context.io.wall_clock_ms();
        let mut ring = self.events.ring.borrow_mut();
        let sequence = ring.newest + 1;
        ring.push(Event { sequence, time_ms, count, subject, facts });
        self.events.recorded.notify();
    }

    /// Records what a command has changed, or why it has not.
    pub(crate) fn record_change(
        &self,
        asked: Option<AskedChange>,
        origin: &Origin,
        result: &Result<Reply, CommandError>,
    ) {
        let Some(asked) = asked else { return };
        if let Some((subject, facts)) = asked.event(origin, result) {
            self.record_command(Report { subject, facts, count: 1 });
        }
        self.problems_may_differ();
    }

    /// Records what a command has done. Refusals may come as often as somebody likes.
    pub(crate) fn record_command(&self, report: Report) {
        match report.facts.code() {
            EventCode::ChangeRefused => self.context.report(report.subject, report.facts),
            _ => self.record_report(report),
        }
    }

    /// Gives the reader of events the time to fetch the last ones before the shard stops.
    pub(crate) async fn tell_last_events(&self) {
        let deadline = self.context.io.now() + LAST_WAIT_MAX;
        let events = &self.events;
        while (1..events.ring.borrow().newest).contains(&events.told.get()) {
            if race(self.context.io.sleep_until(deadline), events.was_told.wait()).await.is_ok() {
                return;
            }
        }
    }

    /// Answers a reader: at once where there is something to read, or where it does not want to wait.
    pub(crate) async fn tell_events(
        self: Rc<Self>,
        (after, limit, wait): (u64, usize, bool),
        reply: ReplyChannel,
        caller: Caller,
    ) {
        let events = &self.events;
        if wait && events.readers.get() >= EVENT_READERS_MAX {
            let message = format!("{EVENT_READERS_MAX} readers wait for events already");
            return reply(Err(CommandError::new(CommandErrorKind::Unavailable, message, "try again later")));
        }
        events.readers.set(events.readers.get() + 1);
        let deadline = self.context.io.now() + WAIT_MAX;
        let page = loop {
            let page = events.ring.borrow().page(after, limit);
            let is_news = !page.events.is_empty() || page.dropped > 0;
            if is_news || !wait || self.context.io.now() >= deadline || caller.is_gone() {
                break page;
            }
            let _ = race(self.context.io.sleep_until(deadline), events.recorded.wait()).await;
        };
        events.readers.set(events.readers.get() - 1);
        if let Some(last) = page.events.last().filter(|_| wait) {
            events.told.set(last.sequence.max(events.told.get()));
            events.was_told.notify();
        }
        reply(Ok(Reply::Events(page)));
    }
}

#[cfg(test)]
mod tests {
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
