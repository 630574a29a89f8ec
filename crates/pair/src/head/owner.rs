//! The owner: sends heartbeats, and knows whether writes may be acknowledged and reads answered.

use base::Nanos;

use super::{Action, Head, ReadPermit, Reads, Role};
use crate::decision::Decision;
use crate::message::{Message, Stamp};
use crate::register::{Register, Term};
use crate::relation::{Relation, Turn};
use crate::store::{StoreEvent, StoreOrder};

#[derive(Debug)]
pub(super) struct Owner {
    pub(super) term: Term,
    pub(super) relation: Relation,
    pub(super) phase: Phase,
    /// The other head was the owner in the term before, so it has everything until this one serves.
    pub(super) other_has_all: bool,
    /// Hosts are served from then on: the lease that this head gave an earlier owner has ended.
    pub(super) ready_at: Nanos,
    /// When this head became the owner, or has learned of a change of its relation.
    pub(super) since: Nanos,
    /// When the last heartbeat was sent that the partner has answered.
    pub(super) answered: Option<Nanos>,
    /// The next heartbeat is due.
    pub(super) heartbeat_at: Nanos,
    /// A handover was given up whose swap may still win.
    pub(super) swap_is_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The log reads its own copy.
    Recovering,
    /// The own copy is not there, and the other head was asked for. `is_recovered`: it has come all the same.
    GivingBack {
        is_recovered: bool,
    },
    /// In sync from the start, after a handover: what is in the log counts when the partner has all of it.
    Covering,
    Serving,
    /// For a handover: no new commands.
    Draining {
        until: Nanos,
    },
    /// The swap was sent.
    HandingOver {
        until: Nanos,
    },
}

impl Owner {
    /// Whether the partner answers nothing, or leaves a write waiting.
    fn partner_is_silent(
        &self,
        now: Nanos,
        silence: Nanos,
        write_wait: Nanos,
        write_waits: Option<Nanos>,
    ) -> bool {
        let heard = self.answered.map_or(self.since, |answered| answered.max(self.since));
        let waits_too_long = |since: Nanos| now.saturating_sub(since.max(self.since)) > write_wait;
        now.saturating_sub(heard) > silence || write_waits.is_some_and(waits_too_long)
    }
}

impl Head {
    /// Whether hosts' commands are taken.
    pub fn serves(&self, now: Nanos) -> bool {
        self.owner().is_some_and(|owner| owner.phase == Phase::Serving && now >= owner.ready_at)
    }

    /// Whether what the log has committed may be acknowledged.
    pub fn may_acknowledge(&self, now: Nanos) -> bool {
        self.owner().is_some_and(|owner| owner.may_answer(now))
    }

    /// Whether a read that came at `came` may be answered with committed data.
    pub fn may_read(&self, now: Nanos, came: Nanos) -> ReadPermit {
        let Some(owner) = self.owner().filter(|owner| owner.may_answer(now)) else { return ReadPermit::No };
        if !owner.relation.reads_need_partner() {
            return ReadPermit::Yes;
        }
        match self.reads {
            Reads::Leased if owner.answered.is_some_and(|sent| now < sent + self.timing.lease) => {
                ReadPermit::Yes
            }
            Reads::Leased => ReadPermit::No,
            Reads::Confirmed if owner.answered.is_some_and(|sent| sent >= came) => ReadPermit::Yes,
            Reads::Confirmed => ReadPermit::AfterHeartbeat,
        }
    }

    /// Until when what answers hosts may be sent without asking again; `None`: nothing may be sent now. With [`Reads::Confirmed`] an
    /// owner that is in sync never may.
    pub fn answers_until(&self, now: Nanos) -> Option<Nanos> {
        let owner = self.owner().filter(|owner| owner.may_answer(now))?;
        if !owner.relation.reads_need_partner() {
            return Some(Nanos::MAX);
        }
        let lease = |sent: Nanos| sent + self.timing.lease;
        owner.answered.filter(|_| self.reads == Reads::Leased).map(lease).filter(|&until| now < until)
    }

    /// The partner's copy could not serve.
    pub fn on_partner_unfit(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if matches!(self.role, Role::Owner(_)) {
            self.turn(now, Turn::PartnerIsSilent, out);
        }
    }

    /// Sends a heartbeat at once, for reads that wait for one.
    pub fn confirm_reads(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if matches!(self.role, Role::Owner(_)) {
            self.send_heartbeat(now, out);
        }
    }

    /// Whether a forwarded command is young enough to take effect.
    pub fn is_fresh(&self, now: Nanos, stamp: Stamp) -> bool {
        self.owner().is_some_and(|owner| stamp.is_fresh(owner.term, now, self.timing.forward))
    }

    pub(super) fn owner_mut(&mut self) -> &mut Owner {
        match &mut self.role {
            Role::Owner(owner) => owner,
            _ => unreachable!("called for an owner"),
        }
    }

    pub(super) fn tick_owner(&mut self, now: Nanos, write_waits: Option<Nanos>, out: &mut Vec<Action>) {
        if now >= self.owner_mut().heartbeat_at {
            self.send_heartbeat(now, out);
        }
        self.tick_handover(now, out);
        let (silence, write_wait) = (self.timing.partner_silence, self.timing.write_wait);
        let owner = self.owner_mut();
        let write_waits = write_waits.filter(|_| owner.relation.commit_rule() == crate::CommitRule::Both);
        if !matches!(owner.phase, Phase::HandingOver { .. } | Phase::GivingBack { .. })
            && owner.partner_is_silent(now, silence, write_wait, write_waits)
        {
            self.turn(now, Turn::PartnerIsSilent, out);
        }
        self.ask_as_owner(now, out);
    }

