//! The state machine of a head. Whoever runs it tells it what has happened, with the time, and carries out the [`Action`]s.
//!
//! ```text
//!              register: the other owns            swap won, or handed over
//!   Booting ──────────────────────────► Partner ──────────────────────────► Owner
//!      │                                   ▲                                  │
//!      └── register: this head owns ───────┼──── swap won: a new term ───────►│
//!                                          └──── a later term ────────────────┘
//! ```
//!
//! What always holds: a head that boots answers nothing before the register has answered it; a partner whose takeover may
//! be on its way answers nothing of the old term.

mod boot;
mod giving_back;
mod handover;
mod owner;
mod partner;
#[cfg(test)]
mod tests;

use base::{HeadId, Nanos};

use crate::asking::{Asking, Question};
use crate::decision::Decision;
use crate::message::{Message, Stamp};
use crate::register::{Register, Term};
use crate::relation::Relation;
use crate::store::{StoreEvent, StoreOrder};
use crate::timing::Timing;

pub use handover::HandoverRefusal;
use owner::{Owner, Phase};
use partner::Partner;

/// What a head wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Ask the register; the answer goes to [`Head::on_register`]. It need not be repeated: the head asks again.
    Ask(Question),
    /// To the other head.
    Send(Message),
    Store(StoreOrder),
    /// For logs and counts.
    Note(Decision),
}

/// How an owner that is in sync knows that its partner has not taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// By a lease. It needs a clock that goes on while the machine stands still.
    Leased,
    /// The partner confirms each read, by answering a heartbeat that was sent after the read came. For virtual machines that can be
    /// paused with their clock.
    Confirmed,
}

/// Whether a read may be answered now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadPermit {
    Yes,
    /// When the partner has answered a heartbeat that is sent from now on: ask again then, and call [`Head::confirm_reads`] now.
    AfterHeartbeat,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleName {
    Booting,
    Partner,
    Owner,
    /// The register names two other heads.
    Outside,
}

#[derive(Debug)]
enum Role {
    /// Holds what it has proposed: the register with a new term of its own.
    Booting {
        proposed: Option<Register>,
    },
    Partner(Partner),
    Owner(Owner),
    Outside,
}

#[derive(Debug)]
pub struct Head {
    me: HeadId,
    timing: Timing,
    reads: Reads,
    booted: Nanos,
    /// The newest content of the register that this head has heard of; `None` while it boots.
    register: Option<Register>,
    asking: Asking,
    role: Role,
}

impl Head {
    /// A head that has just started.
    pub fn new(me: HeadId, timing: Timing, reads: Reads, now: Nanos) -> Head {
        assert_eq!(timing.check(), Ok(()), "the times of a pair fit together");
        let role = Role::Booting { proposed: None };
        Head { me, timing, reads, booted: now, register: None, asking: Asking::default(), role }
    }

    pub fn role(&self) -> RoleName {
        match &self.role {
            Role::Booting { .. } => RoleName::Booting,
            Role::Partner(_) => RoleName::Partner,
            Role::Owner(_) => RoleName::Owner,
            Role::Outside => RoleName::Outside,
        }
    }

    pub fn register(&self) -> Option<&Register> {
        self.register.as_ref()
    }

    /// The term in which this head is the owner.
    pub fn owned_term(&self) -> Option<Term> {
        self.owner().map(|owner| owner.term)
    }

    /// How the owner stands to its partner.
    pub fn relation(&self) -> Option<Relation> {
        self.owner().map(|owner| owner.relation)
    }

    fn owner(&self) -> Option<&Owner> {
        match &self.role {
            Role::Owner(owner) => Some(owner),
            _ => None,
        }
    }

    /// To be called at least every 50 ms. `write_waits` says since when the oldest write waits for the partner.
    pub fn on_tick(&mut self, now: Nanos, write_waits: Option<Nanos>, out: &mut Vec<Action>) {
        match &self.role {
            Role::Booting { .. } => self.tick_booting(now, out),
            Role::Partner(_) => self.tick_partner(now, out),
            Role::Owner(_) => self.tick_owner(now, write_waits, out),
            Role::Outside => self.look(now, self.timing.look, out),
        }
    }

    /// The register has answered a question of this start; `content` is what it held after the question.
    pub fn on_register(&mut self, now: Nanos, content: Register, out: &mut Vec<Action>) {
        self.asking.on_answered(now);
        match &self.role {
            Role::Booting { .. } => self.settle(now, content, out),
            _ => self.learn(now, content, out),
        }
    }

