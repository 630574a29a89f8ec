//! One SCSI command: find its logical unit, plan it, execute the block requests, answer.
//!
//! A command without block requests is answered at once. Every other command becomes a task, and the session lists it
//! as long as it may touch the volume. If it is aborted, its own outcome is not sent.

use std::rc::Rc;

use block::{BlockRequest, BlockResult, BlockTarget};
use iscsi::{CommandResponse, TaskAttribute, TaskTag};
use scsi::{CopyPart, CopyStretch, Naa, Response, Step};
use shard::{AccessAsk, CommandPlace, ReservationAsk};
use smallvec::{SmallVec, smallvec};
use wire::scsi::Lun;

use crate::access;
use crate::connection::carry_out;
use crate::extended_copy::by_reference;
use crate::figures::Arrival;
use crate::front::{Front, Job};
use crate::reservations;
use crate::session::{Abort, LunNexus, NoMemory, RunningCommand, Session};
use crate::task_set::Place;
use crate::units::HostUnit;

/// The task sets that a command is in: more than one only for a copy.
type Visits = SmallVec<[(Rc<LunNexus>, Place); 1]>;

/// A command has arrived, with all its data.
pub(crate) fn begin(front: &Rc<Front>, session: &Rc<Session>, command: iscsi::Command) {
    let arrival = Arrival::new(&command.cdb, front.context.io.now());
    let lun = Lun::parse(command.lun).ok().and_then(|lun| session.lun(lun.number()));
    let (task, attribute) = (command.task, command.attribute);
    let Some(lun) = lun else {
        let response = with_plan(front, session, None, command, scsi::no_such_lun);
        return answer(session, None, task, (arrival, response));
    };
    if attribute == TaskAttribute::Aca {
        let response = scsi::no_auto_contingent_allegiance(command.data_out.len());
        return answer(session, Some(&lun), task, (arrival, response));
    }
    if lun.tasks.must_wait(attribute) {
        let (running, place) = (session.begin(task, lun.volume, arrival), lun.tasks.enter(attribute));
        let job = Job { front: front.clone(), session: session.clone(), running, lun, place };
        front.context.io.spawn(run_in_turn(job, command));
        return;
    }
    let (unit, step) = start(front, session, &lun, command);
    match at_once(session, &lun, &unit, step) {
        Step::Done(response) => answer(session, Some(&lun), task, (arrival, response)),
        step => {
            let (running, place) = (session.begin(task, lun.volume, arrival), lun.tasks.enter(attribute));
            // the command was admitted: a change of what is admitted waits for it, even before it is polled
            if matches!(step, Step::Block(..) | Step::BlockOf(..) | Step::Copy(..)) {
                running.begin_at_medium();
            }
            let job = Job { front: front.clone(), session: session.clone(), running, lun, place };
            front.runners.run(&front.context.io, (job, (unit, step)), |(job, begun)| run(job, begun));
        }
    }
}

/// Begins a command in its logical unit.
fn start(
    front: &Rc<Front>,
    session: &Session,
    lun: &LunNexus,
    command: iscsi::Command,
) -> (Rc<HostUnit>, Step) {
    let unit = lun.unit.borrow().clone();
    let step = with_plan(front, session, Some(&unit), command, |plan| {
        unit.logical.start(&mut lun.nexus.borrow_mut(), plan)
    });
    (unit, step)
}

