//! Write data, byte by byte: R2Ts, their order and number, unsolicited data, every possible error,
//! and the budget.

use base::limits::{TRANSFER_BYTES_MAX, WRITE_BYTES_PER_SESSION_MAX};
use iscsi::initiator::Request;
use iscsi::{CommandResponse, Parameters};

use crate::harness::by_hand::{WRITE, WRITE_MORE, command, data_out, task_management, unsolicited};
use crate::harness::{Frame, Pair, Raw, frames, pattern, sense_of, word};
use wire::iscsi::TaskManagementFunction::AbortTask;

const UNEXPECTED: (u8, u8, u8) = (0x0b, 0x0c, 0x0c);
const INCORRECT: (u8, u8, u8) = (0x0b, 0x0c, 0x0d);

/// Offset, length, R2TSN of R2Ts.
fn r2ts(frames: &[Frame]) -> Vec<(u32, u32, u32)> {
    frames
        .iter()
        .map(|(header, _)| {
            assert_eq!((header[0], header[1]), (0x31, 0x80), "{header:?}");
            (word(header, 40), word(header, 44), word(header, 36))
        })
        .collect()
}

fn target_tag(frame: &Frame) -> u32 {
    word(&frame.0, 20)
}

#[test]
fn immediate_then_solicited() {
    let mut raw =
        Raw::logged_in("MaxBurstLength=1024\nMaxOutstandingR2T=2\nInitialR2T=Yes\nImmediateData=Yes");
    let data = pattern(1, 4000);
    let asked = raw.send(command(WRITE, 5, 1, 4000), &data[..500]);
    assert_eq!(r2ts(&asked), [(500, 1024, 0), (1524, 1024, 1)], "two may be outstanding");
    let [first, second] = [target_tag(&asked[0]), target_tag(&asked[1])];
    assert!(raw.send(data_out(false, 5, first, 0, 500), &data[500..1000]).is_empty());
    let asked = raw.send(data_out(true, 5, first, 1, 1000), &data[1000..1524]);
    assert_eq!(r2ts(&asked), [(2548, 1024, 2)], "one is done, one more is asked for");
    let third = target_tag(&asked[0]);
    let asked = raw.send(data_out(true, 5, second, 0, 1524), &data[1524..2548]);
    assert_eq!(r2ts(&asked), [(3572, 428, 3)]);
    let fourth = target_tag(&asked[0]);
    assert!(raw.send(data_out(true, 5, third, 0, 2548), &data[2548..3572]).is_empty());
    assert!(raw.take_commands().is_empty());
    assert!(raw.send(data_out(true, 5, fourth, 0, 3572), &data[3572..]).is_empty());
    let commands = raw.take_commands();
    assert!(commands[0].data_out.to_vec() == data);
    let answers = raw.good(&commands[0]);
    assert_eq!((answers[0].0[1], word(&answers[0].0, 36)), (0x80, 4), "four R2Ts, no residual");
}

#[test]
fn unsolicited_data_may_end_early() {
    let mut raw = Raw::logged_in("InitialR2T=No\nFirstBurstLength=2048");
    let data = pattern(2, 3000);
    assert!(raw.send(command(WRITE_MORE, 5, 1, 3000), &data[..100]).is_empty());
    assert!(raw.send(unsolicited(false, 5, 0, 100), &data[100..200]).is_empty());
    let asked = raw.send(unsolicited(true, 5, 1, 200), &data[200..300]);
    assert_eq!(r2ts(&asked), [(300, 2700, 0)]);
    raw.send(data_out(true, 5, target_tag(&asked[0]), 0, 300), &data[300..]);
    assert!(raw.take_commands()[0].data_out.to_vec() == data);
}

/// What a command may not bring along.
#[test]
fn unexpected_unsolicited_data() {
    let table = [
        ("ImmediateData=No", WRITE, 512, 100),
        ("ImmediateData=Yes\nInitialR2T=Yes", WRITE_MORE, 512, 100),
        ("ImmediateData=No\nInitialR2T=Yes", WRITE_MORE, 512, 0),
        ("FirstBurstLength=1024", WRITE, 4096, 1025),
        ("", WRITE, 512, 513),
        ("", WRITE, 0, 4),
    ];
    for (offers, flags, expected, immediate) in table {
        let mut raw = Raw::logged_in(offers);
        let answers = raw.send(command(flags, 5, 1, expected), &vec![0; immediate]);
        assert_eq!(sense_of(&answers[0]), UNEXPECTED, "{offers} {expected} {immediate}");
        assert!(raw.take_commands().is_empty(), "the engine never hears of it");
        // what follows for it is dropped, and the session goes on
        assert!(raw.send(unsolicited(true, 5, 0, immediate as u32), &[0; 50]).is_empty());
        raw.send(command(WRITE, 5, 2, 0), &[]);
        assert_eq!((raw.take_commands().len(), raw.closed()), (1, None));
    }
}

