//! What heads say to each other about ownership. A message belongs to one connection between two starts of the heads:
//! what an earlier start of a head was sent never reaches a later one.

use base::Nanos;

use crate::register::{Register, Term};

/// A moment of the owner's clock in its term. An owner that starts again has another term, and maybe another clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp {
    pub term: Term,
    pub at: Nanos,
}

impl Stamp {
    /// Whether what carries this stamp is young enough for the owner of this term; `now` is by the owner's clock.
    pub fn is_fresh(self, term: Term, now: Nanos, age_max: Nanos) -> bool {
        self.term == term && self.at <= now && now - self.at < age_max
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// The owner says that it lives.
    Heartbeat {
        register: Register,
        /// When it was sent, on the owner's clock.
        sent: Nanos,
    },
    /// The partner has heard it, and will not take over before the grace time has passed.
    HeartbeatAnswer { term: Term, sent: Nanos },
    /// The sender knows this from the register.
    Changed(Register),
    /// The owner is handing over: look at the register.
    Look,
}
