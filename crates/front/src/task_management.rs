//! Task management: aborting the commands of one session or of all sessions (SAM-5 §7, RFC 7143 §11.5).
//!
//! A command that its own initiator has aborted is never answered. A command that another initiator has aborted ends
//! with TASK ABORTED, unless its initiator has turned this off (TAS of the control mode page; SAM-5 §5.6.3). This
//! status, and the answer to the function, are sent only when the command cannot touch its volume any more: an aborted
//! write never takes effect later. A copy that was sent to another logical unit and has reached this one is not in the
//! task set of this one: it stops, and is answered COPY ABORTED.
//!
//! A target reset affects the logical units that the requesting host sees, and through them the commands of other hosts
//! that share these units. It does not affect units that the host cannot see. A cold reset also ends the sessions of
//! that host, but of no other host. If a volume is mapped read-only, a reset affects only the commands of the
//! requesting session: a reader must not stop a writer.

use std::rc::Rc;

use iscsi::{TaskManagement, TaskManagementFunction, TaskManagementResponse};
use scsi::UnitAttention;
use shard::{FrontCall, Reset};
use wire::scsi::Lun;

use crate::aborting::{Aborted, wait_for};
use crate::connection::carry_out;
use crate::front::Front;
use crate::reservations;
use crate::session::{LunNexus, RunningCommand, Session};
use api::SessionEnd;

/// A task management request has arrived. Its commands are aborted before this returns; the answer follows.
pub(crate) fn begin(front: &Rc<Front>, session: &Rc<Session>, request: TaskManagement) {
    let lun = Lun::parse(request.lun).ok().and_then(|lun| session.lun(lun.number()));
    let reset = |luns: Vec<Rc<LunNexus>>| {
        let (alone, all): (Vec<_>, Vec<_>) = luns.iter().partition(|lun| lun.read_only);
        let volumes = |luns: Vec<&Rc<LunNexus>>| luns.iter().map(|lun| lun.volume).collect();
        Plan::Reset(Reset { volumes: volumes(all), alone: volumes(alone), by: session.place })
    };
    let every_lun = || session.luns().into_iter().map(|(_, lun)| lun).collect();
    let plan = match (request.function, lun) {
        (TaskManagementFunction::AbortTask, _) => {
            Plan::Abort(session.abort(|c| Some(c.task) == request.referenced))
        }
        (TaskManagementFunction::ClearAca, _) => Plan::Refuse(TaskManagementResponse::NotSupported),
        (TaskManagementFunction::TargetWarmReset | TaskManagementFunction::TargetColdReset, _) => {
            reset(every_lun())
        }
        (_, None) => Plan::Refuse(TaskManagementResponse::LunDoesNotExist),
        // every nexus has a task set of its own (TST 001b)
        (TaskManagementFunction::AbortTaskSet | TaskManagementFunction::ClearTaskSet, Some(lun)) => {
            Plan::Abort(session.abort(|c| c.volume == lun.volume))
        }
        (TaskManagementFunction::LogicalUnitReset, Some(lun)) => reset(vec![lun]),
    };
    match plan {
        Plan::Refuse(response) => {
            session.protocol.borrow_mut().respond_task_management(request.task, response)
        }
        Plan::Abort(commands) => {
            let (front, session) = (front.clone(), session.clone());
            front.context.io.clone().spawn(async move {
                session.wait_for(&commands).await;
                complete(&front, &session, request).await;
            });
        }
        Plan::Reset(reset) => {
            let aborted = apply(front, &reset);
            let (front, session) = (front.clone(), session.clone());
            front.context.io.clone().spawn(async move {
                let elsewhere = front.context.ask_others(|| FrontCall::Reset(reset.clone()));
                wait_for(&aborted).await;
                elsewhere.await;
                reservations::unit_reset(&front, &session, &reset.volumes).await;
                complete(&front, &session, request).await;
            });
        }
    }
}

enum Plan {
    Refuse(TaskManagementResponse),
    Abort(Vec<Rc<RunningCommand>>),
    Reset(Reset),
}

/// All commands that were to be aborted have ended.
async fn complete(front: &Rc<Front>, session: &Rc<Session>, request: TaskManagement) {
    session.protocol.borrow_mut().respond_task_management(request.task, TaskManagementResponse::Complete);
    carry_out(front, session);
    if request.function == TaskManagementFunction::TargetColdReset {
        let host = session.login.borrow().as_ref().map(|login| login.host.clone());
        if let Some(host) = host {
            end_sessions_of(front, &host);
            front.context.ask_others(|| FrontCall::EndSessionsOf(host.clone())).await;
        }
    }
}

/// Ends every session of a host on this shard.
pub(crate) fn end_sessions_of(front: &Rc<Front>, host: &str) {
    for session in front.sessions.all() {
        let its = session.login.borrow().as_ref().is_some_and(|login| login.host == host);
        if its {
            session.close(SessionEnd::TargetReset);
        }
    }
}

/// Aborts the commands of this shard's sessions that a reset affects, and records the unit attentions.
pub(crate) fn apply(front: &Front, reset: &Reset) -> Aborted {
    let mut all = Vec::new();
    for session in front.sessions.all() {
        let own = session.place == reset.by;
        let mut commands = Vec::new();
        for (number, lun) in session.luns() {
            if reset.volumes.contains(&lun.volume) || (own && reset.alone.contains(&lun.volume)) {
                if own {
                    commands.extend(session.abort(|command| command.volume == lun.volume));
                    lun.tasks.fence();
                } else {
                    // the unit attention of a reset covers these, too
                    commands.extend(session.abort_for_another(number, &lun).0);
                }
                lun.nexus.borrow_mut().reset(UnitAttention::BusDeviceReset);
            }
        }
        commands.extend(session.interrupt(&reset.volumes));
        if own {
            commands.extend(session.interrupt(&reset.alone));
        }
        all.push((session, commands));
    }
    all
}