    /// The other head has sent this.
    pub fn on_message(&mut self, now: Nanos, message: Message, out: &mut Vec<Action>) {
        // nothing but the register's own answer ends a boot: what others say may be of an earlier time
        if matches!(self.role, Role::Booting { .. } | Role::Outside) {
            return;
        }
        match message {
            Message::Heartbeat { register, sent } => self.on_heartbeat(now, register, sent, out),
            Message::HeartbeatAnswer { term, sent } => self.on_heartbeat_answer(now, term, sent, out),
            Message::Changed(register) => self.learn(now, register, out),
            Message::Look => self.on_look(now, out),
        }
    }

    pub fn on_store(&mut self, now: Nanos, event: StoreEvent, out: &mut Vec<Action>) {
        if matches!(self.role, Role::Owner(_)) {
            self.on_store_of_owner(now, event, out);
        }
    }

    /// Whether the own copy takes writes of the owner of this term.
    pub fn accepts(&self, term: Term) -> bool {
        match &self.role {
            Role::Partner(partner) => partner.answers() && self.known().term == term,
            _ => false,
        }
    }

    /// What a partner puts on a command that it forwards: the owner's clock, as heard last.
    pub fn stamp(&self) -> Option<Stamp> {
        match &self.role {
            Role::Partner(partner) => partner.heard_sent.map(|at| Stamp { term: self.known().term, at }),
            _ => None,
        }
    }

    fn known(&self) -> Register {
        self.register.expect("only a head that boots knows nothing of the register")
    }

    /// Looks at the register if the last question was asked `pause` ago.
    fn look(&mut self, now: Nanos, pause: Nanos, out: &mut Vec<Action>) {
        self.ask(now, pause, Question::Read, out);
    }

    fn ask(&mut self, now: Nanos, pause: Nanos, question: Question, out: &mut Vec<Action>) {
        if self.asking.may_ask(now, pause) {
            self.asking.on_asked(now);
            out.push(Action::Ask(question));
        }
    }

    /// Asks for `new` in place of what is known.
    fn swap(&mut self, now: Nanos, pause: Nanos, new: Register, out: &mut Vec<Action>) {
        let expected = self.known().revision;
        self.ask(now, pause, Question::CompareAndSet { expected, new }, out);
    }

    /// Something that the register held was heard of, from the register or from the other head.
    fn learn(&mut self, now: Nanos, content: Register, out: &mut Vec<Action>) {
        if content.revision <= self.known().revision {
            return;
        }
        let before = self.register.replace(content);
        if content.other(self.me).is_none() {
            if matches!(self.role, Role::Owner(_)) {
                out.push(Action::Store(StoreOrder::Demote));
            }
            self.role = Role::Outside;
            out.push(Action::Note(Decision::Forgotten));
            return;
        }
        match &mut self.role {
            Role::Owner(owner) if owner.term == content.term => self.on_change_of_own_term(now, content, out),
            Role::Owner(_) => {
                out.push(Action::Store(StoreOrder::Demote));
                out.push(Action::Note(Decision::LostOwnership));
                self.become_partner(now, out);
            }
            Role::Partner(partner) => {
                partner.on_change(before.is_some_and(|before| before.term == content.term));
                if content.owner == self.me {
                    self.become_owner(now, out);
                }
            }
            Role::Outside => self.become_partner(now, out),
            Role::Booting { .. } => unreachable!("a head that boots settles"),
        }
    }

    fn become_partner(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.role = Role::Partner(Partner::new(now));
        if self.known().owner == self.me {
            self.become_owner(now, out);
        }
    }

    /// The register says that this head is the owner, in a term that it has not used.
    fn become_owner(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let content = self.known();
        assert_eq!(content.owner, self.me, "the register names the owner");
        let ready_at = match &self.role {
            Role::Partner(partner) => partner.heard + self.timing.grace,
            _ => self.booted + self.timing.grace,
        };
        let decision = match (&self.role, content.in_sync) {
            (Role::Booting { .. }, _) => Decision::Restarted,
            (_, true) => Decision::ReceivedHandover,
            (_, false) if content.written_by == self.me => Decision::TookOver,
            (_, false) => Decision::GotBack,
        };
        out.push(Action::Note(decision));
        let relation = if content.in_sync { Relation::InSync } else { Relation::Alone };
        out.push(Action::Store(StoreOrder::Recover { term: content.term }));
        out.push(Action::Store(StoreOrder::Commit(relation.commit_rule())));
        self.role = Role::Owner(Owner {
            term: content.term,
            relation,
            phase: Phase::Recovering,
            other_has_all: decision != Decision::Restarted,
            ready_at,
            since: now,
            answered: None,
            heartbeat_at: now,
            swap_is_open: false,
        });
    }
}
