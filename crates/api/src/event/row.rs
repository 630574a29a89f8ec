//! A row of the table of events.

use super::{EventCode, EventSeverity};

/// What is always true of a code.
#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    pub code: EventCode,
    /// `None`: it follows from the facts.
    pub severity: Option<EventSeverity>,
    /// When it is recorded.
    pub meaning: &'static str,
    /// Each fact with its meaning and unit.
    pub facts: &'static [(&'static str, &'static str)],
}
