//! Asymmetric access states, array-wide: shard 0 owns them, every shard has what was last announced.
//!
//! ```text
//!   SET TARGET PORT GROUPS ─┬► shard 0: plan ─► announce *transitioning* ─► commands by those groups have ended
//!   administrator ──────────┘              └──► stored ─► announce the states, tell all others
//! ```
//!
//! States are a volume's own: what a host sets concerns the volumes that it may use, and nobody else's. They are part
//! of the catalog, so that a restart leaves them.

use std::rc::Rc;
use std::sync::Arc;

use base::VolumeId;
use catalog::{KeptAccess, KeptAccesses};
use reservation::{AccessState, AccessStates, Cause, NexusName, Refusal};
use scsi::UnitAttention;

use crate::context::{Context, MANAGER};
use crate::message::{Answer, Call};
use crate::task_management::Aborted;

/// A request on its way to shard 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    pub volume: VolumeId,
    /// The nexus of the host that asks; none: the administrator does.
    pub by: Option<NexusName>,
    pub changes: Vec<(u16, AccessState)>,
}

/// A volume's states as they are from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    volume: VolumeId,
    states: Arc<AccessStates>,
    tell: Tell,
}

/// Who is told of states.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Tell {
    /// They are on their way.
    Nobody,
    /// All but the nexus that has asked for them.
    Others(Option<NexusName>),
}

/// Carries a request out, on shard 0.
pub(crate) async fn carry_out(context: &Rc<Context>, ask: Ask) -> Result<(), Refusal> {
    assert_eq!(context.shard, MANAGER, "access states have one owner");
    if !context.changing_access.borrow_mut().insert(ask.volume) {
        return Err(Refusal::InTransition);
    }
    let result = change(context, &ask).await;
    context.changing_access.borrow_mut().remove(&ask.volume);
    result
}

async fn change(context: &Rc<Context>, ask: &Ask) -> Result<(), Refusal> {
    let unit = context.units.get(ask.volume).ok_or(Refusal::NoSuchUnit)?;
    let before = unit.access.borrow().clone();
    let known = unit.logical.target.groups();
    // the head's file may have changed since the command was checked
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
        announce(context, Announcement { volume, states: Arc::new(passing), tell: Tell::Nobody }).await;
    }
    if let Err(refusal) = context.keep_access(volume, &transition.next).await {
        announce(context, Announcement { volume, states: before, tell: Tell::Nobody }).await;
        return Err(refusal);
    }
    let (states, tell) = (Arc::new(transition.next), Tell::Others(ask.by.clone()));
    announce(context, Announcement { volume, states, tell }).await;
    Ok(())
}

/// Tells every shard; ends when all have taken it over and nothing is at work by a group that is *transitioning*.
async fn announce(context: &Rc<Context>, announcement: Announcement) {
    let announcement = Arc::new(announcement);
    context.ask_all(|| Call::Access(announcement.clone())).await;
}

/// Takes an announcement over on this shard. The commands given back came by groups that are *transitioning*, and may
/// still touch the volume.
pub(crate) fn adopt(context: &Context, announcement: &Announcement) -> Aborted {
    let volume = announcement.volume;
    let Some(unit) = context.units.get(volume) else { return Vec::new() };
    *unit.access.borrow_mut() = announcement.states.clone();
    let mut at_work = Vec::new();
    for session in context.sessions.all() {
        for (_, lun) in session.luns().into_iter().filter(|(_, lun)| lun.volume == volume) {
            let mut nexus = lun.nexus.borrow_mut();
            nexus.adopt_access(announcement.states.clone());
            match &announcement.tell {
                Tell::Others(by) if by.as_ref() != Some(nexus.name()) => {
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

/// Has shard 0 carry a request out.
pub(crate) async fn request(context: &Rc<Context>, ask: Ask) -> Result<(), Refusal> {
    match context.ask(MANAGER, Call::SetAccess(ask)).await {
        Answer::Reserved(result) => result,
        other => unreachable!("the answer to a change of access states, not {other:?}"),
    }
}

/// What the catalog keeps of access states.
pub(crate) fn to_keep(states: &AccessStates) -> KeptAccesses {
    let kept = |(group, state)| {
        let state = match state {
            AccessState::ActiveNonOptimized => KeptAccess::ActiveNonOptimized,
            AccessState::Standby => KeptAccess::Standby,
            AccessState::Unavailable => KeptAccess::Unavailable,
            AccessState::ActiveOptimized | AccessState::Transitioning => {
                unreachable!("not where a change ends")
            }
        };
        (group, state)
    };
    states.told().map(kept).collect()
}

/// The inverse, after a restart, where the array has these groups.
pub(crate) fn kept(kept: &KeptAccesses, known: &[u16]) -> AccessStates {
    let state = |(&group, kept): (&u16, &KeptAccess)| {
        let state = match kept {
            KeptAccess::ActiveNonOptimized => AccessState::ActiveNonOptimized,
            KeptAccess::Standby => AccessState::Standby,
            KeptAccess::Unavailable => AccessState::Unavailable,
        };
        (group, state)
    };
    AccessStates::kept(kept.iter().map(state), known)
}
