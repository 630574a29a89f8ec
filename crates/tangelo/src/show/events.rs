//! Events: one line for each.

use api::{Event, EventSeverity};
use base::calendar::moment_with_seconds;
use control::rest::EventList;

use super::Show;

impl Show for EventList {
    fn text(&self) -> String {
        if self.events.is_empty() {
            return "Nothing has happened.\n".to_owned();
        }
        let dropped = match self.dropped {
            0 => String::new(),
            count => format!("({count} events before or between these are not kept any more)\n"),
        };
        self.events.iter().fold(dropped, |text, event| text + &event_line(event) + "\n")
    }
}

/// When, how urgent, what. What came from a peer may hold control characters, which a terminal would obey.
pub fn event_line(event: &Event) -> String {
    let severity = match event.severity() {
        EventSeverity::Info => "",
        EventSeverity::Warning => "WARNING ",
        EventSeverity::Error => "ERROR ",
    };
    let text: String = event.text().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("{}  {severity}{text}", moment_with_seconds(event.time_ms))
}
