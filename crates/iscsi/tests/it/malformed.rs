//! Malformed PDUs in full feature phase: each gets its reject, its status or the end of the
//! connection, and has no other effect.

use base::limits::{IMMEDIATE_COMMANDS_MAX, RECEIVE_SEGMENT_BYTES_MAX};
use bytes::BytesMut;
use iscsi::{CloseReason, Effect};
use wire::iscsi::Header;

use crate::harness::by_hand::{NO_DATA, READ, WRITE, command, task_management};
use crate::harness::{Hosts, Raw, counter};

enum After {
    GoesOn,
    Ends,
}
use After::{Ends, GoesOn};

fn header(opcode: u8, flags: u8) -> Header {
    let mut header = [0; 48];
    (header[0], header[1], header[19], header[27]) = (opcode, flags, 9, 1);
    header
}

fn with(mut header: Header, changes: &[(usize, u8)]) -> Header {
    for &(place, value) in changes {
        header[place] = value;
    }
    header
}

#[test]
fn rejects() {
    let no_tag = [(16, 0xff), (17, 0xff), (18, 0xff), (19, 0xff)];
    let table: Vec<(&str, Header, &[u8], u8, After)> = vec![
        ("an opcode that does not exist", header(0x1d, 0x80), b"", 0x05, GoesOn),
        ("a vendor's opcode", header(0x1c, 0x80), b"xyz", 0x05, GoesOn),
        ("SNACK", header(0x10, 0x80), b"", 0x03, GoesOn),
        ("a target's PDU: NOP-In", header(0x20, 0x80), b"", 0x04, Ends),
        ("a target's PDU: SCSI response", header(0x21, 0x80), b"", 0x04, Ends),
        ("a target's PDU: Reject", header(0x3f, 0x80), b"", 0x04, Ends),
        ("login in full feature phase", header(0x43, 0x87), b"InitiatorName=x\0", 0x04, Ends),
        ("a reserved attribute", header(0x01, 0x87), b"", 0x09, GoesOn),
        ("neither final nor write", header(0x01, 0x41), b"", 0x09, GoesOn),
        ("a command without tag", with(header(0x01, 0x80), &no_tag), b"", 0x09, GoesOn),
        ("data with a read", header(0x01, 0xc1), b"data", 0x09, GoesOn),
        ("data with nothing to transfer", header(0x01, 0x81), b"data", 0x09, GoesOn),
        ("bidirectional without read length", header(0x01, 0xe1), b"", 0x09, GoesOn),
        ("task management without tag", with(header(0x02, 0x81), &no_tag), b"", 0x09, GoesOn),
        ("a ping that nobody can answer", with(header(0x00, 0x80), &no_tag), b"", 0x09, GoesOn),
        ("text that is final and goes on", with(header(0x04, 0xc0), &[(20, 0xff)]), b"", 0x09, GoesOn),
        ("text with a tag of no exchange", with(header(0x04, 0x80), &[(23, 5)]), b"", 0x04, GoesOn),
        ("a logout for no known reason", header(0x06, 0x85), b"", 0x09, GoesOn),
    ];
    for (what, header, data, reason, after) in table {
        let mut raw = Raw::logged_in("");
        let answers = raw.send(header, data);
        assert_eq!(answers.len(), 1, "{what}: {answers:?}");
        assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, reason), "{what}");
        let mut offending = header;
        offending[4..8].copy_from_slice(&(data.len() as u32).to_be_bytes());
        assert_eq!(answers[0].1, offending, "{what}: the header comes back");
        match after {
            Ends => assert_eq!(raw.closed(), Some(CloseReason::ProtocolError), "{what}"),
            GoesOn => {
                assert!(raw.effects.is_empty(), "{what}: {:?}", raw.effects);
                // whatever became of its CmdSN, the session goes on with the next that is expected
                let next = u32::from_be_bytes(answers[0].0[28..32].try_into().unwrap());
                raw.send(command(NO_DATA, 77, next, 0), &[]);
                assert_eq!(raw.take_commands().len(), 1, "{what}");
            }
        }
    }
}

#[test]
fn text_that_is_not_text() {
    for (text, reason) in [(&b"no equals sign\0"[..], 0x04), (b"=\0", 0x04), (b"k=\xff\0", 0x04)] {
        let mut raw = Raw::logged_in("");
        let request = with(header(0x04, 0x80), &[(20, 0xff), (21, 0xff), (22, 0xff), (23, 0xff)]);
        let answers = raw.send(request, text);
        assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, reason));
    }
}

#[test]
fn a_tag_in_use_is_refused() {
    let mut raw = Raw::logged_in("");
    raw.send(command(NO_DATA, 5, 1, 0), &[]);
    let running = raw.take_commands().remove(0);
    let answers = raw.send(command(NO_DATA, 5, 2, 0), &[]);
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x07));
    let answers = raw.send(task_management(wire::iscsi::TaskManagementFunction::AbortTask, 5, 5), &[]);
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x07));
    assert!(raw.effects.is_empty());
    assert_eq!(raw.good(&running).len(), 1, "the first is not disturbed");
}

