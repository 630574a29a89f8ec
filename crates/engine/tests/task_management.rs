//! Aborting commands: an aborted command is not answered and never takes effect later.

mod common;

use api::Command;
use api::{NewBacking, NewVolume};
use base::Nanos;
use common::Lab;
use common::copy::{copy_target, extended_copy};
use common::host::{
    Host, inquiry, read_10, reserve_6, sense, task_aborted_status, test_unit_ready, write_10,
};
use iscsi::TaskAttribute;
use iscsi::initiator::Tag;
use sim::{DriveNumber, DriveOptions, World};
use wire::iscsi::{TaskManagementFunction as Function, TaskManagementResult};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";
const IMMEDIATE_MAX: usize = 4;
const TASK_ABORTED: u8 = 0x40;
const STUCK: Nanos = Nanos::from_secs(8);

/// A raw volume on a drive that can stall, as LUN 0 of alpha and LUN 1 of beta; LUN 2 of alpha is in memory.
fn array(seed: u64, shards: u16) -> (Lab, DriveNumber) {
    let world = World::new(seed, None);
    let drive = world.add_drive(DriveOptions::new("/dev/sdx", 64 << 20));
    let mut lab = Lab::in_world(world, shards, &[]);
    let volume = NewVolume {
        name: "raw".into(),
        backing: NewBacking::Raw("/dev/sdx".into()),
        size_bytes: None,
        block_bytes: 512,
        write_back: false,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    lab.create_memory_volume("memory", 1 << 20);
    lab.create_host("alpha", ALPHA);
    lab.create_host("beta", BETA);
    lab.map("raw", "alpha", 0, false);
    lab.map("raw", "beta", 1, false);
    lab.map("memory", "alpha", 2, false);
    (lab, drive)
}

fn login(lab: &mut Lab, shard: u16, name: &str, luns: &[u16]) -> Host {
    let host = Host::log_in(lab, shard, name, 1);
    for &lun in luns {
        host.settle(lab, lun);
    }
    host
}

fn filled(byte: u8) -> Vec<u8> {
    vec![byte; 4096]
}

/// Lets some time pass, less than a stalled drive needs.
fn a_while(lab: &mut Lab) {
    lab.pass(Nanos::from_secs(1));
}

#[test]
fn an_aborted_write_is_not_answered_and_does_not_land_after_its_abort_is() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let (mut lab, drive) = array(seed, shards);
        let alpha = login(&mut lab, 0, ALPHA, &[0, 2]);
        lab.simulation.world.stick(drive, STUCK);
        let stuck = alpha.send(&mut lab, write_10(0, 8, &filled(1)));
        let beside = alpha.send(&mut lab, write_10(0, 16, &filled(2)));
        a_while(&mut lab);
        let abort = alpha.manage(&mut lab, Function::AbortTask, 0, Some(stuck));
        a_while(&mut lab);
        assert_eq!(alpha.result(abort), None, "the write may still land");
        alpha.write(&mut lab, 2, 0, &filled(9));
        assert_eq!(alpha.wait_result(&mut lab, abort), TaskManagementResult::Complete);
        alpha.write(&mut lab, 0, 8, &filled(3));
        lab.pass(STUCK);
        assert!(alpha.completion(stuck).is_none(), "aborted");
        assert_eq!(alpha.completion(beside).unwrap().status, 0, "not aborted");
        assert_eq!(alpha.read(&mut lab, 0, 8, 8), filled(3));
        assert_eq!(alpha.read(&mut lab, 0, 16, 8), filled(2));
    }
}

#[test]
fn task_sets_are_of_one_session_and_one_lun() {
    for function in [Function::AbortTaskSet, Function::ClearTaskSet] {
        let (mut lab, drive) = array(3, 2);
        let alpha = login(&mut lab, 0, ALPHA, &[0, 2]);
        let beta = login(&mut lab, 1, BETA, &[1]);
        lab.simulation.world.stick(drive, STUCK);
        let mine: Vec<Tag> = (0..20).map(|n| alpha.send(&mut lab, write_10(0, n * 8, &filled(1)))).collect();
        let theirs = beta.send(&mut lab, write_10(1, 800, &filled(2)));
        a_while(&mut lab);
        let abort = alpha.manage(&mut lab, function, 0, None);
        assert_eq!(alpha.wait_result(&mut lab, abort), TaskManagementResult::Complete);
        lab.pass(STUCK);
        assert!(mine.iter().all(|&tag| alpha.completion(tag).is_none()));
        assert_eq!(beta.completion(theirs).unwrap().status, 0);
        assert!(beta.settle(&mut lab, 1).is_empty(), "beta is not told of what does not concern it");
        let nowhere = alpha.manage(&mut lab, function, 77, None);
        assert_eq!(alpha.wait_result(&mut lab, nowhere), TaskManagementResult::LunDoesNotExist);
    }
}

