//! Commands and their answers, byte by byte: numbers, splitting, residuals, the window, back-pressure.

use base::limits::{COMMANDS_PER_SESSION_MAX, OUTPUT_BYTES_PER_CONNECTION_MAX};
use bytes::Bytes;
use iscsi::initiator::Request;
use iscsi::{CommandResponse, Effect, Parameters, TaskTag};
use wire::iscsi::Residual;

use crate::harness::by_hand::{NO_DATA, READ, command};
use crate::harness::{Hosts, Pair, Raw, counter, frames, pattern, pieces, word};

fn respond(raw: &mut Raw, data: &[u8], status: u8, sense: Option<&'static [u8]>) -> Vec<(Header, Vec<u8>)> {
    let task = raw.take_commands().remove(0).task;
    let data_in = pieces(data, 700).into();
    let sense = sense.map(Bytes::from_static);
    raw.target.respond(task, CommandResponse { status, sense, data_in, data_out_wanted: None });
    frames(&raw.target.take_output())
}

use wire::iscsi::Header;

/// INQUIRY with more room than there is data: ESXi refuses a LUN whose residual is wrong here.
#[test]
fn golden_short_inquiry() {
    let mut raw = Raw::logged_in("MaxRecvDataSegmentLength=8192");
    assert!(raw.send(command(READ, 0x77, 1, 255), &[]).is_empty());
    let answers = respond(&mut raw, &[0xab; 96], 0, None);
    assert_eq!(answers.len(), 1, "data and status in one PDU");
    let (header, data) = &answers[0];
    let expected: Header = [
        0x25, 0x83, 0, 0, 0, 0, 0, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77, 0xff, 0xff, 0xff, 0xff, 0, 0,
        0, 1, 0, 0, 0, 2, 0, 0, 0, 129, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 159,
    ];
    assert_eq!((header, &data[..]), (&expected, &[0xab; 96][..]));
}

#[test]
fn data_is_split_by_segment_and_burst() {
    let mut raw = Raw::logged_in("MaxRecvDataSegmentLength=1000\nMaxBurstLength=2500");
    raw.send(command(READ, 5, 1, 6000), &[]);
    let data = pattern(3, 6000);
    let answers = respond(&mut raw, &data, 0, None);
    let shape: Vec<_> = answers
        .iter()
        .map(|(header, data)| (word(header, 40) as usize, data.len(), header[1], word(header, 36)))
        .collect();
    assert_eq!(
        shape,
        [
            (0, 1000, 0x00, 0),
            (1000, 1000, 0x00, 1),
            (2000, 500, 0x80, 2), // F ends a burst
            (2500, 1000, 0x00, 3),
            (3500, 1000, 0x00, 4),
            (4500, 500, 0x80, 5),
            (5000, 1000, 0x81, 6), // the last has the status
        ]
    );
    let received: Vec<u8> = answers.into_iter().flat_map(|(_, data)| data).collect();
    assert!(received == data);
}

#[test]
fn status_with_sense_comes_apart_after_the_data() {
    let mut raw = Raw::logged_in("");
    raw.send(command(READ, 5, 1, 1000), &[]);
    let answers = respond(&mut raw, &[1; 400], 2, Some(&[0x70, 0, 3]));
    assert_eq!(answers.len(), 2);
    assert_eq!((answers[0].0[0], answers[0].0[1]), (0x25, 0x80));
    let (header, data) = &answers[1];
    assert_eq!((header[0], header[1], header[2], header[3]), (0x21, 0x82, 0, 2));
    assert_eq!((word(header, 36), word(header, 44)), (1, 600), "one Data-In, 600 bytes short");
    assert_eq!(data[..], [0, 3, 0x70, 0, 3]);
}

