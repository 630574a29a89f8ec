//! Login transcripts, and every reason for a refusal.

use base::{Nanos, limits};
use iscsi::{CloseReason, Effect, SessionKind};
use wire::iscsi::{HEADER_BYTES, LoginStatus};

use crate::harness::{HOST, Hosts, Raw, TARGET, counter, frames, lines, pairs};

/// What open-iscsi offers, and what it gets.
#[test]
fn golden_transcript_of_a_linux_login() {
    let mut raw = Raw::new();
    let text = format!(
        "InitiatorName={HOST}\nInitiatorAlias=pve1\nTargetName={TARGET}\nSessionType=Normal\nAuthMethod=None"
    );
    let answers = raw.login(0x81, &text); // security, transit to operational
    assert_eq!(answers.len(), 1);
    let (header, data) = &answers[0];
    assert_eq!(header[..2], [0x23, 0x81]);
    assert_eq!(header[8..16], [0x80, 0, 0, 0, 0, 9, 0, 0], "ISID, and no TSIH yet");
    assert_eq!(header[24..38], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 128, 0, 0], "numbers and success");
    assert_eq!(lines(data), "TargetPortalGroupTag=1\nTargetAlias=test array\nAuthMethod=None");

    let offers = "HeaderDigest=None,CRC32C\nDataDigest=None\nDefaultTime2Wait=2\nDefaultTime2Retain=0\n\
        IFMarker=No\nOFMarker=No\nErrorRecoveryLevel=0\nInitialR2T=No\nImmediateData=Yes\n\
        MaxBurstLength=16776192\nFirstBurstLength=262144\nMaxOutstandingR2T=1\nMaxConnections=1\n\
        DataPDUInOrder=Yes\nDataSequenceInOrder=Yes\nMaxRecvDataSegmentLength=262144\nX-com.example.a=1";
    let answers = raw.login(0x87, offers);
    let (header, data) = &answers[0];
    assert_eq!(header[..2], [0x23, 0x87]);
    assert_eq!(header[14..16], [0x12, 0x34], "the TSIH that the engine gave");
    assert_eq!(header[24..38], [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 128, 0, 0]);
    assert_eq!(
        lines(data),
        "HeaderDigest=None\nDataDigest=None\nDefaultTime2Wait=2\nDefaultTime2Retain=0\nIFMarker=No\n\
         OFMarker=No\nErrorRecoveryLevel=0\nInitialR2T=No\nImmediateData=Yes\nMaxBurstLength=1048576\n\
         FirstBurstLength=262144\nMaxOutstandingR2T=1\nMaxConnections=1\nDataPDUInOrder=Yes\n\
         DataSequenceInOrder=Yes\nX-com.example.a=NotUnderstood\nMaxRecvDataSegmentLength=262144"
    );
    let Some(Effect::LoggedIn(identity)) = raw.effects.first() else { panic!("{:?}", raw.effects) };
    assert_eq!(identity.initiator_name, HOST);
    assert_eq!(identity.initiator_alias.as_deref(), Some("pve1"));
    assert_eq!(identity.isid, [0x80, 0, 0, 0, 0, 9]);
    assert_eq!(identity.target_name.as_deref(), Some(TARGET));
    assert_eq!((identity.portal_group_tag, identity.kind), (1, SessionKind::Normal));
}

/// RFC 7143 §13.14, in whatever order they come.
#[test]
fn the_first_burst_is_within_the_burst() {
    for (offers, answer) in [
        ("MaxBurstLength=65536\nFirstBurstLength=262144", "MaxBurstLength=65536\nFirstBurstLength=65536\n"),
        ("FirstBurstLength=262144\nMaxBurstLength=8192", "FirstBurstLength=8192\nMaxBurstLength=8192\n"),
        ("FirstBurstLength=4096\nMaxBurstLength=8192", "FirstBurstLength=4096\nMaxBurstLength=8192\n"),
    ] {
        let mut raw = Raw::new();
        let names = format!("InitiatorName={HOST}\nTargetName={TARGET}\n{offers}");
        let answers = raw.login(0x87, &names);
        assert!(lines(&answers[0].1).contains(answer), "{}", lines(&answers[0].1));
    }
}

#[test]
fn one_request_from_the_operational_stage_is_enough() {
    let raw = Raw::logged_in("");
    assert!(raw.target.wants_receive());
}

#[test]
fn straight_from_security_to_full_feature() {
    let mut raw = Raw::new();
    let answers = raw.login(0x83, &format!("InitiatorName={HOST}\nTargetName={TARGET}\nAuthMethod=None"));
    assert_eq!((answers[0].0[1], &answers[0].0[36..38]), (0x83, &[0, 0][..]));
    // no segment length was stated, so that of the standard holds
    let answers = raw.send_bytes(&{
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&[0x40, 0x80]);
        header[5..8].copy_from_slice(&[0, 0x20, 1]);
        header
    });
    assert_eq!((answers[0].0[0], raw.closed()), (0x3f, Some(CloseReason::ProtocolError)));
}

