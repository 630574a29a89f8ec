//! An event in JSON, for REST and the journal: the value, and the words that are made from it. A reader uses the value
//! and makes its own words.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{RefOr, schema};
use utoipa::{PartialSchema, ToSchema};

use super::{Event, EventFacts, EventSeverity};
use crate::Subject;

/// Something that has happened. `docs/events.md` explains each code and its facts.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventJson {
    /// Its number: it rises, over restarts, too, and is never used again. If the daemon was killed, the next one skips
    /// 4,294,967,296 numbers.
    sequence: u64,
    /// Milliseconds since 1970.
    time_ms: u64,
    #[serde(flatten)]
    facts: EventFacts,
    /// How many occurrences it stands for: more than 1 where the same happened again and again.
    count: u64,
    severity: EventSeverity,
    /// What it is about, such as `pool fast` or `host alpha`.
    subject: String,
    about: Subject,
    /// The event in one line.
    text: String,
}

impl From<Event> for EventJson {
    fn from(event: Event) -> EventJson {
        EventJson {
            sequence: event.sequence,
            time_ms: event.time_ms,
            count: event.count,
            severity: event.severity(),
            subject: event.subject.to_string(),
            text: event.text(),
            about: event.subject,
            facts: event.facts,
        }
    }
}

impl From<EventJson> for Event {
    fn from(json: EventJson) -> Event {
        let EventJson { sequence, time_ms, count, about, facts, .. } = json;
        Event { sequence, time_ms, count, subject: about, facts }
    }
}

impl PartialSchema for Event {
    fn schema() -> RefOr<Schema> {
        EventJson::schema()
    }
}

impl ToSchema for Event {
    fn name() -> std::borrow::Cow<'static, str> {
        "Event".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<schema::Schema>)>) {
        EventJson::schemas(schemas);
    }
}
