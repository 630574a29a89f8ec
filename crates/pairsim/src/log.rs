//! The log of an owner: a value that says what is to be written where. The world carries it out.

use std::collections::{BTreeMap, BTreeSet};

use base::{HeadId, Nanos};
use pair::{CommitRule, StoreEvent, Term};

use crate::copy::{Cell, Copy, Root};
use crate::hosts::Attempt;
use crate::recovery::Recovered;

/// Entries between two checkpoints.
const CHECKPOINT_EVERY: u64 = 20;
/// Entries on their way to the partner at a time.
const WINDOW: usize = 9;
/// So few entries are little.
const LITTLE: u64 = 4;

/// An entry that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub attempt: Attempt,
    /// On the head's clock.
    pub since: Nanos,
}

/// What an owner sends to the copy of its partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Far {
    Write { number: u64, cell: Cell },
    Root(Root),
}

#[derive(Debug)]
pub struct Log {
    pub term: Term,
    me: HeadId,
    /// The recovered state is durable under a root of this term.
    pub is_ready: bool,
    /// Last number written.
    pub top: u64,
    pub committed: u64,
    /// Committed versions.
    pub blocks: BTreeMap<usize, u64>,
    pub waiting: BTreeMap<u64, Waiting>,
    rule: CommitRule,
    is_copying: bool,
    pub is_draining: bool,
    told_drained: bool,
    matched: u64,
    /// Behind the first number that the partner lacks.
    far_durable: BTreeSet<u64>,
    /// The newest root of this term that the partner has.
    far_root: u64,
    /// The newest own root, and whether one is being written.
    pub root: Root,
    pub root_is_on_its_way: bool,
    /// The last root whose write was begun.
    started_root: u64,
    /// Since when something waits for the partner that no host waits for.
    covering_since: Nanos,
    told_covered: bool,
}

impl Log {
    pub fn new(term: Term, me: HeadId, now: Nanos, before: Root, recovered: Recovered) -> Log {
        let lacks_from = recovered.other_lacks_from;
        let root =
            Root { term, sequence: 1, upto: recovered.end, by: me, other_lacks_from: Some(lacks_from) };
        assert!(root.term > before.term, "each owner begins a term");
        Log {
            term,
            me,
            is_ready: false,
            top: recovered.end,
            committed: recovered.end,
            blocks: recovered.blocks,
            waiting: BTreeMap::new(),
            rule: CommitRule::Both,
            is_copying: false,
            is_draining: false,
            told_drained: false,
            matched: lacks_from - 1,
            far_durable: BTreeSet::new(),
            far_root: 0,
            root,
            root_is_on_its_way: true,
            started_root: 0,
            covering_since: now,
            told_covered: false,
        }
    }

    /// Everything up to here is durable at the partner.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// The partner's copy would recover what is matched.
    fn partner_follows(&self) -> bool {
        self.far_root > 0
    }

    pub fn set_rule(&mut self, now: Nanos, rule: CommitRule) {
        self.rule = rule;
        self.told_covered = false;
        match rule {
            CommitRule::Both => {
                self.covering_since = now;
                for waiting in self.waiting.values_mut() {
                    waiting.since = now;
                }
            }
            // every root that is written alone says so
            CommitRule::Own if self.root.other_lacks_from.is_none() => {
                let lacks_from = self.matched() + 1;
                self.next_root(Some(lacks_from));
            }
            CommitRule::Own => {}
        }
    }

    pub fn set_copying(&mut self, copying: bool) {
        self.is_copying = copying;
    }

    /// The partner is in sync: nothing is lacking.
    pub fn set_joined(&mut self) {
        self.next_root(None);
    }

    pub fn begin_drain(&mut self) {
        (self.is_draining, self.told_drained) = (true, false);
    }

    pub fn end_drain(&mut self) {
        self.is_draining = false;
    }

    /// Prepares a root; the caller writes it while `root_is_on_its_way`.
    fn next_root(&mut self, other_lacks_from: Option<u64>) {
        let upto = self.committed.max(self.root.upto);
        self.root =
            Root { term: self.term, sequence: self.root.sequence + 1, upto, by: self.me, other_lacks_from };
        self.root_is_on_its_way = true;
    }

    /// A root whose write is to be begun.
    pub fn root_to_write(&mut self) -> Option<Root> {
        let is_new = self.root.sequence > self.started_root;
        self.started_root = self.root.sequence;
        is_new.then_some(self.root)
    }

