//! Any negotiated parameters, any mix of commands, any chunking of the stream, any order of answers: the engine
//! receives what the initiator sends, and the reverse.

use bytes::Bytes;
use iscsi::initiator::{Event, InitiatorParams, Request, Tag};
use iscsi::{Command, CommandResponse, Parameters};
use proptest::prelude::*;
use wire::iscsi::Residual;

use crate::harness::{HOST, Pair, TARGET, pattern, pieces};

fn any_parameters() -> impl Strategy<Value = Parameters> {
    let segment = || prop_oneof![512u32..5000, Just(8192u32), 512u32..262_145];
    (any::<[bool; 4]>(), segment(), segment(), segment(), 1u32..10).prop_map(
        |([header_digest, data_digest, initial_r2t, immediate_data], receive, max, first, r2ts)| Parameters {
            header_digest,
            data_digest,
            initial_r2t,
            immediate_data,
            receive_segment_bytes: receive,
            max_burst_bytes: max,
            first_burst_bytes: first.min(max),
            max_outstanding_r2t: r2ts,
            ..Parameters::DEFAULT
        },
    )
}

/// What a command moves; `presented` is what the device has to say.
#[derive(Clone, Copy, Debug)]
struct Job {
    out: usize,
    expected_in: usize,
    presented: usize,
    check_condition: bool,
    long_cdb: bool,
}

fn any_job() -> impl Strategy<Value = Job> {
    let length =
        || prop_oneof![3 => Just(0usize), 2 => 1usize..3000, 2 => 1usize..100_000, 1 => 1usize..1_500_000];
    (length(), length(), length(), any::<u8>()).prop_map(|(out, expected_in, presented, dice)| Job {
        out,
        expected_in,
        presented: if dice & 1 == 0 { expected_in } else { presented },
        check_condition: dice & 14 == 0,
        long_cdb: dice & 48 == 0,
    })
}

fn request(index: usize, job: &Job) -> Request {
    let mut cdb = [0; 16];
    cdb[..8].copy_from_slice(&(index as u64).to_be_bytes());
    let mut request = Request::new(index as u64, cdb);
    for piece in pieces(&pattern(index, job.out), 70_001) {
        request.data_out.push(piece);
    }
    request.expected_in = job.expected_in as u32;
    if job.long_cdb {
        request.cdb_extra = Bytes::from(vec![index as u8; 1 + index % 40]);
    }
    request
}

fn check_command(command: &Command, jobs: &[Job]) -> CommandResponse {
    let index = command.lun as usize;
    let job = &jobs[index];
    assert_eq!(command.cdb[..8], (index as u64).to_be_bytes());
    assert_eq!(command.cdb_extra.len(), if job.long_cdb { 1 + index % 40 } else { 0 });
    assert!(command.cdb_extra.iter().all(|&byte| byte == index as u8));
    assert_eq!((command.expected_out, command.expected_in), (job.out, job.expected_in));
    assert!(command.data_out.to_vec() == pattern(index, job.out), "write data of {job:?}");
    CommandResponse {
        status: if job.check_condition { 2 } else { 0 },
        sense: job.check_condition.then(|| Bytes::from(vec![0x70, 0, 5, index as u8])),
        data_in: pieces(&pattern(!index, job.presented), 30_011).into(),
        data_out_wanted: None,
    }
}