/// Calls `act` with the command in the form of the logical unit.
fn with_plan<T>(
    front: &Front,
    session: &Session,
    unit: Option<&HostUnit>,
    command: iscsi::Command,
    act: impl FnOnce(scsi::Command<'_>) -> T,
) -> T {
    let long: Vec<u8>;
    let cdb: &[u8] = if command.cdb_extra.is_empty() {
        &command.cdb
    } else {
        long = [&command.cdb[..], &command.cdb_extra].concat();
        &long
    };
    let luns = || {
        let known = session.luns();
        known.iter().map(|(number, _)| Lun::new(*number).expect("the catalog bounds LUNs")).collect()
    };
    let peers = |naa: &Naa| {
        let lun = session.lun_of(naa)?;
        let peer = lun.unit.borrow().logical.peer(&lun.nexus.borrow());
        Some(peer)
    };
    let space = || {
        let space = front.context.units.space(&unit?.unit)?;
        Some(scsi::Space { capacity_bytes: space.capacity_bytes, used_bytes: space.used_bytes })
    };
    let (data_out, clock) = (command.data_out, || front.context.io.wall_clock_ms());
    act(scsi::Command { cdb, data_out, luns: &luns, peers: &peers, space: &space, clock: &clock })
}

/// Runs a command that has to wait for older ones.
async fn run_in_turn(job: Job, command: iscsi::Command) {
    let Job { front, session, running, lun, place } = &job;
    if session.wait_for_turn(lun, (command.attribute, *place), running).await {
        let begun = start(front, session, lun, command);
        run(job, begun).await;
    } else {
        lun.tasks.leave(*place);
        end(front, session, lun, running.clone(), (None, false));
    }
}

/// Executes the steps that need no waiting. Nothing else can happen in between, so the command need not be listed.
fn at_once(session: &Session, lun: &LunNexus, unit: &HostUnit, mut step: Step) -> Step {
    while let Step::Block(request, _) = &step {
        let bytes = read_bytes(request, unit);
        let room = bytes.and_then(|bytes| session.room_now(bytes));
        if bytes.is_some() && room.is_none() {
            break;
        }
        let Some(result) = unit.unit.target.answer_at_once(request) else { break };
        let Step::Block(_, continuation) = step else { unreachable!("looked at above") };
        step = unit.logical.finish(&mut lun.nexus.borrow_mut(), continuation, result);
        if matches!(step, Step::Done(_)) {
            room.into_iter().for_each(|room| session.keep_until_sent(room));
        }
    }
    step
}

/// Executes a command's block requests one after the other.
async fn run(job: Job, (unit, mut step): (Rc<HostUnit>, Step)) {
    let Job { front, session, running, lun, place } = job;
    let mut room = None;
    let (mut begun, mut asked) = (false, false);
    // a copy is in the task sets of all units that it reaches
    let mut visits: Visits = smallvec![(lun.clone(), place)];
    let response = loop {
        match step {
            Step::Done(response) => break Some(response),
            asking @ (Step::Reserve(..) | Step::SetAccess(..)) => {
                let command = CommandPlace { session: session.place, tag: running.task.0 };
                asked = true;
                step = Step::Done(ask_owner(&front, command, &lun, &unit, asking).await);
            }
            Step::Copy(stretch, continuation) => {
                let left = copy_stretch(&front, &session, &running, &mut visits, &stretch).await;
                let Some(left) = left.filter(|_| !running.stopped.get()) else {
                    break give_up(&unit, &lun, &running, continuation);
                };
                step = unit.logical.finish_stretch(&mut lun.nexus.borrow_mut(), continuation, left);
            }
            Step::BlockOf(naa, request, continuation) => {
                running.begin_at_medium();
                // units that the initiator has lost meanwhile are not copied
                let Some(other) = session.lun_of(&naa).filter(|_| !running.stopped.get()) else {
                    break give_up(&unit, &lun, &running, continuation);
                };
                visit(&mut visits, &running, &other);
                let target = other.unit.borrow().clone();
                if let Some(bytes) = read_bytes(&request, &target) {
                    drop(room.take());
                    room = session.room_for(&running, bytes, true).await.and_then(Result::ok);
                }
                if running.stopped.get() {
                    break give_up(&unit, &lun, &running, continuation);
                }
                let result = target.unit.target.execute(request).await;
                see_refusal(&front, &session, &target, &result);
                step = unit.logical.finish(&mut lun.nexus.borrow_mut(), continuation, result);
            }
            Step::Block(request, continuation) => {
                running.begin_at_medium();
                if let Some(bytes) = read_bytes(&request, &unit) {
                    // the data of an earlier step is no longer needed
                    drop(room.take());
                    room = match session.room_for(&running, bytes, begun).await {
                        Some(Err(NoMemory)) => break Some(scsi::no_room(session.is_alone(&running))),
                        got => got.and_then(Result::ok),
                    };
                }
                begun = true;
                if running.stopped.get() {
                    break give_up(&unit, &lun, &running, continuation);
                }
                let result = unit.unit.target.execute(request).await;
                see_refusal(&front, &session, &unit, &result);
                step = unit.logical.finish(&mut lun.nexus.borrow_mut(), continuation, result);
            }
        }
    };
    visits.iter().for_each(|(lun, place)| lun.tasks.leave(*place));
    if end(&front, &session, &lun, running, (response, asked)) {
        room.into_iter().for_each(|room| session.keep_until_sent(room));
    }
}

/// Ends a command that cannot touch its volume any more: sends its response, unless the initiator must not get one.
/// Returns whether the command's own response was sent. If shard 0 was `asked`, it has carried out or refused the
/// request for good, even if the command was aborted since. Then the initiator gets that response, if any, because a
/// repeated request would meet its own result.
fn end(
    front: &Rc<Front>,
    session: &Rc<Session>,
    lun: &LunNexus,
    running: Rc<RunningCommand>,
    (response, asked): (Option<Response>, bool),
) -> bool {
    let (task, arrival, aborted) = (running.task, running.arrival, running.aborted());
    session.finish(running);
    let (response, its_own) = match aborted {
        None => (response, true),
        Some(Abort::Told) if asked => (response, true),
        Some(Abort::Told) => (Some(scsi::task_aborted()), false),
        Some(Abort::Silent) => {
            // until now, requests to abort the command wait for its end
            session.protocol.borrow_mut().forget(task);
            return false;
        }
    };
    let Some(response) = response else { return false };
    answer(session, Some(lun), task, (arrival, response));
    carry_out(front, session);
    its_own
}

/// Records a write that found no space.
fn see_refusal(front: &Front, session: &Session, unit: &HostUnit, result: &BlockResult) {
    let host = || session.login.borrow().as_ref().map(|login| login.host.clone()).unwrap_or_default();
    front.context.space_refusals.see(result, unit.unit.volume, host, front.context.io.now());
}

/// The bytes that a read brings into memory.
fn read_bytes(request: &BlockRequest, unit: &HostUnit) -> Option<usize> {
    let BlockRequest::Read { blocks, .. } = request else { return None };
    Some(*blocks as usize * unit.logical.geometry.block_bytes as usize)
}

/// Adds a copy's command to the task set of a unit that it reaches for the first time.
fn visit(visits: &mut Visits, running: &RunningCommand, other: &Rc<LunNexus>) {
    if running.reach(other.volume) {
        visits.push((other.clone(), other.tasks.enter(TaskAttribute::Simple)));
    }
}

/// The answer to a copy that was stopped, unless it was aborted.
fn give_up(
    unit: &HostUnit,
    lun: &LunNexus,
    running: &RunningCommand,
    continuation: scsi::Continuation,
) -> Option<Response> {
    unit.logical.abandon(&mut lun.nexus.borrow_mut(), continuation);
    running.aborted().is_none().then(|| unit.logical.copy_lost())
}

/// The part of a copy's stretch that has to be copied as data. `None`: the initiator has lost one of the units, or the
/// command was stopped.
async fn copy_stretch(
    front: &Rc<Front>,
    session: &Rc<Session>,
    running: &RunningCommand,
    visits: &mut Visits,
    stretch: &CopyStretch,
) -> Option<Option<Vec<CopyPart>>> {
    running.begin_at_medium();
    let (source, destination) = (session.lun_of(&stretch.source)?, session.lun_of(&stretch.destination)?);
    if running.stopped.get() {
        return None;
    }
    for other in [&source, &destination] {
        visit(visits, running, other);
    }
    let units = (source.unit.borrow().clone(), destination.unit.borrow().clone());
    Some(by_reference(front, (&units.0, &units.1), stretch).await)
}

/// Asks shard 0 to change state that it owns: reservations or access states.
async fn ask_owner(
    front: &Rc<Front>,
    command: CommandPlace,
    lun: &LunNexus,
    unit: &HostUnit,
    asking: Step,
) -> Response {
    let by = lun.nexus.borrow().name().clone();
    let (continuation, result) = match asking {
        Step::Reserve(request, continuation) => {
            let ask = ReservationAsk { volume: lun.volume, by, command: Some(command), request };
            (continuation, reservations::request(front, ask).await)
        }
        Step::SetAccess(changes, continuation) => {
            let ask = AccessAsk { volume: lun.volume, by: Some(by), changes };
            (continuation, access::request(front, ask).await)
        }
        other => unreachable!("{other:?} asks nobody"),
    };
    unit.logical.finish_reserve(&lun.nexus.borrow(), continuation, result)
}

/// Counts a command that has ended, and sends its response.
fn answer(
    session: &Session,
    lun: Option<&LunNexus>,
    task: TaskTag,
    (arrival, response): (Arrival, Response),
) {
    let answered = arrival.answered(&response, session.now());
    session.figures.add(answered);
    if let Some(lun) = lun {
        lun.unit.borrow().figures.add(answered);
    }
    // the response is sent together with the others of this turn
    response.data_in.bring_closer();
    let response = CommandResponse {
        status: response.status.code(),
        sense: response.sense,
        data_in: response.data_in,
        data_out_wanted: Some(response.data_out_bytes as u64),
    };
    session.protocol.borrow_mut().respond(task, response);
}
