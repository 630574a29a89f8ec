//! Array-wide asymmetric access states: shard 0 owns them, and every shard has the states that were last announced.
//!
//! ```text
//!   SET TARGET PORT GROUPS ─┬► shard 0: plan ─► announce *transitioning* ─► commands by those groups have ended
//!   administrator ──────────┘              └──► stored ─► announce the states, notify all other sessions
//! ```
//!
//! States belong to a volume: a host can set them only for the volumes that it may use. They are part of the catalog,
//! so they survive a restart.

use std::rc::Rc;
use std::sync::Arc;

use base::VolumeId;
use reservation::{AccessState, AccessStates, Cause, Refusal};
use scsi::UnitAttention;
use shard::{AccessAsk, AccessNews, FrontCall, MANAGER, ManagerCall, NotifiedHosts, kept};

use crate::aborting::Aborted;
use crate::front::Front;

/// Carries out a request, on shard 0.
pub(crate) async fn carry_out(front: &Rc<Front>, ask: AccessAsk) -> Result<(), Refusal> {
    assert_eq!(front.context.shard, MANAGER, "access states have one owner");
    if !front.changing_access.borrow_mut().insert(ask.volume) {
        return Err(Refusal::InTransition);
    }
    let result = change(front, &ask).await;
    front.changing_access.borrow_mut().remove(&ask.volume);
    result
}

async fn change(front: &Rc<Front>, ask: &AccessAsk) -> Result<(), Refusal> {
    let unit = front.units.get(ask.volume).ok_or(Refusal::NoSuchUnit)?;
    let before = unit.unit.access.borrow().clone();
    let known = front.context.replica.borrow().groups.iter().copied().collect::<Vec<u16>>();
    // the configuration file of the head may have changed since the command was checked
    if !ask.changes.iter().all(|(group, _)| known.contains(group)) {
        return Err(Refusal::InTransition);
    }
    let cause = if ask.by.is_some() { Cause::Explicit } else { Cause::Implicit };
    let transition = before.plan(&known, &ask.changes, cause)?;
    if transition.next == *before {
        return Ok(());
    }
    let volume = ask.volume;
    if let Some(passing) = transition.passing {
        announce(front, AccessNews { volume, states: Arc::new(passing), told: NotifiedHosts::Nobody }).await;
    }
    if let Err(refusal) = keep(front, volume, &transition.next).await {
        announce(front, AccessNews { volume, states: before, told: NotifiedHosts::Nobody }).await;
        return Err(refusal);
    }
    let (states, told) = (Arc::new(transition.next), NotifiedHosts::Others(ask.by.clone()));
    announce(front, AccessNews { volume, states, told }).await;
    Ok(())
}

/// Makes the manager keep a volume's access states over a restart.
async fn keep(front: &Front, volume: VolumeId, states: &AccessStates) -> Result<(), Refusal> {
    let call = ManagerCall::KeepAccess(volume, kept::access_to_keep(states));
    front.context.request(call).await
}

/// Announces to every shard. Ends when all have adopted the states and no command by a *transitioning* group is
/// running.
async fn announce(front: &Rc<Front>, announcement: AccessNews) {
    let announcement = Arc::new(announcement);
    front.context.ask_all(|| FrontCall::Access(announcement.clone())).await;
}

/// Adopts an announcement on this shard. Returns the commands that came by *transitioning* groups and may still touch
/// the volume.
pub(crate) fn adopt(front: &Front, announcement: &AccessNews) -> Aborted {
    let volume = announcement.volume;
    let Some(unit) = front.units.get(volume) else { return Vec::new() };
    *unit.unit.access.borrow_mut() = announcement.states.clone();
    let mut at_work = Vec::new();
    for session in front.sessions.all() {
        for (_, lun) in session.luns().into_iter().filter(|(_, lun)| lun.volume == volume) {
            let mut nexus = lun.nexus.borrow_mut();
            nexus.adopt_access(announcement.states.clone());
            match &announcement.told {
                NotifiedHosts::Others(by) if by.as_ref() != Some(nexus.name()) => {
                    nexus.raise(UnitAttention::AluaStateChanged);
                }
                _ => {}
            }
            if unit.logical.access_by(&nexus) == AccessState::Transitioning {
                let commands = session.at_work(|command| command.touches(volume) && command.is_at_medium());
                at_work.push((session.clone(), commands));
            }
        }
    }
    at_work
}

/// Asks shard 0 to carry out a request.
pub(crate) async fn request(front: &Rc<Front>, ask: AccessAsk) -> Result<(), Refusal> {
    front.context.request(FrontCall::SetAccess(ask)).await
}