#[test]
fn resets_reach_every_session_of_the_volume() {
    let cases = [
        (Function::LogicalUnitReset, vec![(0x29, 0x03)], (6, 0x29, 0x03)),
        (Function::TargetWarmReset, vec![(0x29, 0x03)], (6, 0x29, 0x03)),
    ];
    for (seed, (function, own, other)) in cases.into_iter().enumerate() {
        let (mut lab, drive) = array(10 + seed as u64, 3);
        let alpha = login(&mut lab, 1, ALPHA, &[0, 2]);
        let beta = login(&mut lab, 2, BETA, &[1]);
        lab.simulation.world.stick(drive, STUCK);
        let mine = alpha.send(&mut lab, write_10(0, 0, &filled(1)));
        let theirs = beta.send(&mut lab, write_10(1, 800, &filled(2)));
        a_while(&mut lab);
        let reset = alpha.manage(&mut lab, function, 0, None);
        a_while(&mut lab);
        assert_eq!(alpha.result(reset), None, "{function:?}: both writes may still land");
        // the abort is not visible before: the aborted write must not overtake the write that replaces it
        let early = beta.send(&mut lab, test_unit_ready(1));
        a_while(&mut lab);
        assert!(beta.completion(early).is_none(), "{function:?}: its write may still land");
        assert_eq!(alpha.wait_result(&mut lab, reset), TaskManagementResult::Complete);
        lab.pass(STUCK);
        assert!(alpha.completion(mine).is_none(), "{function:?}");
        let told = beta.completion(theirs).expect("an answer: else it waits until its command times out");
        assert_eq!((told.status, told.sense.len()), (TASK_ABORTED, 0), "{function:?}");
        assert_eq!(alpha.settle(&mut lab, 0), own, "{function:?}");
        assert_eq!(sense(&beta.completion(early).unwrap()), other, "{function:?}");
        assert!(beta.settle(&mut lab, 1).is_empty(), "{function:?}");
        assert!(!alpha.is_closed() && !beta.is_closed());
    }
}

/// With TAS 0 nothing is answered; the unit attention of the reset covers it.
#[test]
fn whoever_wants_no_task_aborted_gets_none() {
    let (mut lab, drive) = array(15, 2);
    let alpha = login(&mut lab, 0, ALPHA, &[0]);
    let beta = login(&mut lab, 1, BETA, &[1]);
    assert_eq!(beta.run(&mut lab, task_aborted_status(1, false)).status, 0);
    lab.simulation.world.stick(drive, STUCK);
    let theirs: Vec<Tag> = (0..3).map(|n| beta.send(&mut lab, write_10(1, 8 * n, &filled(2)))).collect();
    a_while(&mut lab);
    let reset = alpha.manage(&mut lab, Function::LogicalUnitReset, 0, None);
    assert_eq!(alpha.wait_result(&mut lab, reset), TaskManagementResult::Complete);
    lab.pass(STUCK);
    assert!(theirs.iter().all(|&tag| beta.completion(tag).is_none()));
    assert_eq!(beta.settle(&mut lab, 1), [(0x29, 0x03)]);
    // the reset has turned it on again
    lab.pass(Nanos(3 * STUCK.0));
    lab.simulation.world.stick(drive, STUCK);
    let again = beta.send(&mut lab, write_10(1, 0, &filled(2)));
    a_while(&mut lab);
    let reset = alpha.manage(&mut lab, Function::LogicalUnitReset, 0, None);
    assert_eq!(alpha.wait_result(&mut lab, reset), TaskManagementResult::Complete);
    // on another connection, which may be slower
    a_while(&mut lab);
    assert_eq!(beta.completion(again).unwrap().status, TASK_ABORTED);
}

