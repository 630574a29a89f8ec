//! Giving the array back: a head that has taken over finds that its own copy is not there. The other head has everything, too, as long
//! as this one has answered nothing.
//!
//! What always holds: a head that has asked for it does not serve before a newer revision of its own term shows that the swap has lost.

use base::Nanos;

use super::owner::Phase;
use super::{Action, Head, Role};
use crate::decision::Decision;
use crate::store::StoreEvent;

impl Head {
    /// The own copy cannot be recovered now: makes the other head the owner, if that one answers and has everything. To be called again
    /// as long as that lasts. Whether it was asked for.
    pub fn give_back(&mut self, now: Nanos, out: &mut Vec<Action>) -> bool {
        let silence = self.timing.partner_silence;
        let Role::Owner(owner) = &mut self.role else { return false };
        let answers = owner.answered.is_some_and(|sent| now.saturating_sub(sent) <= silence);
        match owner.phase {
            Phase::GivingBack { .. } => return true,
            Phase::Recovering if owner.other_has_all && answers => {}
            _ => return false,
        }
        owner.phase = Phase::GivingBack { is_recovered: false };
        let new = self.known().given_back();
        self.swap(now, Nanos(0), new, out);
        out.push(Action::Note(Decision::GaveBack));
        true
    }

    /// A newer revision of the own term: the swap has lost.
    pub(super) fn end_giving_back(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let owner = self.owner_mut();
        if let Phase::GivingBack { is_recovered } = owner.phase {
            owner.phase = Phase::Recovering;
            let term = owner.term;
            if is_recovered {
                self.on_store_of_owner(now, StoreEvent::Recovered { term }, out);
            }
        }
    }
}
