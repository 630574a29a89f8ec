//! Events: pages of them, and a stream that pushes each when it happens (server-sent events).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use api::{CommandError, CommandErrorKind, Event, EventPage};
use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::limits::EVENTS_AT_ONCE_MAX;
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::client::Asking;
use super::extract::{Options, json_response};
use super::request::{Answer, State};
use crate::channel_body::ChannelBody;
use crate::events::{Begin, EventLog};
use crate::rest::{EventList, SCHEMA};

/// Events of a page where the client names no number.
const PAGE: usize = 100;
/// After so long without an event, a stream says that it is alive: who has gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Pieces of a stream that wait for the client. While they do, its events stay in the log.
const PIECES_WAITING: usize = 4;

pub(super) fn router() -> Router<State> {
    Router::new().route("/v1/events", get(list_events)).route("/v1/events/stream", get(stream_events))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOptions {
    /// Only events after this number. A page ends at the number of its last event.
    after: Option<u64>,
    /// Only events from this moment on, in milliseconds since 1970. Not beside `after`.
    since_ms: Option<u64>,
    /// At most so many; where it is not given, 100, and never more than 512.
    limit: Option<usize>,
}

/// A number as the description has it: below 2^63.
fn number(what: &str, value: Option<u64>) -> Result<Option<u64>, CommandError> {
    match value {
        Some(value) if i64::try_from(value).is_err() => {
            let message = format!("{what}: {value} is too large; numbers go up to {}", i64::MAX);
            Err(CommandError::new(CommandErrorKind::Invalid, message, ""))
        }
        _ => Ok(value),
    }
}

/// Lists events in their order. Without `after` and `since_ms`, the newest ones.
#[utoipa::path(get, path = "/v1/events", tag = "events", params(PageOptions), responses((status = 200, body = EventList), (status = "default", body = CommandError)))]
pub(super) async fn list_events(
    Shared(state): Shared<State>,
    Options(options): Options<PageOptions>,
) -> Answer {
    let (after, since_ms) = (number("after", options.after)?, number("since_ms", options.since_ms)?);
    let from = match (after, since_ms) {
        (None, None) => Begin::Newest,
        (Some(after), None) => Begin::After(after),
        (None, Some(ms)) => Begin::Moment(ms),
        (Some(_), Some(_)) => {
            let message = "\"after\" and \"since_ms\" cannot be used together";
            return Err(CommandError::new(CommandErrorKind::Invalid, message, "").into());
        }
    };
    let limit = options.limit.unwrap_or(PAGE).min(EVENTS_AT_ONCE_MAX);
    let EventPage { events, dropped, newest } = state.events.page(from, limit);
    Ok(json_response(&EventList { schema: SCHEMA, events, dropped, newest }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StreamOptions {
    /// Begin after this number; where it is not given, with the next event. The header `Last-Event-ID` has precedence.
    after: Option<u64>,
}

/// A message of the stream of events, as a client of server-sent events gets it.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct StreamMessage {
    /// An event as JSON; of a message of the type `dropped`: how many events were missed.
    data: String,
    /// The type: none, which is `message`, or `dropped`.
    event: Option<String>,
    /// The number of the event.
    id: Option<String>,
}

/// Pushes each event when it happens, as server-sent events. The data of a message is an event, its id is the event's number;
/// the header `Last-Event-ID` resumes after it. A message of the type `dropped` says how many events were missed.
#[utoipa::path(get, path = "/v1/events/stream", tag = "events", params(StreamOptions, ("Last-Event-ID" = Option<u64>, Header, description = "Begin after this number")), responses((status = 200, content_type = "text/event-stream", body = StreamMessage), (status = "default", body = CommandError)))]
pub(super) async fn stream_events(
    Shared(state): Shared<State>,
    headers: HeaderMap,
    Options(options): Options<StreamOptions>,
) -> Answer {
    let last = match headers.get("Last-Event-ID").map(|value| value.to_str().map(str::parse)) {
        None => None,
        Some(Ok(Ok(last))) => Some(last),
        Some(_) => {
            let message = "the header Last-Event-ID is not the number of an event";
            return Err(CommandError::new(CommandErrorKind::Invalid, message, "").into());
        }
    };
    let newest = state.events.progress().borrow().newest;
    let after = number("after", options.after)?;
    let after = number("Last-Event-ID", last)?.or(after).unwrap_or(newest);
    let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
    let by = Asking::current().by().copied();
    let access = state.access.clone();
    let is_still_good = move || by.is_none_or(|by| by.is_still_good(&access));
    tokio::spawn(push(state.events.clone(), after, pieces, is_still_good));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    let response: Response = (headers, Body::new(ChannelBody(waiting))).into_response();
    Ok(response)
}

/// Until the client has gone or the daemon has stopped.
async fn push(
    log: Arc<EventLog>,
    mut after: u64,
    pieces: mpsc::Sender<Result<Bytes, Infallible>>,
    is_still_good: impl Fn() -> bool,
) {
    let mut progress = log.progress();
    // the head of the answer goes out at once
    let mut piece = ": events\n\n".to_owned();
    loop {
        // whose session or token has ended gets nothing more
        if !is_still_good() || pieces.send(Ok(Bytes::from(piece))).await.is_err() {
            return;
        }
        piece = String::new();
        let ended = progress.borrow_and_update().ended;
        for event in log.page(Begin::After(after), EVENTS_AT_ONCE_MAX).events {
            let dropped = event.missing_since(after);
            if dropped > 0 {
                piece.push_str(&format!("event: dropped\ndata: {{\"dropped\": {dropped}}}\n\n"));
            }
            after = event.sequence;
            piece.push_str(&message(&event));
        }
        if !piece.is_empty() {
            continue;
        }
        if ended {
            return;
        }
        tokio::select! {
            changed = progress.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(HEARTBEAT) => {}
            () = pieces.closed() => return,
        }
        piece = ":\n\n".to_owned();
    }
}

fn message(event: &Event) -> String {
    let data = serde_json::to_string(event).expect("events can be said in JSON");
    format!("id: {}\ndata: {data}\n\n", event.sequence)
}
