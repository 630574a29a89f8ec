//! Handing the array over, on request. The log is drained first, so that the new owner has nothing to recover.
//!
//! A handover can be given up at any moment, though its swap may still win later. Nothing depends on what the earlier owner does
//! meanwhile: the new one serves when its partner has confirmed the new term by holding all that was recovered, or when it has gone
//! on alone and the lease that it gave has ended.

use base::Nanos;

use super::owner::Phase;
use super::{Action, Head, Role};
use crate::decision::Decision;
use crate::message::Message;
use crate::relation::Relation;
use crate::store::StoreOrder;

/// Why an array is not handed over now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandoverRefusal {
    /// This head is not the owner.
    NotOwner,
    /// It does not serve yet, or hands over already.
    NotServing,
    /// The partner lacks something.
    NotInSync,
    /// The partner has not answered for longer than the lease.
    PartnerSilent,
    /// The register has not answered lately, so the outcome might stay unknown.
    RegisterSilent,
}

impl Head {
    /// Begins to hand the array over to the partner.
    pub fn hand_over(&mut self, now: Nanos, out: &mut Vec<Action>) -> Result<(), HandoverRefusal> {
        let (lease, until) = (self.timing.lease, now + self.timing.handover);
        let register_answers = self.asking.answered_within(now, self.timing.look + self.timing.question);
        let serves = self.serves(now);
        let Role::Owner(owner) = &mut self.role else { return Err(HandoverRefusal::NotOwner) };
        if !serves {
            return Err(HandoverRefusal::NotServing);
        }
        if owner.relation != Relation::InSync {
            return Err(HandoverRefusal::NotInSync);
        }
        if owner.answered.is_none_or(|sent| now >= sent + lease) {
            return Err(HandoverRefusal::PartnerSilent);
        }
        if !register_answers {
            return Err(HandoverRefusal::RegisterSilent);
        }
        owner.phase = Phase::Draining { until };
        out.push(Action::Store(StoreOrder::Drain));
        out.push(Action::Note(Decision::BeganHandover));
        Ok(())
    }

    /// Whether the array is being handed over: the swap was sent.
    pub fn is_handing_over(&self) -> bool {
        self.owner().is_some_and(|owner| matches!(owner.phase, Phase::HandingOver { .. }))
    }

    pub(super) fn on_drained(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let until = now + self.timing.handover;
        let owner = self.owner_mut();
        if !matches!(owner.phase, Phase::Draining { .. }) || owner.relation != Relation::InSync {
            return;
        }
        owner.phase = Phase::HandingOver { until };
        owner.swap_is_open = true;
        let new = self.known().handed_over();
        self.swap(now, Nanos(0), new, out);
        out.push(Action::Send(Message::Look));
    }

    pub(super) fn tick_handover(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let phase = self.owner_mut().phase;
        match phase {
            Phase::Draining { until } | Phase::HandingOver { until } if now >= until => {
                self.end_handover(now, out)
            }
            Phase::HandingOver { .. } if self.asking.may_ask(now, self.timing.question) => {
                out.push(Action::Send(Message::Look));
            }
            _ => {}
        }
    }

    /// Serves again, after a handover that was given up.
    pub(super) fn end_handover(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let owner = self.owner_mut();
        if matches!(owner.phase, Phase::Draining { .. } | Phase::HandingOver { .. }) {
            owner.phase = Phase::Serving;
            owner.since = now;
            out.push(Action::Store(StoreOrder::EndDrain));
            out.push(Action::Note(Decision::GaveUpHandover));
        }
    }
}