/// Data-Out that is not what comes next ends the command, not the session.
#[test]
fn data_out_of_sequence() {
    // final, tag (true: of the R2T), DataSN, offset, length; the R2T asks for 1024 from 0
    let table = [
        ("DataSN ahead", true, true, 1, 0, 1024),
        ("offset ahead", true, true, 0, 4, 1020),
        ("offset behind", true, true, 0, u32::MAX - 3, 4),
        ("longer than asked for", true, true, 0, 0, 1025),
        ("shorter than asked for", true, true, 0, 0, 1000),
        ("all, but not final", false, true, 0, 0, 1024),
        ("unknown transfer tag", true, false, 0, 0, 1024),
    ];
    for (what, is_final, right_tag, data_sn, offset, length) in table {
        let mut raw = Raw::logged_in("ImmediateData=No\nMaxBurstLength=1024");
        let asked = raw.send(command(WRITE, 5, 1, 5000), &[]);
        let tag = target_tag(&asked[0]) ^ u32::from(!right_tag) << 8;
        let answers = raw.send(data_out(is_final, 5, tag, data_sn, offset), &vec![0; length]);
        assert_eq!(sense_of(&answers[0]), INCORRECT, "{what}");
        assert!(raw.send(data_out(true, 5, tag, 0, 0), &[0; 1024]).is_empty(), "dropped: {what}");
        raw.send(command(WRITE, 5, 2, 0), &[]);
        assert_eq!((raw.take_commands().len(), raw.closed()), (1, None));
    }
}

#[test]
fn unsolicited_data_out_of_sequence() {
    // DataSN, offset, length; FirstBurstLength 1024, 5000 expected, 100 immediate
    let table = [(1, 100, 100), (0, 104, 100), (0, 100, 925), (0, 0, 100)];
    for (data_sn, offset, length) in table {
        let mut raw = Raw::logged_in("InitialR2T=No\nFirstBurstLength=1024");
        raw.send(command(WRITE_MORE, 5, 1, 5000), &[0; 100]);
        let answers = raw.send(unsolicited(true, 5, data_sn, offset), &vec![0; length]);
        assert_eq!(sense_of(&answers[0]), INCORRECT, "{data_sn} {offset} {length}");
    }
    let mut raw = Raw::logged_in("InitialR2T=No\nFirstBurstLength=1024");
    raw.send(command(WRITE, 5, 1, 5000), &[0; 100]); // said that nothing more comes
    let answers = raw.send(unsolicited(true, 5, 0, 100), &[0; 100]);
    assert_eq!(sense_of(&answers[0]), UNEXPECTED);
}

#[test]
fn data_for_nobody_is_dropped() {
    let mut raw = Raw::logged_in("InitialR2T=No");
    assert!(raw.send(unsolicited(true, 99, 0, 0), &[0; 1000]).is_empty());
    raw.send(command(WRITE, 5, 1, 100), &[0; 100]);
    assert!(raw.send(unsolicited(true, 5, 0, 100), &[0; 1000]).is_empty(), "the engine has it already");
    let commands = raw.take_commands();
    assert_eq!((commands[0].data_out.len(), raw.closed()), (100, None));
}

