//! NOPs both ways, logout, and how a connection ends.

use base::{Nanos, limits};
use bytes::{Bytes, BytesMut};
use iscsi::initiator::Event;
use iscsi::{CloseReason, Effect, Parameters};
use wire::iscsi::AsyncEvent;

use crate::harness::{Hosts, Pair, Raw, counter, frames, word};

#[test]
fn a_silent_initiator_is_probed_and_given_up() {
    let mut raw = Raw::logged_in("");
    let idle = raw.target.next_deadline();
    assert_eq!(idle, Nanos(1 + limits::NOP_IDLE_NS));
    raw.target.on_tick(Nanos(idle.0 - 1));
    assert!(!raw.target.has_output());
    raw.target.on_tick(idle);
    let probe = frames(&raw.target.take_output());
    assert_eq!((probe.len(), probe[0].0[0], word(&probe[0].0, 16)), (1, 0x20, u32::MAX));
    assert_ne!(word(&probe[0].0, 20), u32::MAX, "an answer is wanted");
    let end = raw.target.next_deadline();
    assert_eq!(end, Nanos(idle.0 + limits::NOP_ANSWER_NS_MAX));
    raw.target.on_tick(Nanos(end.0 - 1));
    assert!(!raw.target.has_output(), "one probe is enough");
    raw.target.on_tick(end);
    assert!(matches!(raw.target.next_effect(), Some(Effect::Close(CloseReason::Unresponsive))));
}

#[test]
fn an_answer_to_the_probe_is_a_sign_of_life() {
    let mut pair = Pair::session(Parameters::DEFAULT);
    let idle = pair.target.next_deadline();
    pair.target.on_tick(idle);
    let probe = pair.target.take_output().concat();
    pair.initiator.on_receive(&mut BytesMut::from(&probe[..]), &mut counter());
    let answer = pair.initiator.take_output().concat();
    assert_eq!((answer[0], &answer[16..20]), (0x40, &[0xff; 4][..]));
    assert_eq!(answer[20..24], probe[20..24], "with the tag of the probe");
    let later = Nanos(idle.0 + 5);
    pair.target.on_receive(&mut BytesMut::from(&answer[..]), &Hosts, later, &mut counter());
    assert!(!pair.target.has_output());
    assert_eq!(pair.target.next_deadline(), Nanos(later.0 + limits::NOP_IDLE_NS));
}

#[test]
fn pings_are_echoed_as_far_as_the_initiator_accepts() {
    let mut pair = Pair::session(Parameters { receive_segment_bytes: 512, ..Parameters::DEFAULT });
    let tag = pair.initiator.nop(Bytes::from(vec![7; 1000]));
    pair.run();
    let Some(Event::Pong(answered, data)) = pair.events.pop() else { panic!("{:?}", pair.events) };
    assert_eq!((answered, data.to_vec()), (tag, vec![7; 512]));
}

#[test]
fn numbered_pings_count_as_commands() {
    let mut raw = Raw::logged_in("");
    let mut ping = [0; 48];
    (ping[1], ping[19], ping[27]) = (0x80, 4, 1);
    let answers = raw.send(ping, b"hello");
    assert_eq!((answers[0].0[0], answers[0].1.as_slice()), (0x20, &b"hello"[..]));
    assert_eq!((word(&answers[0].0, 28), word(&answers[0].0, 32)), (2, 129));
    assert!(raw.send(ping, b"hello").is_empty(), "the same number again is ignored");
}

/// Reason, connection id, what is answered, whether that is the end.
#[test]
fn logouts() {
    for (reason, connection_id, result, ends) in
        [(0, 0, 0, true), (0, 7, 0, true), (1, 0, 0, true), (1, 7, 1, false), (2, 0, 2, false)]
    {
        let mut raw = Raw::logged_in("");
        let mut header = [0; 48];
        (header[0], header[1], header[21]) = (0x46, 0x80 | reason, connection_id);
        let answers = raw.send(header, &[]);
        assert_eq!((answers[0].0[0], answers[0].0[2]), (0x26, result));
        assert_eq!(raw.closed(), ends.then_some(CloseReason::LoggedOut));
    }
}

#[test]
fn shutdown_is_announced() {
    let mut pair = Pair::session(Parameters::DEFAULT);
    pair.target.request_logout(10);
    pair.run();
    let expected = AsyncEvent::LogoutRequested { within_seconds: 10 };
    assert!(matches!(pair.events.pop(), Some(Event::Async(event)) if event == expected));
    pair.target.close(CloseReason::Requested);
    pair.target.close(CloseReason::Unresponsive);
    pair.run();
    assert!(matches!(pair.events.pop(), Some(Event::Async(AsyncEvent::ConnectionDropped { .. }))));
    assert!(pair.events.is_empty());
    assert_eq!(pair.closed, Some(CloseReason::Requested), "closed once");
    pair.initiator.nop(Bytes::new());
    assert!(!pair.target.wants_receive());
    pair.run();
    assert!(pair.events.is_empty());
}

#[test]
fn before_login_there_is_nobody_to_tell() {
    let mut raw = Raw::new();
    raw.target.request_logout(1);
    raw.target.close(CloseReason::Requested);
    assert!(!raw.target.has_output());
    assert!(matches!(raw.target.next_effect(), Some(Effect::Close(CloseReason::Requested))));
}
