//! Takes events from shard 0 as they happen: into the journal, then to the log and the clients of the API.
//!
//! One request for events is always at shard 0, which answers it when there is one. If the journal is slow, events wait
//! on shard 0, which drops the oldest when there are too many.

use std::sync::Arc;
use std::time::Duration;

use api::{Command, Event, EventCode, EventPage, EventSeverity, JournalTrouble, Reply};
use base::limits::EVENTS_AT_ONCE_MAX;
use control::array::Array;
use control::events::{EventLog, Journal};
use tokio::sync::watch;

/// After a refusal: shard 0 had too many commands waiting.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Where events go.
pub struct Follower {
    pub array: Arc<dyn Array>,
    pub journal: Journal,
    pub log: Arc<EventLog>,
    /// Turns true when the daemon begins to stop.
    pub stop: watch::Receiver<bool>,
}

impl Follower {
    /// Until the array has stopped. `after`: the number of the newest event of earlier runs.
    pub async fn run(mut self, mut after: u64) {
        let mut kept: Result<(), JournalTrouble> = Ok(());
        loop {
            let ask = Command::Events { after, limit: EVENTS_AT_ONCE_MAX, wait: true };
            let EventPage { events, dropped, .. } = match self.array.call(ask).await {
                Ok(Reply::Events(page)) => page,
                Ok(other) => unreachable!("the array answered a request for events with {other:?}"),
                Err(_) if *self.stop.borrow() => break,
                Err(_) => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                    continue;
                }
            };
            if dropped > 0 {
                tracing::warn!("{dropped} events were dropped: more happened than could be kept");
            }
            after = events.last().map_or(after + dropped, |event| event.sequence);
            let stopped = events.iter().any(|event| event.code() == EventCode::DaemonStopped);
            let result;
            (self.journal, result) = append(self.journal, events.clone()).await;
            if result != kept {
                kept = result;
                // shard 0 makes a problem of it, or ends it
                let told = self.array.call(Command::EventsKept(kept.clone()));
                drop(tokio::spawn(told));
            }
            events.iter().for_each(write_line);
            self.log.publish(events);
            if stopped {
                break;
            }
        }
        self.log.end();
    }
}

async fn append(mut journal: Journal, events: Vec<Event>) -> (Journal, Result<(), JournalTrouble>) {
    let work = move || {
        let result = journal.append(&events);
        (journal, result)
    };
    tokio::task::spawn_blocking(work).await.expect("a journal that fails says so")
}

/// The event in the daemon's log.
fn write_line(event: &Event) {
    let (code, text) = (event.code(), event.text());
    match event.severity() {
        EventSeverity::Error => tracing::error!(%code, "{text}"),
        EventSeverity::Warning => tracing::warn!(%code, "{text}"),
        EventSeverity::Info => tracing::info!(%code, "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use api::{CommandError, CommandErrorKind, EventFacts, Origin, Subject};
    use control::array::Answer;
    use control::events::Begin;

    use super::*;

    /// Answers requests for events from a list, and keeps what else it was told.
    struct Array0 {
        pages: Mutex<Vec<Result<EventPage, CommandError>>>,
        asked: Mutex<Vec<u64>>,
        told: Mutex<Vec<Command>>,
    }

    impl Array for Array0 {
        fn call_for(&self, command: Command, _: Origin) -> Answer {
            let answer = match command {
                Command::Events { after, .. } => {
                    self.asked.lock().unwrap().push(after);
                    self.pages.lock().unwrap().remove(0).map(Reply::Events)
                }
                other => {
                    self.told.lock().unwrap().push(other);
                    Ok(Reply::Stopped)
                }
            };
            Box::pin(async { answer })
        }

        fn bulk(&self, _: u16, _: api::Bulk) -> control::array::BulkAnswer {
            unreachable!("the follower moves no volumes")
        }
    }

    fn page(events: &[(u64, EventFacts)], dropped: u64) -> Result<EventPage, CommandError> {
        let event = |(sequence, facts): &(u64, EventFacts)| Event {
            sequence: *sequence,
            time_ms: 0,
            count: 1,
            subject: Subject::pool("fast"),
            facts: facts.clone(),
        };
        let events: Vec<Event> = events.iter().map(event).collect();
        let newest = events.last().map_or(0, |event| event.sequence);
        Ok(EventPage { events, dropped, newest })
    }

    #[tokio::test]
    async fn events_are_kept_then_published_and_trouble_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let in_the_way = directory.path().join("events.jsonl");
        std::fs::create_dir(&in_the_way).unwrap();
        let busy = CommandError::new(CommandErrorKind::Unavailable, "too many commands", "");
        let stopped = EventFacts::DaemonStopped { version: "1".to_owned() };
        let pages = vec![
            page(&[(11, EventFacts::ScrubBegan {})], 0),
            Err(busy),
            page(&[], 0),
            page(&[(15, EventFacts::ScrubBegan {}), (16, stopped)], 3),
        ];
        let array = Array0 { pages: Mutex::new(pages), asked: Mutex::default(), told: Mutex::default() };
        let array = Arc::new(array);
        let (journal, earlier) = Journal::open(directory.path());
        let log = Arc::new(EventLog::new(earlier));
        let (_stop, stopped) = watch::channel(false);
        let follower = Follower { array: array.clone(), journal, log: log.clone(), stop: stopped };
        follower.run(10).await;
        assert_eq!(*array.asked.lock().unwrap(), [10, 11, 11, 11]);
        let told = array.told.lock().unwrap().clone();
        assert!(matches!(&told[..], [Command::EventsKept(Err(_))]), "{told:?}");
        let page = log.page(Begin::After(10), 9);
        let numbers: Vec<u64> = page.events.iter().map(|event| event.sequence).collect();
        assert_eq!((numbers, page.dropped), (vec![11, 15, 16], 3));
        assert!(log.progress().borrow().ended);
    }
}