/// Another host's reset ends a write without an answer. While the write is running, it can be aborted: "task does not
/// exist" would mean that it cannot take effect any more.
#[test]
fn aborting_what_another_has_aborted_waits_for_its_end() {
    let (mut lab, drive) = array(20, 2);
    let alpha = login(&mut lab, 0, ALPHA, &[0]);
    let beta = login(&mut lab, 1, BETA, &[1]);
    assert_eq!(beta.run(&mut lab, task_aborted_status(1, false)).status, 0);
    lab.simulation.world.stick(drive, STUCK);
    let write = beta.send(&mut lab, write_10(1, 0, &filled(2)));
    a_while(&mut lab);
    let reset = alpha.manage(&mut lab, Function::LogicalUnitReset, 0, None);
    a_while(&mut lab);
    let abort = beta.manage(&mut lab, Function::AbortTask, 1, Some(write));
    a_while(&mut lab);
    assert_eq!((alpha.result(reset), beta.result(abort)), (None, None), "it is at work");
    assert_eq!(beta.wait_result(&mut lab, abort), TaskManagementResult::Complete);
    assert_eq!(beta.settle(&mut lab, 1), [(0x29, 0x03)]);
    beta.write(&mut lab, 1, 0, &filled(6));
    lab.pass(STUCK);
    assert_eq!(beta.read(&mut lab, 1, 0, 8), filled(6), "it has not landed since");
}

/// Another host resets while the array waits for the data of writes: they are in the task set, too.
#[test]
fn writes_that_wait_for_their_data_are_aborted_with_the_rest() {
    for (seed, tas) in [(16, true), (17, false)] {
        let (mut lab, drive) = array(seed, 2);
        let alpha = login(&mut lab, 0, ALPHA, &[0]);
        let beta = login(&mut lab, 1, BETA, &[1]);
        assert_eq!(beta.run(&mut lab, task_aborted_status(1, tas)).status, 0);
        lab.simulation.world.stick(drive, STUCK);
        // as many as fit the session's room wait at the drive, the rest wait for room
        let large = vec![5; 1 << 20];
        let many: Vec<Tag> = (0..20).map(|_| beta.send(&mut lab, write_10(1, 0, &large))).collect();
        a_while(&mut lab);
        let reset = alpha.manage(&mut lab, Function::LogicalUnitReset, 0, None);
        a_while(&mut lab);
        let ended = |beta: &Host| many.iter().filter(|&&tag| beta.completion(tag).is_some()).count();
        let early = ended(&beta);
        assert_eq!((early > 0, early < many.len()), (tas, true), "{early} at once");
        assert_eq!(alpha.wait_result(&mut lab, reset), TaskManagementResult::Complete);
        lab.pass(STUCK);
        assert_eq!(ended(&beta), if tas { many.len() } else { 0 });
        assert!(many.iter().filter_map(|&tag| beta.completion(tag)).all(|done| done.status == TASK_ABORTED));
        assert_eq!(beta.settle(&mut lab, 1), [(0x29, 0x03)]);
        beta.write(&mut lab, 1, 0, &filled(6));
        lab.pass(STUCK);
        assert_eq!(beta.read(&mut lab, 1, 0, 8), filled(6), "none has landed since");
    }
}

/// A host with read-only access ends neither the writes nor the reservations of others.
#[test]
fn a_reset_through_a_read_only_mapping_ends_its_own_commands_alone() {
    for (seed, function) in [(18, Function::LogicalUnitReset), (19, Function::TargetWarmReset)] {
        let (mut lab, drive) = array(seed, 2);
        lab.unmap("raw", "beta");
        lab.map("raw", "beta", 1, true);
        let alpha = login(&mut lab, 0, ALPHA, &[0]);
        let beta = login(&mut lab, 1, BETA, &[1]);
        assert_eq!(alpha.run(&mut lab, reserve_6(0)).status, 0);
        lab.simulation.world.stick(drive, STUCK);
        let written = alpha.send(&mut lab, write_10(0, 0, &filled(1)));
        let waits = beta.send(&mut lab, inquiry(1));
        a_while(&mut lab);
        let reset = beta.manage(&mut lab, function, 1, None);
        assert_eq!(beta.wait_result(&mut lab, reset), TaskManagementResult::Complete);
        lab.pass(STUCK);
        assert_eq!(alpha.completion(written).unwrap().status, 0, "{function:?}");
        assert_eq!(beta.completion(waits).unwrap().status, 0);
        assert_eq!(
            alpha.settle(&mut lab, 0),
            [],
            "{function:?}: alpha is not told of what does not concern it"
        );
        let reserved = beta.run(&mut lab, test_unit_ready(1));
        assert_eq!(sense(&reserved), (6, 0x29, 0x03), "{function:?}: it has reset what is its own");
        assert_eq!(
            beta.run(&mut lab, test_unit_ready(1)).status,
            0x18,
            "{function:?}: alpha's reservation stands"
        );
    }
}