fn check_completion(index: usize, completion: &iscsi::initiator::Completion, job: &Job) {
    let length = job.presented.min(job.expected_in);
    let expected = &pattern(!index, job.presented)[..length];
    assert!(completion.data_in.to_vec() == expected, "read data of {job:?}");
    assert_eq!(completion.status, if job.check_condition { 2 } else { 0 });
    assert_eq!(completion.sense.len(), if job.check_condition { 4 } else { 0 });
    let of_read = Residual::new(job.expected_in as u64, job.presented as u64);
    match (job.out > 0, job.expected_in > 0) {
        (true, true) => {
            assert_eq!((completion.residual, completion.read_residual), (Residual::None, of_read))
        }
        (true, false) => assert_eq!(completion.residual, Residual::None),
        (false, _) => assert_eq!(completion.residual, of_read),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn data_arrives(
        wanted in any_parameters(),
        jobs in proptest::collection::vec(any_job(), 1..24),
        chunks in proptest::collection::vec(prop_oneof![1usize..100, 1usize..200_000], 1..30),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 1..10),
        cmd_sn in prop_oneof![Just(1u32), Just(u32::MAX - 3)],
    ) {
        let params = InitiatorParams { wanted, cmd_sn, ..InitiatorParams::new(HOST, Some(TARGET)) };
        let mut pair = Pair::new(params);
        let (mut sent, mut tags, mut done) = (0, Vec::<Tag>::new(), 0);
        let (mut chunk, mut pick, mut idle) = (chunks.iter().cycle(), order.iter().cycle(), 0);
        while done < jobs.len() {
            if sent < jobs.len() && pair.initiator.can_send() {
                tags.push(pair.initiator.command(request(sent, &jobs[sent])).unwrap());
                sent += 1;
            }
            let moved = pair.step(*chunk.next().unwrap());
            if !moved && !pair.commands.is_empty() {
                let command = pair.commands.swap_remove(pick.next().unwrap().index(pair.commands.len()));
                let response = check_command(&command, &jobs);
                pair.target.respond(command.task, response);
            }
            idle = if moved || !pair.commands.is_empty() { 0 } else { idle + 1 };
            prop_assert!(idle < 10, "nothing moves: {} of {} done, {:?}", done, jobs.len(), pair.closed);
            for event in std::mem::take(&mut pair.events) {
                match event {
                    Event::LoggedIn { parameters, .. } => check_agreement(&parameters, &wanted),
                    Event::Completed(tag, completion) => {
                        let index = tags.iter().rposition(|&other| other == tag).unwrap();
                        check_completion(index, &completion, &jobs[index]);
                        done += 1;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
        prop_assert_eq!(pair.initiator.outstanding(), 0);
        pair.initiator.logout();
        pair.run();
        prop_assert_eq!(pair.closed, Some(iscsi::CloseReason::LoggedOut));
    }
}

fn check_agreement(agreed: &Parameters, wanted: &Parameters) {
    assert_eq!(agreed.header_digest, wanted.header_digest);
    assert_eq!(agreed.data_digest, wanted.data_digest);
    assert_eq!(agreed.initial_r2t, wanted.initial_r2t);
    assert_eq!(agreed.immediate_data, wanted.immediate_data);
    assert_eq!(agreed.max_burst_bytes, wanted.max_burst_bytes);
    assert_eq!(agreed.first_burst_bytes, wanted.first_burst_bytes.min(262_144));
    assert_eq!(agreed.max_outstanding_r2t, wanted.max_outstanding_r2t.min(8));
}

/// What open-iscsi offers: a write of 256 KiB comes whole, and waits for nothing.
#[test]
fn a_write_of_the_usual_first_burst_takes_no_further_round_trip() {
    let wanted = Parameters {
        initial_r2t: false,
        first_burst_bytes: 262_144,
        max_burst_bytes: 16_776_192,
        receive_segment_bytes: 262_144,
        ..Parameters::DEFAULT
    };
    for (length, whole) in [(65_536, true), (262_144, true), (262_656, false)] {
        let mut pair = Pair::session(wanted);
        let mut write = Request::new(0, [0; 16]);
        write.data_out = vec![6; length].into();
        pair.initiator.command(write).unwrap();
        let mut input = bytes::BytesMut::from(&pair.initiator.take_output().concat()[..]);
        pair.target.on_receive(&mut input, &crate::harness::Hosts, base::Nanos(1), &mut || 0);
        pair.collect_effects();
        assert_eq!((pair.commands.len() == 1, pair.target.has_output()), (whole, !whole), "{length}");
    }
}

/// Payload is borrowed, not copied: what leaves is the memory that the engine gave, and what the engine
/// gets is the memory that was received into.
#[test]
fn payload_is_not_copied() {
    let mut pair = Pair::session(Parameters { first_burst_bytes: 65_536, ..Parameters::DEFAULT });
    let mut read = Request::new(0, [0; 16]);
    read.expected_in = 4096;
    pair.initiator.command(read).unwrap();
    pair.run();
    let command = pair.commands.remove(0);
    let block = Bytes::from(vec![5; 4096]);
    let data_in = block.clone().into();
    pair.target.respond(command.task, CommandResponse { data_in, ..Default::default() });
    let output = pair.target.take_output();
    assert!(output.iter().any(|piece| piece.as_ptr() == block.as_ptr() && piece.len() == 4096));

    let mut write = Request::new(0, [0; 16]);
    write.data_out = vec![6; 4096].into();
    pair.initiator.command(write).unwrap();
    let mut input = bytes::BytesMut::from(&pair.initiator.take_output().concat()[..]);
    let received = input.as_ptr() as usize;
    pair.target.on_receive(&mut input, &crate::harness::Hosts, base::Nanos(1), &mut || 0);
    pair.collect_effects();
    let piece = &pair.commands[0].data_out.pieces()[0];
    assert_eq!(piece.as_ptr() as usize, received + 48);
}