    /// A root is durable; whether it ends the recovery.
    pub fn on_root_durable(&mut self, root: Root) -> bool {
        if root == self.root {
            self.root_is_on_its_way = false;
        }
        let ends_recovery = !self.is_ready && root.term == self.term;
        self.is_ready |= ends_recovery;
        ends_recovery
    }

    /// What may be committed now.
    fn limit(&self, own_durable: u64) -> u64 {
        match self.rule {
            CommitRule::Both if self.partner_follows() => own_durable.min(self.matched()),
            CommitRule::Both => self.committed,
            CommitRule::Own => own_durable,
        }
    }

    /// Commits what may be; returns what waited for it.
    pub fn advance(&mut self, copy: &Copy) -> Vec<(u64, Cell, Option<Waiting>)> {
        let mut done = Vec::new();
        if !self.is_ready {
            return done;
        }
        let mut own_durable = self.committed;
        while copy.is_durable(own_durable + 1) && own_durable < self.top {
            own_durable += 1;
        }
        let limit = self.limit(own_durable);
        while self.committed < limit {
            self.committed += 1;
            let cell = copy.cell(self.committed).expect("what is durable is there");
            self.blocks.insert(cell.block, cell.version);
            done.push((self.committed, cell, self.waiting.remove(&self.committed)));
        }
        if !self.root_is_on_its_way && self.committed >= self.root.upto + CHECKPOINT_EVERY {
            self.next_root(self.root.other_lacks_from);
        }
        done
    }

    /// What the head must be told.
    pub fn event(&mut self) -> Option<StoreEvent> {
        if !self.is_ready {
            return None;
        }
        if self.is_copying && self.rule == CommitRule::Own {
            let lacking = self.top - self.matched().min(self.top);
            return (lacking <= LITTLE).then_some(StoreEvent::NearlyCopied);
        }
        let covered =
            self.rule == CommitRule::Both && self.partner_follows() && self.matched() >= self.committed;
        if covered && !self.told_covered {
            self.told_covered = true;
            return Some(StoreEvent::Covered);
        }
        if self.is_draining && !self.told_drained && self.waiting.is_empty() && self.matched() == self.top {
            if self.root.upto < self.top && !self.root_is_on_its_way {
                self.next_root(self.root.other_lacks_from);
            }
            let is_settled = self.root.upto == self.top && !self.root_is_on_its_way;
            if is_settled && self.far_root == self.root.sequence {
                self.told_drained = true;
                return Some(StoreEvent::Drained);
            }
        }
        None
    }

    /// Since when the oldest write, or the first coverage of the partner, waits.
    pub fn waits_since(&self) -> Option<Nanos> {
        let write = self.waiting.first_key_value().map(|(_, waiting)| waiting.since);
        let covers = self.rule == CommitRule::Both && self.is_ready && !self.told_covered;
        write.into_iter().chain(covers.then_some(self.covering_since)).min()
    }

    /// What is to be sent to the partner now. Sent again until it is answered.
    pub fn plan_far(&self, copy: &Copy) -> Vec<Far> {
        if !self.is_ready || (self.rule == CommitRule::Own && !self.is_copying) {
            return Vec::new();
        }
        let open = (self.matched + 1..=self.top).filter(|number| !self.far_durable.contains(number));
        let mut plan: Vec<Far> = open
            .take(WINDOW)
            .filter_map(|number| Some(Far::Write { number, cell: copy.cell(number)? }))
            .collect();
        // a root counts for the partner when it has everything below
        if !self.root_is_on_its_way && self.far_root < self.root.sequence && self.matched() >= self.root.upto
        {
            plan.push(Far::Root(self.root));
        }
        plan
    }

    /// New entries go to the partner at once.
    pub fn mirrors(&self) -> bool {
        self.is_ready && self.rule == CommitRule::Both
    }

    pub fn on_far_durable(&mut self, far: Far) {
        match far {
            Far::Write { number, .. } if number > self.matched => {
                self.far_durable.insert(number);
                while self.far_durable.remove(&(self.matched + 1)) {
                    self.matched += 1;
                }
            }
            Far::Write { .. } => {}
            Far::Root(root) => self.far_root = self.far_root.max(root.sequence),
        }
    }

    pub fn append(&mut self, attempt: Attempt, now: Nanos) -> (u64, Cell) {
        self.top += 1;
        self.waiting.insert(self.top, Waiting { attempt, since: now });
        (self.top, Cell { term: self.term, block: attempt.block, version: attempt.version })
    }
}