/// A copy is sent to the volume in memory, and reads the raw one, which is reset.
#[test]
fn a_copy_that_a_reset_elsewhere_meets_is_answered() {
    for (seed, others) in [(30, true), (31, false)] {
        let (mut lab, drive) = array(seed, 3);
        let alpha = login(&mut lab, 1, ALPHA, &[0, 2]);
        let beta = login(&mut lab, 2, BETA, &[1]);
        let targets = [0, 2].map(|lun| copy_target(&mut lab, &alpha, lun));
        lab.simulation.world.stick(drive, STUCK);
        let copy = alpha.send(&mut lab, extended_copy(2, &targets, (0, 8), (1, 0), 64));
        a_while(&mut lab);
        let (host, lun) = if others { (&beta, 1) } else { (&alpha, 0) };
        let reset = host.manage(&mut lab, Function::LogicalUnitReset, lun, None);
        a_while(&mut lab);
        assert!(alpha.completion(copy).is_none() && host.result(reset).is_none(), "it still reads");
        assert_eq!(host.wait_result(&mut lab, reset), TaskManagementResult::Complete);
        lab.pass(STUCK);
        let answer = alpha.completion(copy).expect("an answer: nothing else tells that it is over");
        assert_eq!((answer.status, sense(&answer)), (2, (0xA, 0x0D, 0x02)), "COPY ABORTED");
        assert_eq!(alpha.settle(&mut lab, 2), [], "its own unit has not been reset");
        assert_eq!(alpha.settle(&mut lab, 0).len(), 1);
        // and it can be sent again
        let again = alpha.run(&mut lab, extended_copy(2, &targets, (0, 8), (1, 0), 64));
        assert_eq!(again.status, 0);
    }
}

#[test]
fn a_cold_reset_ends_the_sessions_of_its_host_alone() {
    let (mut lab, _) = array(20, 2);
    let alpha = login(&mut lab, 0, ALPHA, &[0]);
    let beta = login(&mut lab, 1, BETA, &[1]);
    let reset = alpha.manage(&mut lab, Function::TargetColdReset, 0, None);
    assert_eq!(alpha.wait_result(&mut lab, reset), TaskManagementResult::Complete);
    alpha.wait_closed(&mut lab);
    assert_eq!(beta.settle(&mut lab, 1), [(0x29, 0x03)]);
}

#[test]
fn a_session_that_is_replaced_leaves_no_write_behind() {
    let (mut lab, drive) = array(30, 3);
    let first = login(&mut lab, 1, ALPHA, &[0]);
    lab.simulation.world.stick(drive, STUCK);
    first.send(&mut lab, write_10(0, 8, &filled(1)));
    a_while(&mut lab);
    let began = lab.simulation.world.now();
    let second = Host::try_log_in(&mut lab, 2, ALPHA, 1);
    assert!(second.is_logged_in(), "{:?}", second.events());
    assert!(lab.simulation.world.now() > began + Nanos::from_secs(5), "it had to wait for the old write");
    second.settle(&mut lab, 0);
    second.write(&mut lab, 0, 8, &filled(2));
    lab.pass(STUCK);
    assert_eq!(second.read(&mut lab, 0, 8, 8), filled(2));
}

#[test]
fn an_unmapped_lun_answers_what_it_has_begun_before_the_command_is_answered() {
    let (mut lab, drive) = array(40, 2);
    let alpha = login(&mut lab, 1, ALPHA, &[0]);
    lab.simulation.world.stick(drive, STUCK);
    let stuck = alpha.send(&mut lab, write_10(0, 8, &filled(1)));
    a_while(&mut lab);
    lab.unmap("raw", "alpha");
    lab.pass(Nanos::from_millis(10));
    assert_eq!(alpha.completion(stuck).unwrap().status, 0);
    let after = alpha.run(&mut lab, read_10(0, 8, 8));
    assert_eq!(sense(&after), (5, 0x25, 0));
}

