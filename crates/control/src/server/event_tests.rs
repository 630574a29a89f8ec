//! Events over REST: pages, and a stream that is pushed.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use api::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::tests::{Fixture, start};
use crate::client::{ClientError, Server, Stream};

fn event(sequence: u64) -> Event {
    let facts = EventFacts::PoolOpened { drives: sequence, lost_drives: 0 };
    Event { sequence, time_ms: 1_000 * sequence, count: 1, subject: Subject::pool("fast"), facts }
}

async fn page(fixture: &Fixture, options: &str) -> (Vec<u64>, u64) {
    let (code, page) = fixture.request("GET", &format!("/v1/events{options}"), "").await;
    assert_eq!((code, &page["schema"]), (200, &crate::rest::SCHEMA.into()), "{page}");
    let events = page["events"].as_array().unwrap().iter();
    (events.map(|event| event["sequence"].as_u64().unwrap()).collect(), page["dropped"].as_u64().unwrap())
}

#[tokio::test]
async fn pages_of_events() {
    let fixture = start().await;
    assert_eq!(page(&fixture, "").await, (vec![], 0));
    fixture.events.publish((11..=15).map(event).collect());
    assert_eq!(page(&fixture, "?limit=2").await, (vec![14, 15], 0));
    assert_eq!(page(&fixture, "?after=12&limit=2").await, (vec![13, 14], 0));
    assert_eq!(page(&fixture, "?after=8&limit=2").await, (vec![11, 12], 2));
    assert_eq!(page(&fixture, "?since_ms=13500").await, (vec![14, 15], 0));
    assert_eq!(page(&fixture, "?after=99999999999").await, (vec![], 0));
    let (_, all) = fixture.request("GET", "/v1/events", "").await;
    assert_eq!(all["newest"], 15);
    let first = &all["events"][0];
    assert_eq!((&first["code"], &first["about"]["name"]), (&"pool-opened".into(), &"fast".into()));
    assert_eq!(first["text"], "pool fast: opened with 11 drives");
    for wrong in ["?after=x", "?after=-1", "?after=1&since_ms=1", "?before=1", "/stream?after=x"] {
        let (code, refusal) = fixture.request("GET", &format!("/v1/events{wrong}"), "").await;
        assert_eq!((code, &refusal["code"]), (400, &"invalid".into()), "{wrong}: {refusal}");
    }
}

async fn next(stream: &mut Stream) -> (String, serde_json::Value) {
    let message = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
    let message = message.expect("it is pushed").expect("the stream goes on");
    (message.kind, serde_json::from_str(&message.data).unwrap())
}

#[tokio::test]
async fn a_stream_pushes_events_and_says_what_was_missed() {
    let fixture = start().await;
    fixture.events.publish(vec![event(11), event(12)]);
    let server = Server::Socket(fixture.socket());
    let mut new = server.stream("/v1/events/stream").await.unwrap();
    let mut old = server.stream("/v1/events/stream?after=5").await.unwrap();
    assert_eq!(next(&mut old).await, ("dropped".to_owned(), serde_json::json!({ "dropped": 5 })));
    for number in [11, 12] {
        let (kind, data) = next(&mut old).await;
        assert_eq!((kind.as_str(), &data["sequence"]), ("", &number.into()));
        assert_eq!(serde_json::from_value::<Event>(data).unwrap(), event(number));
    }
    fixture.events.publish(vec![event(13)]);
    for stream in [&mut new, &mut old] {
        assert_eq!(next(stream).await.1["sequence"], 13);
    }
    fixture.events.publish(vec![event(14)]);
    fixture.events.end();
    assert_eq!(next(&mut new).await.1["sequence"], 14);
    assert_eq!(new.next().await, None, "the daemon has stopped");
}

#[tokio::test]
async fn a_stream_is_taken_up_by_the_number_of_the_last_event() {
    let fixture = start().await;
    fixture.events.publish((1..=4).map(event).collect());
    fixture.events.end();
    let get = |header: &str| {
        let socket = fixture.socket();
        let request = format!(
            "GET /v1/events/stream?after=0 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{header}\r\n\r\n"
        );
        async move {
            let mut stream = UnixStream::connect(socket).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }
    };
    let answer = get("Last-Event-ID: 3").await;
    assert!(answer.to_lowercase().contains("content-type: text/event-stream"), "{answer}");
    assert!(answer.contains("id: 4\ndata: {") && !answer.contains("id: 3\n"), "{answer}");
    assert!(get("Last-Event-ID: x").await.starts_with("HTTP/1.1 400 "));
}

/// A browser that is left open and reads nothing holds a bounded number of bytes, and nobody up.
#[tokio::test]
async fn a_reader_that_does_not_read_holds_nobody_up() {
    let fixture = start().await;
    let mut lazy = UnixStream::connect(fixture.socket()).await.unwrap();
    lazy.write_all(b"GET /v1/events/stream?after=0 HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    let server = Server::Socket(fixture.socket());
    let mut keen = server.stream("/v1/events/stream?after=0").await.unwrap();
    for round in 0..40u64 {
        fixture.events.publish((round * 1_000 + 1..=(round + 1) * 1_000).map(event).collect());
        loop {
            let (kind, data) = next(&mut keen).await;
            if kind.is_empty() && data["sequence"] == (round + 1) * 1_000 {
                break;
            }
        }
    }
    // it learns at last what it has missed
    let mut answer = vec![0; 1 << 20];
    let mut text = String::new();
    while !text.contains("event: dropped") {
        let read = tokio::time::timeout(Duration::from_secs(20), lazy.read(&mut answer)).await;
        let read = read.expect("it is pushed").unwrap();
        assert!(read > 0, "the stream goes on");
        text.push_str(&String::from_utf8_lossy(&answer[..read]));
    }
}

#[tokio::test]
async fn who_has_no_token_is_reported_once() {
    let fixture = start().await;
    let token_file = fixture.socket().with_file_name("wrong");
    std::fs::write(&token_file, "not-the-token").unwrap();
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::Tcp { authority: fixture.tcp.to_string(), token_file };
    for _ in 0..3 {
        let refused = server.get::<serde_json::Value>("/v1/status").await;
        assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
    }
    let reported = || {
        let asked = fixture.array.asked.lock().unwrap();
        let report = |command: &Command| match command {
            Command::Report { subject, facts, count } => Some((subject.clone(), facts.code(), *count)),
            _ => None,
        };
        asked.iter().filter_map(report).collect::<Vec<_>>()
    };
    while reported().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(reported(), [(Subject::Address("127.0.0.1".to_owned()), EventCode::ApiRefused, 1)]);
}
