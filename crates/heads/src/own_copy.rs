//! What an owner does whose own copy cannot serve: its pools are not there, or its array does not start. The other head is to have the
//! array again, if it has everything and answers.
//!
//! What always holds: a head that another one has owned the array before has forgotten its own copy of the catalog.

use std::cell::Cell;
use std::rc::Rc;

use base::Nanos;
use pair::{RoleName, Term};

use crate::head::{Ending, RunningHead};

/// So long an array that has failed waits for the register to make the other head the owner.
const GIVING_BACK: Nanos = Nanos::from_secs(1);

/// See the header of this file.
#[derive(Default)]
pub(crate) struct OwnCopy {
    /// The array waits for its pools.
    waits: Cell<bool>,
    /// The array has failed: then the process ends, if it still runs.
    ends_at: Cell<Option<Nanos>>,
    has_forgotten: Cell<bool>,
}

impl RunningHead {
    /// The array of this term waits for its pools; `false`: it has started.
    pub(crate) fn set_waits(self: &Rc<Self>, term: Term, waits: bool) {
        if self.owned_term() == Some(term) {
            self.own_copy().waits.set(waits);
        }
    }

    /// The array of this term cannot be started.
    pub(crate) fn on_failed(self: &Rc<Self>, term: Term) {
        if self.owned_term() == Some(term) {
            let pause = if self.give_back() { GIVING_BACK } else { Nanos(0) };
            self.own_copy().ends_at.set(Some(self.io().now() + pause));
            self.look_at_own_copy();
        }
    }

    /// To be called at each tick.
    pub(crate) fn look_at_own_copy(self: &Rc<Self>) {
        if self.own_copy().ends_at.get().is_some_and(|at| self.io().now() >= at) {
            self.end(Ending::ArrayDidNotStart);
        } else if self.own_copy().waits.get() {
            self.give_back();
        }
    }

    fn give_back(self: &Rc<Self>) -> bool {
        let mut is_asked = false;
        self.step(|head, now, out| is_asked = head.give_back(now, out));
        is_asked
    }

    /// To be called after each step: another head owns the array, so the catalog that this one has kept becomes old.
    pub(crate) fn forget_if_partner(&self) {
        if self.role() == RoleName::Partner && !self.own_copy().has_forgotten.replace(true) {
            self.surroundings().forget_catalog();
        }
    }
}