/// Hosts of other products dropped their sessions after refused aborts: here none is refused, and none hangs.
#[test]
fn an_abort_storm_on_a_stalling_drive_is_weathered() {
    for seed in 50..58 {
        let (mut lab, drive) = array(seed, 3);
        let hosts = [login(&mut lab, 0, ALPHA, &[0]), login(&mut lab, 2, BETA, &[1])];
        let mut random = lab.simulation.world.fork_prng();
        let mut pending = Vec::new();
        let mut aborted = 0;
        for _ in 0..300 {
            let which = random.between(0, 1) as usize;
            let (host, lun) = (&hosts[which], which as u16);
            // more immediate requests than the target takes would be rejected
            let unanswered = |which: usize| {
                pending.iter().filter(|(of, tag)| *of == which && hosts[which].result(*tag).is_none()).count()
            };
            lab.wait(|| unanswered(which) < IMMEDIATE_MAX);
            match random.between(0, 9) {
                0 => lab.simulation.world.stick(drive, Nanos::from_millis(random.between(1, 2000))),
                1 => pending.push((which, host.manage(&mut lab, Function::AbortTaskSet, lun, None))),
                2 if random.chance(200) => {
                    pending.push((which, host.manage(&mut lab, Function::LogicalUnitReset, lun, None)));
                }
                _ => {
                    let lba = random.between(0, 100) as u32;
                    let tag = host.send(&mut lab, write_10(lun, lba, &filled(random.between(0, 255) as u8)));
                    if random.chance(300) {
                        lab.pass(Nanos::from_micros(random.between(0, 3000)));
                        pending.push((which, host.manage(&mut lab, Function::AbortTask, lun, Some(tag))));
                    }
                }
            }
        }
        for (which, tag) in pending {
            let result = hosts[which].wait_result(&mut lab, tag);
            let fine = [TaskManagementResult::Complete, TaskManagementResult::TaskDoesNotExist];
            assert!(fine.contains(&result), "seed {seed}: {result:?}");
            aborted += u32::from(result == TaskManagementResult::Complete);
        }
        assert!(aborted > 10, "seed {seed}: {aborted} requests had something to abort");
        for (lun, host) in hosts.iter().enumerate() {
            assert!(!host.is_closed(), "seed {seed}: {:?}", host.events());
            host.settle(&mut lab, lun as u16);
            host.write(&mut lab, lun as u16, 0, &filled(7));
            assert_eq!(host.read(&mut lab, lun as u16, 0, 8), filled(7));
        }
    }
}

#[test]
fn ordered_commands_wait_for_older_ones_and_hold_up_later_ones() {
    for (seed, shards) in [(60, 1), (61, 2)] {
        let (mut lab, drive) = array(seed, shards);
        let alpha = login(&mut lab, 0, ALPHA, &[0, 2]);
        lab.simulation.world.stick(drive, STUCK);
        let with = |attribute, mut request: iscsi::initiator::Request| {
            request.attribute = attribute;
            request
        };
        let stuck = alpha.send(&mut lab, write_10(0, 8, &filled(1)));
        let ordered = alpha.send(&mut lab, with(TaskAttribute::Ordered, test_unit_ready(0)));
        let aborted = alpha.send(&mut lab, with(TaskAttribute::Ordered, write_10(0, 8, &filled(7))));
        let later = alpha.send(&mut lab, write_10(0, 8, &filled(2)));
        let urgent = alpha.send(&mut lab, with(TaskAttribute::HeadOfQueue, inquiry(0)));
        let elsewhere = alpha.send(&mut lab, with(TaskAttribute::Ordered, test_unit_ready(2)));
        let aca = alpha.run(&mut lab, with(TaskAttribute::Aca, test_unit_ready(0)));
        assert_eq!(sense(&aca), (5, 0x49, 0));
        a_while(&mut lab);
        assert_eq!(alpha.completion(urgent).unwrap().status, 0);
        assert_eq!(alpha.completion(elsewhere).unwrap().status, 0, "another unit has another task set");
        assert!([stuck, ordered, aborted, later].iter().all(|&tag| alpha.completion(tag).is_none()));
        // a waiting command can be aborted at once
        let abort = alpha.manage(&mut lab, Function::AbortTask, 0, Some(aborted));
        assert_eq!(alpha.wait_result(&mut lab, abort), TaskManagementResult::Complete);
        assert!(alpha.completion(stuck).is_none(), "nothing had to be waited for");
        lab.pass(STUCK);
        for tag in [stuck, ordered, later] {
            assert_eq!(alpha.completion(tag).unwrap().status, 0);
        }
        assert!(alpha.completion(aborted).is_none());
        assert_eq!(alpha.read(&mut lab, 0, 8, 8), filled(2));
    }
}
