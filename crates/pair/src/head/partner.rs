//! The partner: answers heartbeats, and takes over when there are none.

use base::Nanos;

use super::{Action, Head, Role};
use crate::decision::Decision;
use crate::message::Message;
use crate::register::Register;
use crate::timing::Timing;

#[derive(Debug)]
pub(super) struct Partner {
    /// When a heartbeat was answered last, or when this head became the partner.
    pub(super) heard: Nanos,
    /// What the owner's clock showed in it.
    pub(super) heard_sent: Option<Nanos>,
    takeover: Takeover,
    /// It would take over, but for maintenance.
    is_held_back: bool,
    /// The owner hands over: look often until then.
    look_until: Nanos,
}

/// What became of the swap that makes this head the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takeover {
    /// None was sent for the revision that is known.
    None,
    /// It was sent, and its outcome is unknown. Nothing of the old term is answered.
    Asked { since: Nanos },
    /// The register has not answered for long. The owner is heard again, so that a pair whose register is away goes on. The swap
    /// may still win: this head then waits until the lease that it has given has ended.
    Withdrawn { listens_until: Nanos },
}

impl Partner {
    pub(super) fn new(now: Nanos) -> Partner {
        let (takeover, is_held_back) = (Takeover::None, false);
        Partner { heard: now, heard_sent: None, takeover, is_held_back, look_until: now }
    }

    /// Whether heartbeats and writes of the owner are answered.
    pub(super) fn answers(&self) -> bool {
        !matches!(self.takeover, Takeover::Asked { .. })
    }

    /// The register has changed; a swap that was sent for the earlier revision cannot win any more.
    pub(super) fn on_change(&mut self, is_same_term: bool) {
        self.takeover = Takeover::None;
        if !is_same_term {
            // it is of another head's clock, or of an earlier start of the owner
            self.heard_sent = None;
        }
    }

    /// Whether to send the swap now: there is no owner to be heard.
    fn wants_to_own(&self, now: Nanos, grace: Nanos) -> bool {
        let listens = matches!(self.takeover, Takeover::Withdrawn { listens_until } if now < listens_until);
        now.saturating_sub(self.heard) > grace && !listens
    }

    /// Whether it just has.
    fn withdraws(&mut self, now: Nanos, after: Nanos, grace: Nanos) -> bool {
        if let Takeover::Asked { since } = self.takeover
            && now.saturating_sub(since) > after
        {
            self.takeover = Takeover::Withdrawn { listens_until: now + grace };
            return true;
        }
        false
    }
}

impl Head {
    pub(super) fn tick_partner(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let register = self.known();
        let Timing { grace, withdraw, question, heartbeat, look, .. } = self.timing;
        let Role::Partner(partner) = &mut self.role else { unreachable!("called for a partner") };
        if partner.withdraws(now, withdraw, grace) {
            out.push(Action::Note(Decision::WithdrewTakeover));
        }
        let wants_to_own = partner.wants_to_own(now, grace) && register.is_in_sync(self.me);
        let is_held_back = wants_to_own && register.maintenance.is_some();
        if is_held_back && !partner.is_held_back {
            out.push(Action::Note(Decision::HeldBack));
        }
        partner.is_held_back = is_held_back;
        if wants_to_own && !is_held_back {
            if self.asking.may_ask(now, question) {
                if partner.answers() {
                    partner.takeover = Takeover::Asked { since: now };
                    out.push(Action::Note(Decision::AskedToTakeOver));
                }
                self.swap(now, Nanos(0), register.taken_over(self.me), out);
            }
        } else {
            let pause = if now < partner.look_until { heartbeat } else { look };
            self.look(now, pause, out);
        }
    }

    /// The owner hands over: the register may name this head soon.
    pub(super) fn on_look(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let until = now + self.timing.handover;
        if let Role::Partner(partner) = &mut self.role
            && partner.answers()
        {
            partner.look_until = until;
            self.look(now, Nanos(0), out);
        }
    }

    pub(super) fn on_heartbeat(
        &mut self,
        now: Nanos,
        register: Register,
        sent: Nanos,
        out: &mut Vec<Action>,
    ) {
        if let Role::Partner(partner) = &self.role
            && !partner.answers()
        {
            return;
        }
        if register.term < self.known().term {
            out.push(Action::Send(Message::Changed(self.known())));
            out.push(Action::Note(Decision::CorrectedOldTerm));
            return;
        }
        self.learn(now, register, out);
        let is_current = self.known().term == register.term;
        let Role::Partner(partner) = &mut self.role else { return };
        if is_current {
            partner.heard = now;
            partner.heard_sent = partner.heard_sent.max(Some(sent));
            out.push(Action::Send(Message::HeartbeatAnswer { term: register.term, sent }));
        }
    }
}
