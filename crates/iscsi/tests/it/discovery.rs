//! Discovery sessions and SendTargets.

use std::net::SocketAddr;

use base::Nanos;
use bytes::BytesMut;
use iscsi::initiator::{Event, Initiator, InitiatorParams};
use iscsi::{CloseReason, Directory, Effect, HostAccess, Parameters, SessionKind};

use crate::harness::{CHAP_HOST, HOST, Pair, Raw, TARGET, chap, connection, lines, pairs};

fn discover(pair: &mut Pair, which: &str) -> Vec<(String, Vec<String>)> {
    pair.initiator.send_targets(which);
    pair.run();
    match pair.events.pop() {
        Some(Event::Targets(targets)) => targets.into_iter().map(|t| (t.name, t.addresses)).collect(),
        other => panic!("{other:?}, closed: {:?}", pair.closed),
    }
}

fn everything() -> Vec<(String, Vec<String>)> {
    let addresses = ["192.0.2.7:3260,1", "[2001:db8::5]:3261,2"];
    vec![(TARGET.to_string(), addresses.map(str::to_string).to_vec())]
}

#[test]
fn a_known_host_sees_the_target_at_every_portal() {
    let mut pair = Pair::after_login(InitiatorParams::new(HOST, None));
    let identity = pair.logged_in.clone().unwrap();
    assert_eq!((identity.kind, identity.target_name), (SessionKind::Discovery, None));
    assert_eq!(discover(&mut pair, "All"), everything());
    assert_eq!(discover(&mut pair, TARGET), everything());
    assert_eq!(discover(&mut pair, "iqn.other"), vec![]);
    assert_eq!(discover(&mut pair, ""), vec![], "there is no target that this session belongs to");
    pair.initiator.logout();
    pair.run();
    assert_eq!(pair.closed, Some(CloseReason::LoggedOut));
}

#[test]
fn a_stranger_sees_nothing() {
    let mut pair = Pair::after_login(InitiatorParams::new("iqn.stranger", None));
    assert_eq!(discover(&mut pair, "All"), vec![]);
    assert_eq!(discover(&mut pair, TARGET), vec![]);
}

#[test]
fn a_host_with_a_secret_must_prove_itself_to_discover() {
    let mut pair = Pair::after_login(InitiatorParams::new(CHAP_HOST, None));
    assert!(matches!(pair.events.pop(), Some(Event::Failed(_))));
    assert_eq!(pair.closed, Some(CloseReason::LoginRefused { class: 2, detail: 1 }));
    let params =
        InitiatorParams { chap: Some(chap("host", "twelve chars")), ..InitiatorParams::new(CHAP_HOST, None) };
    pair = Pair::after_login(params);
    assert_eq!(discover(&mut pair, "All"), everything());
}

#[test]
fn normal_sessions_see_their_own_target_only() {
    let mut pair = Pair::session(Parameters::DEFAULT);
    assert_eq!(discover(&mut pair, ""), everything());
    assert_eq!(discover(&mut pair, TARGET), everything());
    assert_eq!(discover(&mut pair, "All"), vec![]);
}

#[test]
fn commands_are_not_for_discovery_sessions() {
    for opcode in [0x01, 0x02, 0x05, 0x10] {
        let mut raw = Raw::new();
        raw.login(0x87, &format!("InitiatorName={HOST}\nSessionType=Discovery"));
        let mut header = [0; 48];
        (header[0], header[1], header[27]) = (opcode, 0x81, 1);
        let answers = raw.send(header, &[]);
        assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x04));
        assert_eq!(raw.closed(), Some(CloseReason::ProtocolError));
    }
}

/// More portals than fit into one PDU of the smallest size.
struct ManyPortals;

impl Directory for ManyPortals {
    fn target_name(&self) -> &str {
        TARGET
    }
    fn find_host(&self, _: &str) -> Option<HostAccess> {
        Some(HostAccess::default())
    }
    fn portals(&self, _: &str) -> Vec<(SocketAddr, u16)> {
        (0..100).map(|n| (SocketAddr::from(([10, 0, 0, n], 3260)), u16::from(n))).collect()
    }
}

#[test]
fn long_answers_come_in_parts() {
    let wanted = Parameters { receive_segment_bytes: 512, ..Parameters::DEFAULT };
    let mut initiator = Initiator::new(InitiatorParams { wanted, ..InitiatorParams::new(HOST, None) });
    let mut target = connection();
    let (mut parts, mut targets) = (0, None);
    for _ in 0..50 {
        let mut input = BytesMut::from(&initiator.take_output().concat()[..]);
        target.on_receive(&mut input, &ManyPortals, Nanos(1), &mut || 1);
        if let Some(Effect::LoggedIn(_)) = target.next_effect() {
            target.complete_login(1);
        }
        let output = target.take_output().concat();
        parts += u32::from(output.first() == Some(&0x24));
        initiator.on_receive(&mut BytesMut::from(&output[..]), &mut || 1);
        match initiator.next_event() {
            Some(Event::LoggedIn { .. }) => initiator.send_targets("All"),
            Some(Event::Targets(found)) => targets = Some(found),
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
    let targets = targets.expect("an answer");
    assert_eq!(targets[0].addresses.len(), 100);
    assert_eq!(targets[0].addresses[99], "10.0.0.99:3260,99");
    assert!(parts >= 100 * 32 / 512, "{parts} parts");
}

#[test]
fn text_exchanges_by_the_byte() {
    let mut raw = Raw::logged_in("");
    let text = pairs("SendTargets=\nMaxRecvDataSegmentLength=1024\nMaxBurstLength=512\nX-what=1");
    let request = |flags: u8, target_tag: u32, cmd_sn: u8| {
        let mut header = [0; 48];
        (header[0], header[1], header[19], header[27]) = (4, flags, 7, cmd_sn);
        header[20..24].copy_from_slice(&target_tag.to_be_bytes());
        header
    };
    let answers = raw.send(request(0x40, u32::MAX, 1), &text[..20]); // more to come
    assert_eq!((answers[0].0[0], answers[0].0[1], answers[0].1.len()), (0x24, 0x00, 0));
    let target_tag = u32::from_be_bytes(answers[0].0[20..24].try_into().unwrap());
    assert_ne!(target_tag, u32::MAX);
    let answers = raw.send(request(0x80, target_tag, 2), &text[20..]);
    assert_eq!((answers[0].0[1], &answers[0].0[20..24]), (0x80, &[0xff; 4][..]));
    let text = lines(&answers[0].1);
    assert!(text.ends_with("MaxBurstLength=Reject\nX-what=NotUnderstood"), "{text}");
    // a tag of an exchange that is over, and one whose turn it is not
    let answers = raw.send(request(0x80, target_tag, 3), b"SendTargets=\0");
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 4));
    assert_eq!(raw.closed(), None);
}