#[test]
fn only_good_statuses_come_with_the_data() {
    for (status, pdus) in [(0x00, 1), (0x04, 1), (0x08, 2), (0x18, 2), (0x28, 2), (0x40, 2)] {
        let mut raw = Raw::logged_in("");
        raw.send(command(READ, 5, 1, 400), &[]);
        let answers = respond(&mut raw, &[1; 400], status, None);
        assert_eq!(answers.len(), pdus, "{status:#x}");
        assert_eq!(answers[pdus - 1].0[3], status);
    }
}

#[test]
fn a_failed_read_without_data_is_short_by_all_of_it() {
    let mut raw = Raw::logged_in("");
    raw.send(command(READ, 5, 1, 512), &[]);
    let answers = respond(&mut raw, &[], 2, Some(&[0x70, 0, 5]));
    assert_eq!((answers.len(), answers[0].0[1], word(&answers[0].0, 44)), (1, 0x82, 512));
}

#[test]
fn what_was_not_announced_is_not_sent() {
    let mut raw = Raw::logged_in("");
    raw.send(command(NO_DATA, 5, 1, 0), &[]);
    let answers = respond(&mut raw, &[9; 512], 0, None);
    assert_eq!((answers.len(), answers[0].0[0], answers[0].0[1]), (1, 0x21, 0x84), "overflow");
    assert_eq!((word(&answers[0].0, 44), answers[0].1.len()), (512, 0));
}

#[test]
fn residuals_of_writes() {
    for (announced, wanted, expected) in [
        (512, Some(512), Residual::None),
        (512, None, Residual::None),
        (1024, Some(512), Residual::Underflow(512)),
        (200, Some(512), Residual::Overflow(312)),
        (512, Some(0), Residual::Underflow(512)),
    ] {
        let mut pair = Pair::session(Parameters::DEFAULT);
        let mut write = Request::new(0, [0; 16]);
        write.data_out = vec![1; announced].into();
        pair.initiator.command(write).unwrap();
        pair.run();
        let task = pair.commands.remove(0).task;
        pair.target.respond(task, CommandResponse { data_out_wanted: wanted, ..Default::default() });
        assert_eq!(pair.completion().1.residual, expected, "{announced} {wanted:?}");
    }
}

/// The window: as many as MaxCmdSN says, the rest is not seen, and every answer opens it by one.
#[test]
fn the_window_holds_and_moves() {
    let mut raw = Raw::logged_in("");
    for n in 0..COMMANDS_PER_SESSION_MAX {
        assert!(raw.send(command(NO_DATA, n, 1 + n, 0), &[]).is_empty());
    }
    let next = COMMANDS_PER_SESSION_MAX + 1;
    raw.send(command(NO_DATA, 9999, next, 0), &[]);
    raw.send(command(NO_DATA, 9998, 0, 0), &[]); // long gone
    raw.send(command(NO_DATA, 9997, next + 5000, 0), &[]);
    let commands = raw.take_commands();
    assert_eq!(commands.len(), COMMANDS_PER_SESSION_MAX as usize, "the others were ignored");
    assert_eq!(raw.closed(), None);
    let answers = raw.good(&commands[50]);
    assert_eq!((word(&answers[0].0, 28), word(&answers[0].0, 32)), (next, next), "room for one");
    raw.send(command(NO_DATA, 9999, next, 0), &[]);
    assert_eq!(raw.take_commands().len(), 1);
    let answers = raw.good(&commands[51]);
    assert_eq!((word(&answers[0].0, 28), word(&answers[0].0, 32)), (next + 1, next + 1));
}

#[test]
fn status_numbers_count_statuses_only() {
    let mut raw = Raw::logged_in("MaxRecvDataSegmentLength=512");
    for n in 1..4 {
        raw.send(command(READ, n, n, 2048), &[]);
        let answers = respond(&mut raw, &[0; 2048], 0, None);
        assert_eq!(answers.len(), 4);
        let numbers: Vec<u32> = answers.iter().map(|(header, _)| word(header, 24)).collect();
        assert_eq!(numbers, [0, 0, 0, n], "StatSN stands in the PDU with the status");
    }
}

