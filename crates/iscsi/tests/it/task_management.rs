//! Task management: an aborted command gets no answer, in whatever state it was.

use base::limits::IMMEDIATE_COMMANDS_MAX;
use iscsi::initiator::{Event, Request};
use iscsi::{CommandResponse, Parameters, TaskManagementFunction, TaskManagementResponse};
use wire::iscsi::{TaskManagementFunction as Function, TaskManagementResult};

use crate::harness::by_hand::{NO_DATA, WRITE, command, data_out, task_management};
use crate::harness::{Pair, Raw, frames, word};

fn result(answers: &[(wire::iscsi::Header, Vec<u8>)]) -> u8 {
    assert_eq!((answers.len(), answers[0].0[0]), (1, 0x22), "{answers:?}");
    answers[0].0[2]
}

#[test]
fn a_running_command_is_aborted_by_the_engine() {
    let mut pair = Pair::session(Parameters::DEFAULT);
    let command = pair.initiator.command(Request::new(3 << 48, [0; 16])).unwrap();
    pair.run();
    let abort = pair.initiator.task_management(Function::AbortTask, 3 << 48, Some(command));
    pair.run();
    let request = pair.task_management.remove(0);
    let running = pair.commands.remove(0);
    assert_eq!((request.function, request.lun), (TaskManagementFunction::AbortTask, 3 << 48));
    assert_eq!(request.referenced, Some(running.task));
    assert!(pair.events.is_empty(), "nothing is answered yet");
    pair.target.respond_task_management(request.task, TaskManagementResponse::Complete);
    pair.target.respond(running.task, CommandResponse::default()); // too late
    pair.run();
    match &pair.events[..] {
        [Event::TaskManagement { tag, result: TaskManagementResult::Complete, ended }] => {
            assert_eq!((tag, &ended[..]), (&abort, &[command][..]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(pair.initiator.outstanding(), 0);
}

#[test]
fn a_command_answered_before_its_abort_stays_answered() {
    let mut raw = Raw::logged_in("");
    raw.send(command(NO_DATA, 5, 1, 0), &[]);
    let running = raw.take_commands().remove(0);
    assert!(raw.send(task_management(Function::AbortTask, 6, 5), &[]).is_empty());
    assert_eq!(raw.good(&running).len(), 1);
    let Some(iscsi::Effect::TaskManagement(request)) = raw.effects.pop() else { panic!() };
    raw.target.respond_task_management(request.task, TaskManagementResponse::TaskDoesNotExist);
    assert_eq!(result(&frames(&raw.target.take_output())), 1);
}

/// Functions that need no engine: the result's code.
#[test]
fn answered_at_once() {
    let mut raw = Raw::logged_in("ImmediateData=No");
    let table = [(Function::AbortTask, 99, 1), (Function::TaskReassign, 99, 4)];
    for (function, referenced, code) in table {
        assert_eq!(result(&raw.send(task_management(function, 6, referenced), &[])), code, "{function:?}");
    }
    let mut unknown = task_management(Function::AbortTask, 6, 0);
    unknown[1] = 0x80 | 12;
    assert_eq!(result(&raw.send(unknown, &[])), 5);
    assert_eq!(raw.send(command(WRITE, 5, 1, 512), &[]).len(), 1, "an R2T");
    assert_eq!(result(&raw.send(task_management(Function::AbortTask, 6, 5), &[])), 0);
    assert_eq!(result(&raw.send(task_management(Function::AbortTask, 6, 5), &[])), 1, "it is gone");
    assert!(raw.effects.is_empty(), "the engine has heard of nothing");
}

/// Write data that arrives between a reset and its answer must not reach the engine: it would be written
/// after the reset.
#[test]
fn no_ghost_of_a_write_after_a_reset() {
    let mut raw = Raw::logged_in("ImmediateData=No");
    let asked = raw.send(command(WRITE, 3, 1, 512), &[]);
    let target_tag = word(&asked[0].0, 20);
    raw.send(task_management(Function::LogicalUnitReset, 10, u32::MAX), &[]);
    assert_eq!(raw.effects.len(), 1);
    assert!(raw.send(data_out(true, 3, target_tag, 0, 0), &[1; 512]).is_empty());
    assert!(raw.take_commands().is_empty());
}

/// A reset ends everything of its LUN that came before it, also what still collected data, and nothing
/// that came after.
#[test]
fn a_reset_ends_what_came_before() {
    let reset_table = [
        (Function::LogicalUnitReset, TaskManagementFunction::LogicalUnitReset, 1),
        (Function::AbortTaskSet, TaskManagementFunction::AbortTaskSet, 1),
        (Function::ClearTaskSet, TaskManagementFunction::ClearTaskSet, 1),
        (Function::TargetWarmReset, TaskManagementFunction::TargetWarmReset, 2),
        (Function::TargetColdReset, TaskManagementFunction::TargetColdReset, 2),
        (Function::ClearAca, TaskManagementFunction::ClearAca, 0),
    ];
    for (function, seen, ended) in reset_table {
        let mut raw = Raw::logged_in("ImmediateData=No");
        let other_lun = |mut header: wire::iscsi::Header| {
            header[9] = 1;
            header
        };
        raw.send(command(NO_DATA, 1, 1, 0), &[]);
        raw.send(other_lun(command(NO_DATA, 2, 2, 0)), &[]);
        let mut commands = raw.take_commands();
        raw.send(command(WRITE, 3, 3, 512), &[]);
        assert!(raw.send(task_management(function, 10, u32::MAX), &[]).is_empty());
        let Some(iscsi::Effect::TaskManagement(request)) = raw.effects.pop() else { panic!() };
        assert_eq!((request.function, request.referenced), (seen, None));
        raw.send(command(NO_DATA, 4, 4, 0), &[]);
        commands.extend(raw.take_commands());
        raw.target.respond_task_management(request.task, TaskManagementResponse::Complete);
        assert_eq!(result(&frames(&raw.target.take_output())), 0);
        let answered: Vec<usize> = commands.iter().map(|command| raw.good(command).len()).collect();
        let expected = match ended {
            0 => [1, 1, 1],
            1 => [0, 1, 1],
            _ => [0, 0, 1],
        };
        assert_eq!(answered, expected, "{function:?}");
        let aborted = raw.send(task_management(Function::AbortTask, 11, 3), &[]);
        assert_eq!(result(&aborted), if ended == 0 { 0 } else { 1 }, "the write that collected data");
    }
}

#[test]
fn a_function_that_fails_ends_nothing() {
    for (answer, code) in [
        (TaskManagementResponse::LunDoesNotExist, 2),
        (TaskManagementResponse::NotSupported, 5),
        (TaskManagementResponse::AuthorizationFailed, 6),
        (TaskManagementResponse::Rejected, 255),
    ] {
        let mut raw = Raw::logged_in("");
        raw.send(command(NO_DATA, 1, 1, 0), &[]);
        let running = raw.take_commands().remove(0);
        raw.send(task_management(Function::LogicalUnitReset, 10, u32::MAX), &[]);
        let Some(iscsi::Effect::TaskManagement(request)) = raw.effects.pop() else { panic!() };
        raw.target.respond_task_management(request.task, answer);
        assert_eq!(result(&frames(&raw.target.take_output())), code);
        raw.target.respond_task_management(request.task, answer);
        assert!(!raw.target.has_output(), "answered already");
        assert_eq!(raw.good(&running).len(), 1);
    }
}

/// A storm of aborts against a stalled engine is bounded, and is answered in the end.
#[test]
fn an_abort_storm_is_bounded() {
    let mut raw = Raw::logged_in("");
    raw.send(command(NO_DATA, 1, 1, 0), &[]);
    raw.effects.clear();
    for n in 0..IMMEDIATE_COMMANDS_MAX {
        assert!(raw.send(task_management(Function::AbortTask, 100 + n, 1), &[]).is_empty());
    }
    let answers = raw.send(task_management(Function::AbortTask, 999, 1), &[]);
    assert_eq!((answers[0].0[0], answers[0].0[2]), (0x3f, 6), "too many immediate commands");
    let requests = std::mem::take(&mut raw.effects);
    assert_eq!(requests.len(), IMMEDIATE_COMMANDS_MAX as usize);
    for effect in requests {
        let iscsi::Effect::TaskManagement(request) = effect else { panic!() };
        raw.target.respond_task_management(request.task, TaskManagementResponse::Complete);
        assert_eq!(result(&frames(&raw.target.take_output())), 0);
    }
    assert_eq!(result(&raw.send(task_management(Function::AbortTask, 999, 1), &[])), 1);
}