#[test]
fn names_are_compared_without_case() {
    let mut raw = Raw::new();
    let text = format!("InitiatorName={}\nTargetName={}", HOST.to_uppercase(), TARGET.to_uppercase());
    assert_eq!(raw.login(0x87, &text)[0].0[36..38], [0, 0]);
}

#[test]
fn text_may_be_cut_anywhere() {
    let text = pairs(&format!("InitiatorName={HOST}\nTargetName={TARGET}\nMaxBurstLength=4096"));
    for cut in [0, 1, 5, 20, text.len() - 1, text.len()] {
        let mut raw = Raw::new();
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (0x43, 0x44); // operational, more to come
        let answers = raw.send(header, &text[..cut]);
        assert_eq!((answers.len(), answers[0].0[1], answers[0].1.len()), (1, 0x04, 0));
        header[1] = 0x87;
        let answers = raw.send(header, &text[cut..]);
        assert!(lines(&answers[0].1).contains("MaxBurstLength=4096"), "cut at {cut}: {answers:?}");
    }
}

/// Refusals: flags, text, status class and detail.
#[test]
fn refusals() {
    let names = format!("InitiatorName={HOST}\nTargetName={TARGET}");
    let many: String = (0..limits::TEXT_KEYS_MAX).map(|i| format!("X-{i}=\n")).collect();
    let long_name = "n".repeat(224);
    let table = [
        (0x87, format!("TargetName={TARGET}"), (2, 7)),
        (0x87, format!("InitiatorName=\nTargetName={TARGET}"), (2, 7)),
        (0x87, format!("InitiatorName={long_name}\nTargetName={TARGET}"), (2, 7)),
        (0x87, format!("InitiatorName={HOST}"), (2, 7)),
        (0x87, String::new(), (2, 7)),
        (0x87, format!("InitiatorName=iqn.stranger\nTargetName={TARGET}"), (2, 2)),
        (0x87, format!("InitiatorName={HOST}\nTargetName=iqn.other"), (2, 3)),
        (0x87, format!("{names}\nSessionType=Weird"), (2, 9)),
        (0x87, format!("{names}\nMaxBurstLength=512\nMaxBurstLength=512"), (2, 0)),
        (0x87, format!("{names}\nInitiatorName={HOST}"), (2, 0)),
        (0x87, format!("{names}\nno equals sign"), (2, 0)),
        (0x87, format!("{names}\n=no key"), (2, 0)),
        (0xc7, names.clone(), (2, 0)), // T and C together
        (0x8b, names.clone(), (2, 0)), // a stage that does not exist
        (0x84, names.clone(), (2, 0)), // back to security
        (0x8f, names.clone(), (2, 0)), // from full feature phase
        (0x87, format!("{names}\n{many}"), (3, 2)),
        (0x81, format!("{names}\nAuthMethod=CHAP"), (2, 1)), // we have nothing to check it against
        (0x81, format!("{names}\nAuthMethod=KRB5"), (2, 1)),
        (0x81, format!("{names}\nCHAP_A=5"), (2, 0)),
    ];
    for (flags, text, (class, detail)) in table {
        let mut raw = Raw::new();
        let answers = raw.login(flags, &text);
        assert_eq!(answers.len(), 1, "{text}");
        assert_eq!(answers[0].0[0], 0x23);
        assert_eq!(answers[0].0[36..38], [class, detail], "{flags:#x} {text}");
        assert_eq!(raw.closed(), Some(CloseReason::LoginRefused { class, detail }));
        assert!(!raw.target.wants_receive());
        assert!(raw.login(flags, &text).is_empty(), "nothing is answered after the end");
    }
}

#[test]
fn header_fields_that_are_refused() {
    let text = pairs(&format!("InitiatorName={HOST}\nTargetName={TARGET}"));
    let mut header = [0; HEADER_BYTES];
    (header[0], header[1]) = (0x43, 0x87);
    // place, value, detail: version, TSIH of a session that never was
    for (place, value, detail) in [(3, 1, 5), (15, 9, 0x0a)] {
        let mut header = header;
        header[place] = value;
        assert_eq!(Raw::new().send(header, &text)[0].0[36..38], [2, detail]);
    }
    // ISID, TSIH, CID, stage change between requests
    for (place, value) in [(13, 5), (15, 5), (21, 5), (1, 0x81)] {
        let mut raw = Raw::new();
        let mut header = header;
        header[1] = 0x04; // operational, no transit
        assert_eq!(raw.send(header, &text)[0].0[36..38], [0, 0]);
        header[1] = 0x87;
        header[place] = value;
        assert_eq!(raw.send(header, &[])[0].0[36..38], [2, 0], "{place}");
    }
}