/// R2Ts go out only while there is room for all data of the command, first come first served.
#[test]
fn the_budget_holds_back_r2ts() {
    let mut raw = Raw::logged_in("ImmediateData=No\nMaxBurstLength=1048576\nMaxOutstandingR2T=8");
    let size = TRANSFER_BYTES_MAX as u32;
    let fit = (WRITE_BYTES_PER_SESSION_MAX / TRANSFER_BYTES_MAX) as u32;
    let mut asked = Vec::new();
    for n in 0..fit {
        asked.push(raw.send(command(WRITE, n, 1 + n, size), &[]));
    }
    assert!(asked.iter().all(|frames| frames.len() == 4));
    assert!(raw.send(command(WRITE, 100, 1 + fit, size), &[]).is_empty(), "no room");
    assert!(raw.send(command(WRITE, 101, 2 + fit, 512), &[]).is_empty(), "not before the other");
    // the first gets its data, and is answered
    let data = pattern(1, 1 << 20);
    for (part, frame) in asked[0].iter().enumerate() {
        for (sn, piece) in data.chunks(262_144).enumerate() {
            let offset = (part << 20) + sn * 262_144;
            raw.send(data_out(sn == 3, 0, target_tag(frame), sn as u32, offset as u32), piece);
        }
    }
    let commands = raw.take_commands();
    assert_eq!(commands[0].data_out.len(), TRANSFER_BYTES_MAX);
    let answers = raw.good(&commands[0]);
    let (status, asked): (Vec<Frame>, Vec<Frame>) = answers.into_iter().partition(|f| f.0[0] == 0x21);
    assert_eq!((status.len(), asked.len()), (1, 4));
    assert!(asked.iter().all(|frame| word(&frame.0, 16) == 100));
    // the next is given up before it has its data: its room goes to the small one
    let answers = raw.send(task_management(AbortTask, 200, 1), &[]);
    let opcodes: Vec<u8> = answers.iter().map(|(header, _)| header[0]).collect();
    assert_eq!(opcodes, [0x31, 0x22]);
    assert_eq!(word(&answers[0].0, 16), 101);
}

#[test]
fn a_waiting_command_that_is_aborted_leaves_the_queue() {
    let mut raw = Raw::logged_in("ImmediateData=No");
    let size = TRANSFER_BYTES_MAX as u32;
    for n in 0..4 {
        raw.send(command(WRITE, n, 1 + n, size), &[]);
    }
    // two hold the budget, two wait; abort the first that waits, then one that holds
    assert_eq!(raw.send(task_management(AbortTask, 200, 2), &[]).len(), 1);
    let answers = raw.send(task_management(AbortTask, 201, 0), &[]);
    assert_eq!(word(&answers[0].0, 16), 3, "the other that waits");
}

/// More than a command may ever carry is not asked for; the engine sees what was announced.
#[test]
fn oversized_commands_are_not_collected_whole() {
    let mut pair = Pair::session(Parameters { max_burst_bytes: 1 << 20, ..Parameters::DEFAULT });
    let mut write = Request::new(0, [0; 16]);
    write.data_out = vec![1; TRANSFER_BYTES_MAX + 4096].into();
    pair.initiator.command(write).unwrap();
    pair.run();
    let command = pair.commands.remove(0);
    assert_eq!(command.expected_out, TRANSFER_BYTES_MAX + 4096);
    assert_eq!(command.data_out.len(), TRANSFER_BYTES_MAX);
    pair.target.respond(command.task, CommandResponse { status: 2, ..Default::default() });
    assert_eq!(pair.completion().1.status, 2);
}

/// A damaged piece of write data: rejected at once, the rest awaited, then the command fails.
#[test]
fn damaged_write_data() {
    let mut raw = Raw::logged_in("ImmediateData=No\nMaxBurstLength=1024\nDataDigest=CRC32C");
    let asked = raw.send(command(WRITE, 5, 1, 2048), &[]);
    let tag = target_tag(&asked[0]);
    let with_digest = |final_: bool, sn: u32, offset: u32, digest: u32| {
        let mut bytes = data_out(final_, 5, tag, sn, offset).to_vec();
        bytes[4..8].copy_from_slice(&512u32.to_be_bytes());
        bytes.extend([7; 512]);
        bytes.extend(digest.to_le_bytes());
        bytes
    };
    let right = base::crc32c(&[7; 512]);
    // the answers carry digests of their own: look at their opcodes only
    raw.target.on_receive(
        &mut bytes::BytesMut::from(&with_digest(false, 0, 0, right ^ 1)[..]),
        &crate::harness::Hosts,
        base::Nanos(1),
        &mut || 0,
    );
    let output = raw.target.take_output().concat();
    assert_eq!((output[0], output[2]), (0x3f, 2), "data digest error");
    assert_eq!(output.len(), 48 + 48 + 4);
    raw.target.on_receive(
        &mut bytes::BytesMut::from(&with_digest(true, 1, 512, right)[..]),
        &crate::harness::Hosts,
        base::Nanos(1),
        &mut || 0,
    );
    let output = raw.target.take_output().concat();
    assert_eq!((output[0], output[3]), (0x21, 2), "no R2T for the rest, but CHECK CONDITION");
    assert_eq!((output[48 + 4] & 15, output[48 + 14], output[48 + 15]), (0x0b, 0x47, 0x05));
    assert!(raw.take_commands().is_empty());
    assert!(frames(&raw.target.take_output()).is_empty());
}
