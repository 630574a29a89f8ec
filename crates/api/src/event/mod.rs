//! What has happened: values, and the words for them.
//!
//! ```text
//!   front, manager ── subject, facts ──► ring (number, time) ──► journal, REST: code, facts, and the words ──► people
//!                          │                                                     ▲
//!                          └── code ──► TABLE (severity, meaning) ───────────────┴── words.rs (text)
//! ```
//!
//! An event is a code with facts. All words come from `table.rs` and `words.rs`; `docs/events.md` is made from the same
//! table. Code outside this folder may neither write nor read a sentence about an event.

mod change;
mod code;
mod command_kind;
#[cfg(test)]
mod document;
#[cfg(test)]
mod examples;
mod facts;
mod json;
mod parts;
mod row;
mod table;
mod table_array;
mod words;

pub use change::AskedChange;
pub use code::EventCode;
pub use command_kind::CommandKind;
pub use facts::EventFacts;
pub use parts::{EventPage, Expiry, LoginRefusal, Origin, RepairKind, SessionEnd, SignInRefusal};
pub use row::EventRow;

use base::limits::EVENT_NUMBERS_SKIPPED;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Health, Subject};

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "json::EventJson", from = "json::EventJson")]
pub struct Event {
    /// Its number: it rises, over restarts, too, and is never used again. If the daemon was killed, the next one skips
    /// 4,294,967,296 numbers.
    pub sequence: u64,
    /// The wall clock, in milliseconds since 1970.
    pub time_ms: u64,
    /// How many occurrences it stands for: more than 1 where the same happened again and again.
    pub count: u64,
    pub subject: Subject,
    pub facts: EventFacts,
}

/// How urgent an event is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventSeverity {
    Info,
    Warning,
    Error,
}

impl From<Health> for EventSeverity {
    fn from(health: Health) -> EventSeverity {
        match health {
            Health::Healthy => EventSeverity::Info,
            Health::Degraded => EventSeverity::Warning,
            Health::Offline => EventSeverity::Error,
        }
    }
}

impl Event {
    pub fn code(&self) -> EventCode {
        self.facts.code()
    }

    pub fn severity(&self) -> EventSeverity {
        self.facts.severity()
    }

    /// Number of events that are missing between the one with the number `before` and this one. Numbers that a start has
    /// skipped are not missing: [`EVENT_NUMBERS_SKIPPED`].
    pub fn missing_since(&self, before: u64) -> u64 {
        self.sequence.saturating_sub(before.saturating_add(1)) % EVENT_NUMBERS_SKIPPED
    }

    /// The event in one line, without its time.
    pub fn text(&self) -> String {
        let text = self.facts.text(&self.subject);
        match self.count {
            0 | 1 => text,
            count => format!("{text} ({count} times)"),
        }
    }
}

#[cfg(test)]
mod tests;