#[test]
fn names_are_said_once() {
    let mut raw = Raw::new();
    raw.login(0x04, &format!("InitiatorName={HOST}\nTargetName={TARGET}"));
    assert_eq!(raw.login(0x87, "InitiatorAlias=late")[0].0[36..38], [2, 0]);
}

#[test]
fn what_is_not_a_login() {
    let mut raw = Raw::new();
    let mut command = [0; HEADER_BYTES];
    (command[0], command[1]) = (1, 0x80);
    assert!(raw.send(command, &[]).is_empty(), "the first PDU must be a login request");
    assert_eq!(raw.closed(), Some(CloseReason::ProtocolError));

    let mut raw = Raw::new();
    raw.login(0x04, &format!("InitiatorName={HOST}\nTargetName={TARGET}"));
    assert_eq!(raw.send(command, &[])[0].0[36..38], [2, 0x0b]);
    assert_eq!(raw.closed(), Some(CloseReason::LoginRefused { class: 2, detail: 0x0b }));
}

#[test]
fn text_is_bounded() {
    let mut raw = Raw::new();
    let mut header = [0; HEADER_BYTES];
    (header[0], header[1]) = (0x43, 0x44);
    let mut sent = 0;
    loop {
        let answers = raw.send(header, &[b'a'; 8000]);
        sent += 8000;
        if answers[0].0[36..38] != [0, 0] {
            assert_eq!(answers[0].0[36..38], [3, 2]);
            break;
        }
    }
    assert!((limits::LOGIN_TEXT_BYTES_MAX..limits::LOGIN_TEXT_BYTES_MAX + 8001).contains(&sent));
    // one PDU longer than the standard allows before anything is agreed on
    let mut raw = Raw::new();
    assert_eq!(raw.send(header, &[b'a'; 8193])[0].0[36..38], [2, 0]);
}

#[test]
fn time_is_bounded() {
    let mut raw = Raw::new();
    let deadline = raw.target.next_deadline();
    assert_eq!(deadline, Nanos(limits::LOGIN_NS_MAX));
    raw.login(0x04, &format!("InitiatorName={HOST}\nTargetName={TARGET}"));
    raw.target.on_tick(Nanos(deadline.0 - 1));
    assert!(raw.target.next_effect().is_none());
    raw.target.on_tick(deadline);
    assert!(matches!(raw.target.next_effect(), Some(Effect::Close(CloseReason::LoginTimedOut))));
    assert_eq!(raw.target.next_deadline(), Nanos::MAX);
    raw.target.complete_login(1); // too late, and harmless
    assert!(!raw.target.has_output());
}

/// Between the request and the engine's agreement nothing else is looked at, and nothing is lost.
#[test]
fn commands_wait_for_the_engine() {
    let mut raw = Raw::new();
    let text = pairs(&format!("InitiatorName={HOST}\nTargetName={TARGET}"));
    let mut bytes = vec![0; HEADER_BYTES];
    (bytes[0], bytes[1], bytes[7]) = (0x43, 0x87, text.len() as u8);
    bytes.extend(&text);
    bytes.resize(bytes.len() + wire::iscsi::padding(text.len()), 0);
    let login = bytes.len();
    bytes.extend([0x40, 0x80]); // a NOP-Out, pipelined
    bytes.resize(login + HEADER_BYTES, 0);
    let mut input = bytes::BytesMut::from(&bytes[..]);
    raw.target.on_receive(&mut input, &Hosts, Nanos(1), &mut counter());
    assert!(matches!(raw.target.next_effect(), Some(Effect::LoggedIn(_))));
    assert_eq!((input.len(), raw.target.wants_receive(), raw.target.has_output()), (48, false, false));
    raw.target.complete_login(1);
    assert!(raw.target.wants_receive());
    raw.target.on_receive(&mut input, &Hosts, Nanos(1), &mut counter());
    let answers = frames(&raw.target.take_output());
    assert_eq!((answers[0].0[0], answers[1].0[0]), (0x23, 0x20));
}

#[test]
fn the_engine_may_refuse() {
    let mut raw = Raw::new();
    let text = pairs(&format!("InitiatorName={HOST}\nTargetName={TARGET}"));
    let mut header = [0; HEADER_BYTES];
    (header[0], header[1]) = (0x43, 0x87);
    header[4..8].copy_from_slice(&(text.len() as u32).to_be_bytes());
    let mut input = bytes::BytesMut::from(&header[..]);
    input.extend_from_slice(&text);
    input.extend_from_slice(&[0; 3][..wire::iscsi::padding(text.len())]);
    raw.target.on_receive(&mut input, &Hosts, Nanos(1), &mut counter());
    assert!(matches!(raw.target.next_effect(), Some(Effect::LoggedIn(_))));
    raw.target.refuse_login(LoginStatus::OutOfResources);
    assert_eq!(frames(&raw.target.take_output())[0].0[36..38], [3, 2]);
    assert!(matches!(raw.target.next_effect(), Some(Effect::Close(_))));
}
