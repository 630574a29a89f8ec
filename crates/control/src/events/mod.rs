//! The events of the array as the control plane keeps them: in memory for its clients, in a journal for the next start.
//!
//! Clients read pages, or wait for what comes next. Nobody waits for a client: one that is too slow learns how many
//! events it has missed.

mod journal;

use std::collections::VecDeque;
use std::sync::Mutex;

use api::{Event, EventPage};
use base::limits::EVENTS_KEPT_MAX;
use tokio::sync::watch;

pub use journal::{Journal, KeptEvents};

/// Where a reader begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// The newest events.
    Newest,
    /// Those after this number.
    After(u64),
    /// Those from this moment on, in milliseconds since 1970.
    Moment(u64),
}

/// How far the events have come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    pub newest: u64,
    /// No further ones will come: the daemon has stopped.
    pub ended: bool,
}

/// See the module's words.
pub struct EventLog {
    kept: Mutex<VecDeque<Event>>,
    progress: watch::Sender<Progress>,
}

impl EventLog {
    /// With the events of earlier runs.
    pub fn new(earlier: KeptEvents) -> EventLog {
        let KeptEvents { events, newest } = earlier;
        let excess = events.len().saturating_sub(EVENTS_KEPT_MAX);
        let kept = events.into_iter().skip(excess).collect();
        EventLog { kept: Mutex::new(kept), progress: watch::Sender::new(Progress { newest, ended: false }) }
    }

    /// Adds events, and wakes those that wait for them.
    pub fn publish(&self, events: Vec<Event>) {
        let Some(newest) = events.last().map(|event| event.sequence) else { return };
        {
            let mut kept = self.kept.lock().expect("nobody panics with it");
            kept.extend(events);
            let excess = kept.len().saturating_sub(EVENTS_KEPT_MAX);
            kept.drain(..excess);
        }
        self.progress.send_modify(|progress| progress.newest = newest);
    }

    /// No further events will come.
    pub fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }

    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Events in order, at most `limit`, and how many are missing before or between them.
    pub fn page(&self, from: Begin, limit: usize) -> EventPage {
        let kept = self.kept.lock().expect("nobody panics with it");
        let first = match from {
            Begin::Newest => kept.len().saturating_sub(limit),
            Begin::After(after) => kept.partition_point(|event| event.sequence <= after),
            Begin::Moment(ms) => kept.iter().position(|event| event.time_ms >= ms).unwrap_or(kept.len()),
        };
        let events: Vec<Event> = kept.iter().skip(first).take(limit).cloned().collect();
        let mut before = match from {
            Begin::After(after) => Some(after),
            _ => None,
        };
        let missing =
            |event: &Event| before.replace(event.sequence).map_or(0, |before| event.missing_since(before));
        let dropped = events.iter().map(missing).sum();
        EventPage { events, dropped, newest: self.progress.borrow().newest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{EventFacts, Subject};
    use base::limits::EVENT_NUMBERS_SKIPPED;

    pub(super) fn event(sequence: u64) -> Event {
        let facts = EventFacts::PoolOpened { drives: sequence, lost_drives: 0 };
        Event { sequence, time_ms: 1_000 * sequence, count: 1, subject: Subject::pool("fast"), facts }
    }

    fn told(log: &EventLog, from: Begin, limit: usize) -> (Vec<u64>, u64) {
        let page = log.page(from, limit);
        (page.events.iter().map(|event| event.sequence).collect(), page.dropped)
    }

    #[test]
    fn pages_follow_each_other() {
        let log = EventLog::new(KeptEvents { events: vec![event(4), event(5)], newest: 5 });
        log.publish((6..=10).map(event).collect());
        assert_eq!(told(&log, Begin::After(4), 3), (vec![5, 6, 7], 0));
        assert_eq!(told(&log, Begin::After(7), 3), (vec![8, 9, 10], 0));
        assert_eq!(told(&log, Begin::After(10), 3), (vec![], 0));
        assert_eq!(told(&log, Begin::After(1), 2), (vec![4, 5], 2));
        assert_eq!(told(&log, Begin::Newest, 2), (vec![9, 10], 0));
        assert_eq!(told(&log, Begin::Moment(5_500), 2), (vec![6, 7], 0));
        // shard 0 had to drop some
        log.publish(vec![event(14), event(15)]);
        assert_eq!(told(&log, Begin::After(9), 9), (vec![10, 14, 15], 3));
        assert_eq!(log.page(Begin::Newest, 1).newest, 15);
        // a start has skipped numbers
        let first = 16 + EVENT_NUMBERS_SKIPPED;
        log.publish(vec![event(first), event(first + 2)]);
        assert_eq!(told(&log, Begin::After(14), 9), (vec![15, first, first + 2], 1));
        assert_eq!(told(&log, Begin::After(15), 1), (vec![first], 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let log = EventLog::new(KeptEvents::default());
        for from in 0..20 {
            log.publish((from * 1_000 + 1..=(from + 1) * 1_000).map(event).collect());
        }
        assert_eq!(log.kept.lock().unwrap().len(), EVENTS_KEPT_MAX);
        let page = log.page(Begin::After(0), 1);
        assert_eq!(page.dropped, 20_000 - EVENTS_KEPT_MAX as u64);
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let log = EventLog::new(KeptEvents::default());
        let mut progress = log.progress();
        log.publish(vec![event(1)]);
        progress.changed().await.unwrap();
        assert_eq!(*progress.borrow_and_update(), Progress { newest: 1, ended: false });
        log.end();
        progress.changed().await.unwrap();
        assert!(progress.borrow().ended);
    }
}
