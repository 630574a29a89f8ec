//! `docs/events.md`, made from the table and the examples.

use super::examples::examples;
use super::{Event, EventRow, EventSeverity};

const OPENING: &str = "# Events

Everything that the daemon records as having happened, by its code. `tangelo events` shows events, `--follow` waits for further ones. Over REST,
`GET /v1/events?after=SEQUENCE` gives pages, and `GET /v1/events/stream` pushes each event when it happens (server-sent events; `Last-Event-ID`
resumes). Each event has:

| field | meaning |
|---|---|
| `sequence` | its number. It rises, over restarts, too, and is never used again. If the daemon was killed, the next one skips 4,294,967,296 numbers. Every other gap is a number of dropped events |
| `time_ms` | when it happened, in milliseconds since 1970, by the head's clock |
| `code` | what has happened; codes and their meanings do not change |
| `facts` | the numbers and names of it, as listed below; units stand last in their names |
| `about` | what it happened to: its `kind` (`array`, `clock`, `pool`, `drive`, `volume`, `snapshot`, `host`, `initiator`, `address`, `portal`, `schedule`, `channel`) and its `name` |
| `severity` | `info`, `warning` or `error` |
| `count` | how many occurrences it stands for |
| `subject`, `text` | the same in words, for people; the words may change |

**What happens again and again.** Logins and sessions are reported at once the first time. Repetitions of the same within a minute are counted and
reported as one event at its end. Problems and changes are always reported one by one.

**What is kept.** The head keeps the newest events in its state directory (`events.jsonl`, `events.old.jsonl`): 8 MiB at most, and 4 MiB or more once there were so many.
A reader gets an event when it is durable there. A reader that was away too long gets the number of the events that it missed (`dropped`).

This page is made from the table in `crates/api/src/event`: `UPDATE_DOCS=1 cargo test -p api --lib` writes it anew.
";

pub(super) fn document() -> String {
    let mut page = OPENING.to_owned();
    page.push_str("\n| code | severity |\n|---|---|\n");
    let events = examples();
    for event in &events {
        let code = event.code();
        page.push_str(&format!("| [`{code}`](#{code}) | {} |\n", severity(code.row())));
    }
    events.iter().for_each(|event| page.push_str(&section(event)));
    page
}

fn severity(row: &EventRow) -> &'static str {
    match row.severity {
        None => "depends on the facts",
        Some(EventSeverity::Info) => "info",
        Some(EventSeverity::Warning) => "warning",
        Some(EventSeverity::Error) => "error",
    }
}

fn section(event: &Event) -> String {
    let row = event.code().row();
    let mut text = format!("\n## {}\n\n{}\n\n", row.code, row.meaning);
    text.push_str(&format!("- Severity: {}\n- For example: \"{}\"\n", severity(row), event.text()));
    if !row.facts.is_empty() {
        text.push_str("\n| fact | meaning |\n|---|---|\n");
        row.facts.iter().for_each(|(name, meaning)| text.push_str(&format!("| `{name}` | {meaning} |\n")));
    }
    text
}
