//! Shows past events, and with `--follow` each new one when it happens.

use std::io::{self, Write};
use std::time::Duration;

use api::Event;
use base::limits::EVENTS_AT_ONCE_MAX;
use control::client::{ClientError, Server};
use control::rest::EventList;

use super::Failure;
use crate::cli::{self, Output};
use crate::show::event_line;

/// After a stream has broken off, until the next attempt.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The events that were asked for.
pub(super) async fn list(events: &cli::Events, server: &Server) -> Result<EventList, Failure> {
    let Some(since_ms) = events.since else {
        return Ok(server.get(&format!("/v1/events?limit={}", events.limit)).await?);
    };
    let most = EVENTS_AT_ONCE_MAX;
    let mut all: EventList = server.get(&format!("/v1/events?since_ms={since_ms}&limit={most}")).await?;
    // in pages, until there are no further ones
    while let Some(last) = all.events.last().map(|event| event.sequence).filter(|&last| last < all.newest) {
        let page: EventList = server.get(&format!("/v1/events?after={last}&limit={most}")).await?;
        if page.events.is_empty() {
            break;
        }
        all.dropped += page.dropped;
        all.events.extend(page.events);
    }
    Ok(all)
}

/// Until whoever reads it has had enough, or the array refuses. A stream that breaks off is taken up where it was.
pub(super) async fn follow(
    events: &cli::Events,
    server: &Server,
    output: Output,
    out: &mut dyn Write,
) -> io::Result<Failure> {
    let before = match list(events, server).await {
        Ok(before) => before,
        Err(failure) => return Ok(failure),
    };
    let mut after = before.events.last().map_or(before.newest, |event| event.sequence);
    for event in &before.events {
        write_event(event, output, out)?;
    }
    loop {
        let mut stream = match server.stream(&format!("/v1/events/stream?after={after}")).await {
            Ok(stream) => stream,
            // it is being started again
            Err(ClientError::Unreachable { .. }) if after > 0 => {
                tokio::time::sleep(AGAIN_AFTER).await;
                continue;
            }
            Err(error) => return Ok(error.into()),
        };
        while let Some(message) = stream.next().await {
            match serde_json::from_str::<Event>(&message.data) {
                Ok(event) => {
                    after = event.sequence;
                    write_event(&event, output, out)?;
                }
                Err(_) if message.kind == "dropped" => write_dropped(&message.data, output, out)?,
                // an event of another version of the program
                Err(_) => {}
            }
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// One line for each, as text or as JSON.
fn write_event(event: &Event, output: Output, out: &mut dyn Write) -> io::Result<()> {
    match output {
        Output::Table => writeln!(out, "{}", event_line(event))?,
        Output::Json => {
            let json = serde_json::to_string(event).expect("events can be said in JSON");
            writeln!(out, "{json}")?;
        }
    }
    out.flush()
}

fn write_dropped(data: &str, output: Output, out: &mut dyn Write) -> io::Result<()> {
    let json: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
    match output {
        Output::Table => writeln!(out, "({} events were dropped)", json["dropped"])?,
        Output::Json => writeln!(out, "{json}")?,
    }
    out.flush()
}
