//! Reservations, array-wide: shard 0 owns them, every shard has what was last announced.
//!
//! ```text
//!   PERSISTENT RESERVE OUT ─► shard 0: apply, in turn ─► stored where it must survive ─► announced to every shard
//!                                                                     every shard: nexuses, attentions, aborts ─┘
//! ```
//!
//! A request is answered when every shard has taken its result over and no command that it aborts can touch the
//! volume any more; so a command that is sent after the answer meets the new reservations wherever it arrives.
//! The turn ends before that: what a request aborts may itself be waiting for its turn.

use std::rc::Rc;
use std::sync::Arc;

use base::VolumeId;
use catalog::{KeptHold, KeptRegistration, KeptReservations};
use iscsi::TaskTag;
use reservation::{Held, NexusName, Notice, Refusal, Registration, ReservationRequest, Reservations};
use scsi::UnitAttention;
use wire::scsi::reservation::ReservationType;

use crate::context::{Context, MANAGER};
use crate::message::{Answer, Call};
use crate::reinstatement::SessionPlace;
use crate::session::{LunNexus, RunningCommand, Session};
use crate::task_management::Aborted;

/// A request on its way to shard 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    pub volume: VolumeId,
    pub by: NexusName,
    /// The command that asks: the one that is never aborted by it.
    pub command: Option<(SessionPlace, TaskTag)>,
    pub request: ReservationRequest,
}

/// A volume's reservations as they are from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    pub volume: VolumeId,
    pub reservations: Arc<Reservations>,
    notices: Vec<(NexusName, Notice)>,
    abort: Vec<NexusName>,
    command: Option<(SessionPlace, TaskTag)>,
}

/// Carries a request out, on shard 0.
pub(crate) async fn carry_out(context: &Rc<Context>, ask: Ask) -> Result<(), Refusal> {
    assert_eq!(context.shard, MANAGER, "reservations have one owner");
    let turn = context.reservation_turn.acquire(1).await;
    let before = context.units.reservations(ask.volume).ok_or(Refusal::NoSuchUnit)?;
    let known = || context.register.initiator_ports();
    let applied = before.apply(&ask.by, &ask.request, &known)?;
    if applied.next == *before && applied.abort.is_empty() {
        return Ok(());
    }
    if before.to_keep() != applied.next.to_keep() {
        context.keep_reservations(ask.volume, &applied.next).await?;
    }
    let announcement = Arc::new(Announcement {
        volume: ask.volume,
        reservations: Arc::new(applied.next),
        notices: applied.notices,
        abort: applied.abort,
        command: ask.command,
    });
    // announcements reach every shard in the order of their turns
    let aborted = adopt(context, &announcement);
    let elsewhere = context.ask_others(|| Call::Reservations(announcement.clone()));
    drop(turn);
    crate::task_management::wait_for(&aborted).await;
    elsewhere.await;
    Ok(())
}

/// Takes an announcement over on this shard. The commands given back are aborted, and may still be at work.
pub(crate) fn adopt(context: &Context, announcement: &Announcement) -> Aborted {
    let volume = announcement.volume;
    context.units.set_reservations(volume, &announcement.reservations);
    let mut aborted = Vec::new();
    for session in context.sessions.all() {
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

/// Aborts what a preempted nexus has sent to the volume, but never the command that preempts.
fn abort(
    announcement: &Announcement,
    session: &Session,
    number: u16,
    lun: &LunNexus,
) -> Vec<Rc<RunningCommand>> {
    let volume = announcement.volume;
    let own = announcement.command.filter(|(place, _)| *place == session.place);
    let mut commands = if let Some((_, preempting)) = own {
        // a nexus that preempts itself is not told (SAM-5 §5.6.2)
        let commands = session.abort(|command| command.volume == volume && command.task != preempting);
        lun.tasks.fence();
        commands
    } else {
        let (commands, owed) = session.abort_for_another(number, lun);
        if owed {
            lun.nexus.borrow_mut().raise(UnitAttention::CommandsCleared);
        }
        commands
    };
    commands.extend(session.interrupt(&[volume]));
    commands
}

/// Has shard 0 carry a request out.
pub(crate) async fn request(context: &Rc<Context>, ask: Ask) -> Result<(), Refusal> {
    match context.ask(MANAGER, Call::Reserve(ask)).await {
        Answer::Reserved(result) => result,
        other => unreachable!("the answer to a reservation, not {other:?}"),
    }
}

/// The session has ended: what its nexuses have reserved by RESERVE is free again.
pub(crate) async fn nexus_lost(context: &Rc<Context>, session: &Session) {
    for (_, lun) in session.luns() {
        let (by, reserved) = {
            let nexus = lun.nexus.borrow();
            (nexus.name().clone(), nexus.reservations().reserved_by() == Some(nexus.name()))
        };
        if reserved {
            let request = ReservationRequest::NexusLost;
            let ask = Ask { volume: lun.volume, by, command: None, request };
            // a volume that is gone has nothing reserved
            let _ = self::request(context, ask).await;
        }
    }
}

/// A logical unit was reset: what RESERVE has reserved is free again.
pub(crate) async fn unit_reset(context: &Rc<Context>, session: &Session, volumes: &[VolumeId]) {
    let Some(by) = session.nexus_name() else { return };
    for &volume in volumes {
        if context.units.reservations(volume).is_some_and(|now| now.reserved_by().is_some()) {
            let request = ReservationRequest::UnitReset;
            let ask = Ask { volume, by: by.clone(), command: None, request };
            // a volume that is gone has nothing reserved
            let _ = self::request(context, ask).await;
        }
    }
}

/// What the catalog keeps of reservations.
pub(crate) fn to_keep(reservations: &Reservations) -> Option<KeptReservations> {
    let (registrations, held) = reservations.to_keep()?;
    let position = |name: &NexusName| {
        registrations.iter().position(|one| one.nexus == *name).expect("a holder is registered")
    };
    let held =
        held.map(|held| KeptHold { kind: held.kind.code(), holder: held.holder.as_ref().map(position) });
    let kept = |one: &Registration| KeptRegistration {
        initiator: one.nexus.initiator.to_string(),
        port: one.nexus.port,
        key: one.key,
    };
    Some(KeptReservations { registrations: registrations.iter().map(kept).collect(), held })
}

/// The inverse, after a restart.
pub(crate) fn kept(kept: Option<&KeptReservations>) -> Reservations {
    let Some(kept) = kept else { return Reservations::default() };
    let registration = |one: &KeptRegistration| Registration {
        nexus: NexusName { initiator: one.initiator.as_str().into(), port: one.port },
        key: one.key,
    };
    let registrations: Vec<Registration> = kept.registrations.iter().map(registration).collect();
    let held = kept.held.map(|held| Held {
        kind: ReservationType::from_code(held.kind).expect("the catalog checks types"),
        holder: held.holder.map(|index| registrations[index].nexus.clone()),
    });
    Reservations::kept(registrations, held).expect("the catalog checks what it keeps")
}