#[test]
fn late_and_foreign_answers_are_dropped() {
    let mut raw = Raw::logged_in("");
    raw.send(command(NO_DATA, 5, 1, 0), &[]);
    let commands = raw.take_commands();
    assert_eq!(raw.good(&commands[0]).len(), 1);
    assert_eq!(raw.good(&commands[0]).len(), 0, "answered already");
    for tag in [0, 77, u32::MAX] {
        raw.target.respond(TaskTag(tag), CommandResponse::default());
        raw.target.forget(TaskTag(tag));
    }
    assert!(!raw.target.has_output());
    raw.send(command(NO_DATA, 5, 2, 0), &[]);
    let commands = raw.take_commands();
    raw.target.forget(commands[0].task);
    assert_eq!(raw.good(&commands[0]).len(), 0, "forgotten");
    raw.send(command(NO_DATA, 5, 3, 0), &[]);
    assert_eq!(raw.take_commands().len(), 1, "its tag is free again");
}

/// With too much waiting to be sent, nothing more is taken in; nothing is lost either.
#[test]
fn output_pushes_back() {
    let mut raw = Raw::logged_in("MaxRecvDataSegmentLength=262144");
    let mut ping = [0; 48];
    (ping[0], ping[1]) = (0x40, 0x80);
    ping[5..8].copy_from_slice(&[0, 0x40, 0]); // 16 KiB
    let mut input = bytes::BytesMut::new();
    let pings = OUTPUT_BYTES_PER_CONNECTION_MAX / (16 << 10) + 10;
    for _ in 0..pings {
        input.extend_from_slice(&ping);
        input.extend_from_slice(&[3; 16 << 10]);
    }
    let (mut answered, mut rounds) = (0, 0);
    while !input.is_empty() {
        raw.target.on_receive(&mut input, &Hosts, base::Nanos(1), &mut counter());
        assert_eq!(raw.target.wants_receive(), input.is_empty());
        let output = raw.target.take_output();
        let bytes: usize = output.iter().map(Bytes::len).sum();
        assert!(bytes < OUTPUT_BYTES_PER_CONNECTION_MAX + (17 << 10), "{bytes} bytes queued");
        assert!(raw.target.wants_receive());
        answered += frames(&output).len();
        rounds += 1;
    }
    assert_eq!((answered, rounds), (pings, 2));
}

#[test]
fn every_pdu_of_a_send_comes_in_one_piece_list() {
    let mut raw = Raw::logged_in("");
    for n in 1..20 {
        raw.send(command(READ, n, n, 4096), &[]);
    }
    let block = Bytes::from(vec![1; 4096]);
    for command in raw.take_commands() {
        let data_in = block.clone().into();
        raw.target.respond(command.task, CommandResponse { data_in, ..Default::default() });
    }
    let output = raw.target.take_output();
    assert_eq!(output.len(), 2 * 19, "a header and a block each");
    assert!(raw.target.take_output().is_empty());
}

#[test]
fn attributes_and_luns_are_passed_on() {
    let mut raw = Raw::logged_in("");
    for (sn, attribute) in (1..).zip([0u8, 1, 2, 3, 4]) {
        let mut header = command(NO_DATA, sn, sn, 0);
        header[1] = 0x80 | attribute;
        header[9] = 5;
        header[32] = 0x35;
        raw.send(header, &[]);
    }
    let seen: Vec<String> = raw
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Command(c) => format!("{:?} {:x} {:x}", c.attribute, c.lun, c.cdb[0]),
            other => panic!("{other:?}"),
        })
        .collect();
    let lun = "5000000000000 35";
    let expected = ["Untagged", "Simple", "Ordered", "HeadOfQueue", "Aca"].map(|a| format!("{a} {lun}"));
    assert_eq!(seen, expected);
}
