//! The events of the array: numbered, held in a ring, and handed to readers as soon as there are some.
//!
//! A reader has at most one request here, which is answered when there is something to read. So the array never waits
//! for a reader, and what is on its way to one is bounded. A reader that is too slow learns how many events it has
//! missed.

use std::rc::Rc;

use api::{
    AskedChange, Caller, CommandError, CommandErrorKind, Event, EventCode, EventFacts, Origin, Reply,
    ReplyChannel, Subject,
};
use base::Nanos;
use base::limits::EVENT_READERS_MAX;
use shard::Report;
use task::race;

use crate::manager::Manager;

/// How long a reader waits for an event before it gets an empty answer.
const WAIT_MAX: Nanos = Nanos::from_secs(30);
/// How long a stop waits for the reader of the last events.
const LAST_WAIT_MAX: Nanos = Nanos::from_secs(2);

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
