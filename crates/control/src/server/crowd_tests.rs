//! Many clients that send nothing, little or slowly, and whether others are served.

use std::sync::atomic::Ordering;

use base::limits::{API_CONNECTIONS_MAX, API_REQUESTS_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use super::connection::HEADER_TIME_MAX;
use super::extract::BODY_TIME_MAX;
use super::tests::{Fixture, start};
use super::*;

const SLOW_HEAD: &str = "GET /v1/status HT";
const SLOW_BODY: &str = "POST /v1/volumes HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer 0123456789abcdef\r\nContent-Length: 99\r\n\r\n{";
const STATUS: &str = "GET /v1/status HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n";
/// Longer than an answer takes, and shorter than any deadline of the server.
const SOON: Duration = Duration::from_secs(5);

const _: () = assert!(SOON.as_secs() < HEADER_TIME_MAX.as_secs() && SOON.as_secs() < BODY_TIME_MAX.as_secs());

/// What a crowd says: each in turn says one of these.
const SAYINGS: [&str; 4] = ["", SLOW_HEAD, SLOW_BODY, "GET /v1/status HTTP/1.1\r\nHost: t\r\n\r\n"];

async fn tcp_crowd(fixture: &Fixture, sayings: &[&str], count: usize) -> Vec<TcpStream> {
    let mut crowd = Vec::new();
    for saying in sayings.iter().cycle().take(count) {
        let mut stream = TcpStream::connect(fixture.tcp).await.unwrap();
        stream.write_all(saying.as_bytes()).await.unwrap();
        crowd.push(stream);
    }
    crowd
}

async fn local_crowd(fixture: &Fixture, sayings: &[&str], count: usize) -> Vec<UnixStream> {
    let mut crowd = Vec::new();
    for saying in sayings.iter().cycle().take(count) {
        let mut stream = UnixStream::connect(fixture.socket()).await.unwrap();
        stream.write_all(saying.as_bytes()).await.unwrap();
        crowd.push(stream);
    }
    crowd
}

async fn tcp_status_line(fixture: &Fixture) -> String {
    let mut stream = TcpStream::connect(fixture.tcp).await.unwrap();
    stream.write_all(STATUS.as_bytes()).await.unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

#[tokio::test]
async fn crowds_over_tcp_keep_neither_the_local_socket_nor_others_waiting() {
    let fixture = start().await;
    let _crowd = tcp_crowd(&fixture, &SAYINGS, 2 * API_CONNECTIONS_MAX).await;
    let (code, _) = timeout(SOON, fixture.request("GET", "/v1/status", "")).await.expect("answered soon");
    assert_eq!(code, 200);
    let line = timeout(SOON, tcp_status_line(&fixture)).await.expect("answered soon");
    assert_eq!(line, "HTTP/1.1 200");
}

#[tokio::test]
async fn crowds_on_the_local_socket_give_way() {
    let fixture = start().await;
    let _crowd = local_crowd(&fixture, &SAYINGS, API_CONNECTIONS_MAX + API_CONNECTIONS_MAX / 2).await;
    let (code, _) = timeout(SOON, fixture.request("GET", "/v1/status", "")).await.expect("answered soon");
    assert_eq!(code, 200);
}

/// What a client asked for is not broken off for another's sake.
#[tokio::test]
async fn who_has_a_request_at_work_does_not_give_way() {
    let fixture = start().await;
    fixture.array.silent.store(true, Ordering::Relaxed);
    let mut working = UnixStream::connect(fixture.socket()).await.unwrap();
    working.write_all(STATUS.as_bytes()).await.unwrap();
    while fixture.array.asked.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fixture.array.silent.store(false, Ordering::Relaxed);
    let _crowd = local_crowd(&fixture, &SAYINGS, 2 * API_CONNECTIONS_MAX).await;
    let (code, _) = timeout(SOON, fixture.request("GET", "/v1/status", "")).await.expect("answered soon");
    assert_eq!(code, 200);
    let gone = timeout(Duration::from_millis(200), working.read_u8()).await;
    assert!(gone.is_err(), "the request was broken off: {gone:?}");
}

/// As many requests at work over TCP as there may be leave the local socket all of its own.
#[tokio::test]
async fn requests_at_work_over_tcp_leave_room_for_local_ones() {
    let fixture = start().await;
    fixture.array.silent.store(true, Ordering::Relaxed);
    let _crowd = tcp_crowd(&fixture, &[STATUS], API_CONNECTIONS_MAX).await;
    while fixture.array.asked.lock().unwrap().len() < API_REQUESTS_MAX {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fixture.array.silent.store(false, Ordering::Relaxed);
    let (code, _) = timeout(SOON, fixture.request("GET", "/v1/status", "")).await.expect("answered soon");
    assert_eq!(code, 200);
}

/// A client that says nothing at all, half a head, or half a body, is left when its time is over.
#[tokio::test(start_paused = true)]
async fn heads_and_bodies_have_deadlines() {
    let fixture = start().await;
    for (saying, deadline, answer) in [
        ("", HEADER_TIME_MAX, ""),
        (SLOW_HEAD, HEADER_TIME_MAX, ""),
        (SLOW_BODY, BODY_TIME_MAX, "HTTP/1.1 408 "),
    ] {
        let began = Instant::now();
        let mut stream = UnixStream::connect(fixture.socket()).await.unwrap();
        stream.write_all(saying.as_bytes()).await.unwrap();
        let mut answered = Vec::new();
        let _ = stream.read_to_end(&mut answered).await;
        let answered = String::from_utf8(answered).unwrap();
        assert!(
            answered.starts_with(answer) && answered.is_empty() == answer.is_empty(),
            "{saying}: {answered}"
        );
        let took = began.elapsed();
        assert!(took >= deadline && took < deadline + SOON, "{saying}: {took:?}");
    }
}
