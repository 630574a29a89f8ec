//! Array-wide reservations: shard 0 owns them, and every shard has the reservations that were last announced.
//!
//! ```text
//!   PERSISTENT RESERVE OUT ─► shard 0: apply, in turn ─► stored if it must survive ─► announced to every shard
//!                                                                     every shard: nexuses, attentions, aborts ─┘
//! ```
//!
//! A request is answered when every shard has adopted its result and no command that it aborts can touch the volume any
//! more. So a command that is sent after the answer meets the new reservations on every shard. The request's turn ends
//! before that, because a command that it aborts may itself be waiting for its turn.

use std::rc::Rc;
use std::sync::Arc;

use base::VolumeId;
use reservation::{Refusal, ReservationRequest, Reservations};
use scsi::UnitAttention;
use shard::{FrontCall, MANAGER, ManagerCall, ReservationAsk, ReservationNews, kept};

use crate::aborting::{Aborted, wait_for};
use crate::front::Front;
use crate::session::{LunNexus, RunningCommand, Session};

/// Carries out a request, on shard 0.
pub(crate) async fn carry_out(front: &Rc<Front>, ask: ReservationAsk) -> Result<(), Refusal> {
    assert_eq!(front.context.shard, MANAGER, "reservations have one owner");
    let turn = front.reservation_turn.acquire(1).await;
    let before = front.context.units.reservations(ask.volume).ok_or(Refusal::NoSuchUnit)?;
    let ports_of = |initiator: &str| front.register.ports_of(initiator);
    let applied = before.apply(&ask.by, &ask.request, &ports_of)?;
    if applied.next == *before && applied.abort.is_empty() {
        return Ok(());
    }
    if before.to_keep() != applied.next.to_keep() {
        keep(front, ask.volume, &applied.next).await?;
    }
    let announcement = Arc::new(ReservationNews {
        volume: ask.volume,
        reservations: Arc::new(applied.next),
        notices: applied.notices,
        abort: applied.abort,
        command: ask.command,
    });
    // announcements reach every shard in the order of their turns
    let aborted = adopt(front, &announcement);
    let elsewhere = front.context.ask_others(|| FrontCall::Reservations(announcement.clone()));
    drop(turn);
    wait_for(&aborted).await;
    elsewhere.await;
    Ok(())
}

/// Makes the manager keep a volume's reservations over a restart.
async fn keep(front: &Front, volume: VolumeId, reservations: &Reservations) -> Result<(), Refusal> {
    let call = ManagerCall::KeepReservations(volume, kept::reservations_to_keep(reservations));
    front.context.request(call).await
}

/// Adopts an announcement on this shard. The returned commands are aborted, and may still be running.
pub(crate) fn adopt(front: &Front, announcement: &ReservationNews) -> Aborted {
    let volume = announcement.volume;
    front.context.units.set_reservations(volume, &announcement.reservations);
    let mut aborted = Vec::new();
    for session in front.sessions.all() {
        for (number, lun) in session.luns().into_iter().filter(|(_, lun)| lun.volume == volume) {
            lun.nexus.borrow_mut().adopt(announcement.reservations.clone());
            for (name, notice) in &announcement.notices {
                if name == lun.nexus.borrow().name() {
                    lun.nexus.borrow_mut().raise((*notice).into());
                }
            }
            if announcement.abort.contains(lun.nexus.borrow().name()) {
                aborted.push((session.clone(), abort(announcement, &session, number, &lun)));
            }
        }
    }
    aborted
}

/// Aborts the commands that a preempted nexus has sent to the volume, but never the preempting command itself.
fn abort(
    announcement: &ReservationNews,
    session: &Session,
    number: u16,
    lun: &LunNexus,
) -> Vec<Rc<RunningCommand>> {
    let volume = announcement.volume;
    let own = announcement.command.filter(|own| own.session == session.place);
    let mut commands = if let Some(preempting) = own {
        // a nexus that preempts itself is not notified (SAM-5 §5.6.2)
        let commands = session.abort(|command| command.volume == volume && command.task.0 != preempting.tag);
        lun.tasks.fence();
        commands
    } else {
        let (commands, attention_due) = session.abort_for_another(number, lun);
        if attention_due {
            lun.nexus.borrow_mut().raise(UnitAttention::CommandsCleared);
        }
        commands
    };
    commands.extend(session.interrupt(&[volume]));
    commands
}

/// Asks shard 0 to carry out a request.
pub(crate) async fn request(front: &Rc<Front>, ask: ReservationAsk) -> Result<(), Refusal> {
    front.context.request(FrontCall::Reserve(ask)).await
}

/// The session has ended: reservations that its nexuses made by RESERVE are released.
pub(crate) async fn nexus_lost(front: &Rc<Front>, session: &Session) {
    for (_, lun) in session.luns() {
        let (by, reserved) = {
            let nexus = lun.nexus.borrow();
            (nexus.name().clone(), nexus.reservations().reserved_by() == Some(nexus.name()))
        };
        if reserved {
            let request = ReservationRequest::NexusLost;
            let ask = ReservationAsk { volume: lun.volume, by, command: None, request };
            // a volume that is gone has no reservations
            let _ = self::request(front, ask).await;
        }
    }
}

/// A logical unit was reset: reservations made by RESERVE are released.
pub(crate) async fn unit_reset(front: &Rc<Front>, session: &Session, volumes: &[VolumeId]) {
    let Some(by) = session.registrant() else { return };
    for &volume in volumes {
        if front.context.units.reservations(volume).is_some_and(|now| now.reserved_by().is_some()) {
            let request = ReservationRequest::UnitReset;
            let ask = ReservationAsk { volume, by: by.clone(), command: None, request };
            // a volume that is gone has no reservations
            let _ = self::request(front, ask).await;
        }
    }
}