    /// Asks what the relation calls for; else has a look, because an answer may be lost, and the partner may own the array.
    pub(super) fn ask_as_owner(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let register = self.known();
        let owner = self.owner_mut();
        let new = match (owner.phase, owner.relation) {
            (Phase::HandingOver { .. }, _) => Some(register.handed_over()),
            (Phase::GivingBack { .. }, _) => Some(register.given_back()),
            (_, Relation::JoinAsked) => Some(register.joined()),
            (_, Relation::Leaving) => Some(register.left()),
            _ if owner.swap_is_open => Some(register.confirmed()),
            _ => None,
        };
        match new {
            Some(new) => self.swap(now, self.timing.question, new, out),
            None => self.look(now, self.timing.look, out),
        }
    }

    pub(super) fn send_heartbeat(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let (register, interval) = (self.known(), self.timing.heartbeat);
        let owner = self.owner_mut();
        owner.heartbeat_at = now + interval;
        out.push(Action::Send(Message::Heartbeat { register, sent: now }));
    }

    pub(super) fn on_heartbeat_answer(&mut self, now: Nanos, term: Term, sent: Nanos, out: &mut Vec<Action>) {
        let silence = self.timing.partner_silence;
        let Role::Owner(owner) = &mut self.role else { return };
        if owner.term != term || sent > now {
            return;
        }
        owner.answered = owner.answered.max(Some(sent));
        let is_recent = now.saturating_sub(sent) <= silence;
        if is_recent && matches!(owner.phase, Phase::Serving) {
            self.turn(now, Turn::PartnerAnswers, out);
        }
    }

    /// The register has a newer revision of the own term.
    pub(super) fn on_change_of_own_term(&mut self, now: Nanos, content: Register, out: &mut Vec<Action>) {
        self.owner_mut().swap_is_open = false;
        self.end_handover(now, out);
        self.turn(now, Turn::Register { in_sync: content.in_sync }, out);
        self.end_giving_back(now, out);
    }

    pub(super) fn on_store_of_owner(&mut self, now: Nanos, event: StoreEvent, out: &mut Vec<Action>) {
        let owner = self.owner_mut();
        match event {
            StoreEvent::Recovered { term } if term == owner.term && owner.phase == Phase::Recovering => {
                let waits = owner.relation.commit_rule() == crate::CommitRule::Both;
                owner.phase = if waits { Phase::Covering } else { Phase::Serving };
            }
            StoreEvent::Recovered { .. } => {
                if let Phase::GivingBack { is_recovered } = &mut owner.phase {
                    *is_recovered = true;
                }
            }
            StoreEvent::NearlyCopied => self.turn(now, Turn::NearlyCopied, out),
            StoreEvent::Covered => {
                if owner.phase == Phase::Covering {
                    owner.phase = Phase::Serving;
                    // the partner follows this term, so it answers nothing as an owner any more
                    owner.ready_at = now;
                    if owner.relation == Relation::InSync {
                        out.push(Action::Store(StoreOrder::Joined));
                    }
                }
                self.turn(now, Turn::Covered, out);
            }
            StoreEvent::Drained => self.on_drained(now, out),
        }
    }

    /// Changes the relation, and tells the log what follows from it.
    pub(super) fn turn(&mut self, now: Nanos, turn: Turn, out: &mut Vec<Action>) {
        let owner = self.owner_mut();
        let before = owner.relation;
        let after = before.after(turn);
        if after == before {
            return;
        }
        owner.relation = after;
        owner.since = now;
        match after {
            Relation::Alone => out.push(Action::Store(StoreOrder::StopCopying)),
            Relation::Copying => out.push(Action::Store(StoreOrder::Copy)),
            Relation::InSync => out.push(Action::Store(StoreOrder::Joined)),
            Relation::Joining | Relation::JoinAsked | Relation::Leaving => {}
        }
        out.extend(decision(before, after).map(Action::Note));
        if after.commit_rule() != before.commit_rule() {
            out.push(Action::Store(StoreOrder::Commit(after.commit_rule())));
        }
        if after == Relation::Alone && owner.phase == Phase::Covering {
            owner.phase = Phase::Serving;
        }
        if matches!(after, Relation::JoinAsked | Relation::Leaving) {
            // a question that is open was asked for what has changed
            let new = if after == Relation::JoinAsked { self.known().joined() } else { self.known().left() };
            self.swap(now, Nanos(0), new, out);
        }
    }
}

fn decision(before: Relation, after: Relation) -> Option<Decision> {
    match (before, after) {
        (Relation::Joining, Relation::Alone) => Some(Decision::GaveUpJoin),
        (Relation::Copying, Relation::Alone) => None,
        (_, Relation::Alone) => Some(Decision::WentAlone),
        (_, Relation::Copying) => Some(Decision::BeganCopy),
        (_, Relation::Joining) => Some(Decision::BeganJoin),
        (_, Relation::InSync) => Some(Decision::Joined),
        (_, Relation::JoinAsked | Relation::Leaving) => None,
    }
}

impl Owner {
    fn may_answer(&self, now: Nanos) -> bool {
        !matches!(self.phase, Phase::Recovering | Phase::GivingBack { .. } | Phase::Covering)
            && now >= self.ready_at
    }
}