#[test]
fn a_gap_in_the_command_numbers_cannot_be_filled() {
    let mut raw = Raw::logged_in("");
    let answers = raw.send(command(NO_DATA, 5, 2, 0), &[]);
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x04));
    assert_eq!(raw.closed(), Some(CloseReason::ProtocolError));
}

#[test]
fn numbers_outside_the_window_are_ignored() {
    for cmd_sn in [0, 129, 1 << 31, u32::MAX] {
        let mut raw = Raw::logged_in("");
        assert!(raw.send(command(NO_DATA, 5, cmd_sn, 0), &[]).is_empty());
        assert!(raw.send(command(WRITE, 6, cmd_sn, 4), b"data").is_empty());
        assert!(raw.effects.is_empty(), "{cmd_sn}");
        raw.send(command(NO_DATA, 5, 1, 0), &[]);
        assert_eq!(raw.take_commands().len(), 1);
    }
}

#[test]
fn immediate_commands_are_bounded() {
    let mut raw = Raw::logged_in("");
    for n in 0..IMMEDIATE_COMMANDS_MAX {
        assert!(raw.send(with(command(NO_DATA, n, 1, 0), &[(0, 0x41)]), &[]).is_empty());
    }
    let answers = raw.send(with(command(NO_DATA, 999, 1, 0), &[(0, 0x41)]), &[]);
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x06));
    let commands = raw.take_commands();
    assert_eq!(commands.len(), IMMEDIATE_COMMANDS_MAX as usize);
    raw.good(&commands[0]);
    raw.send(with(command(NO_DATA, 999, 1, 0), &[(0, 0x41)]), &[]);
    assert_eq!(raw.take_commands().len(), 1);
}

#[test]
fn lies_about_lengths() {
    // a data segment longer than we declared, at any moment
    let mut raw = Raw::logged_in("");
    let mut header = command(WRITE, 5, 1, 1 << 20);
    header[4..8].copy_from_slice(&(RECEIVE_SEGMENT_BYTES_MAX as u32 + 1).to_be_bytes());
    let answers = raw.send_bytes(&header);
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x09));
    assert_eq!(raw.closed(), Some(CloseReason::ProtocolError));
    // additional headers that are not what they say
    for additional in [&[0xff, 0xff, 1, 0][..], &[0, 1, 9, 0], &[0, 0, 0, 0], &[0, 5, 2, 0]] {
        let mut raw = Raw::logged_in("");
        let mut bytes = command(READ, 5, 1, 512).to_vec();
        bytes[4] = 1;
        bytes.extend(additional);
        let answers = raw.send_bytes(&bytes);
        assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 0x09), "{additional:?}");
        assert!(raw.effects.is_empty());
    }
    // additional headers where none may stand
    let mut raw = Raw::logged_in("");
    let mut bytes = with(header_of_nop(), &[(4, 255)]).to_vec();
    bytes.resize(48 + 1020, 0);
    raw.send_bytes(&bytes);
    assert_eq!(raw.closed(), Some(CloseReason::ProtocolError));
    // half a PDU and nothing more: waits, asks for the rest, and time ends it
    let mut raw = Raw::logged_in("");
    let mut header = command(WRITE, 5, 1, 4096);
    header[6] = 0x10;
    assert!(raw.send_bytes(&header).is_empty());
    assert_eq!((raw.target.receive_bytes_wanted(), raw.effects.len()), (4096, 0));
}

fn header_of_nop() -> Header {
    header(0x40, 0x80)
}

#[test]
fn a_damaged_header_ends_the_connection() {
    let mut raw = Raw::logged_in("HeaderDigest=CRC32C");
    let header = command(NO_DATA, 5, 1, 0);
    let mut bytes = header.to_vec();
    bytes.extend(base::crc32c(&header).to_le_bytes());
    feed(&mut raw, &bytes);
    assert!(matches!(raw.target.next_effect(), Some(Effect::Command(_))));
    bytes[30] ^= 1;
    feed(&mut raw, &bytes);
    assert!(!raw.target.has_output(), "whose header it was is not known");
    assert!(matches!(raw.target.next_effect(), Some(Effect::Close(CloseReason::HeaderDigestError))));
}

#[test]
fn a_damaged_command_ends_the_connection() {
    let mut raw = Raw::logged_in("DataDigest=CRC32C");
    let mut bytes = command(WRITE, 5, 1, 4).to_vec();
    bytes[7] = 4;
    bytes.extend(b"data");
    bytes.extend((base::crc32c(b"data") ^ 0x100).to_le_bytes());
    feed(&mut raw, &bytes);
    let output = raw.target.take_output().concat();
    assert_eq!((output[0], output[2]), (0x3f, 0x02));
    assert!(matches!(raw.target.next_effect(), Some(Effect::Close(CloseReason::DataDigestError))));
}

fn feed(raw: &mut Raw, bytes: &[u8]) {
    raw.target.on_receive(&mut BytesMut::from(bytes), &Hosts, base::Nanos(1), &mut counter());
}
