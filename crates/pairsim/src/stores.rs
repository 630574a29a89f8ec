//! What happens to the logs and the copies of the heads: orders of a head, recovery, writes to both copies, commits.

use base::Nanos;
use pair::{Action, StoreEvent, StoreOrder, Term};

use crate::copy::{Cell, Root};
use crate::hosts::Attempt;
use crate::log::{Far, Log};
use crate::recovery::recover;
use crate::world::{AtHead, Event, World};

/// Between two looks whether drives have come.
const LOOK: Nanos = Nanos::from_millis(20);

impl World {
    pub fn order(&mut self, at: usize, now: Nanos, order: StoreOrder) {
        self.note(|| format!("head {at}: {order:?}"));
        let (delay, node) = (Nanos::from_millis(self.prng.between(2, 30)), &mut self.nodes[at]);
        if let StoreOrder::Recover { term } = order {
            let start = Some(node.start);
            return self.at(delay, Event::Head { at, start, what: AtHead::Recover(term) });
        }
        // what is ordered before the log is recovered, it takes from the head's state then
        let Some(log) = &mut node.log else { return };
        match order {
            StoreOrder::Recover { .. } => unreachable!("handled above"),
            StoreOrder::Commit(rule) => log.set_rule(now, rule),
            StoreOrder::Copy => log.set_copying(true),
            StoreOrder::StopCopying => log.set_copying(false),
            StoreOrder::Joined => log.set_joined(),
            StoreOrder::Drain => log.begin_drain(),
            StoreOrder::EndDrain => log.end_drain(),
            StoreOrder::Demote => {
                let waiting = !log.waiting.is_empty();
                node.forget();
                if waiting {
                    self.count("demoted with writes waiting");
                }
            }
        }
    }

    pub fn recover(&mut self, at: usize, now: Nanos, term: Term, out: &mut Vec<Action>) {
        let node = &mut self.nodes[at];
        if node.head.owned_term() != Some(term) {
            return;
        }
        if self.now < node.drives_come_at {
            node.head.give_back(now, out);
            let start = Some(node.start);
            return self.at(LOOK, Event::Head { at, start, what: AtHead::Recover(term) });
        }
        match recover(&node.copy, node.id, false) {
            Err(why) => self.checks.fail(self.now, why),
            Ok(recovered) => {
                let (stale, cut) = (recovered.ignored_stale, recovered.cut_off);
                let mut log = Log::new(term, node.id, now, node.copy.root(), recovered);
                log.set_rule(now, node.head.relation().expect("an owner has a relation").commit_rule());
                node.log = Some(log);
                if stale {
                    self.count("stale cell ignored");
                }
                if cut {
                    self.count("tail cut off");
                }
            }
        }
    }

    pub fn on_root_durable(
        &mut self,
        at: usize,
        now: Nanos,
        root: Root,
        term: Option<Term>,
        out: &mut Vec<Action>,
    ) {
        let node = &mut self.nodes[at];
        node.copy.settle_root(root);
        if let Some(term) = term {
            return self.send_to_other(at, AtHead::FarDurable(term, Far::Root(root)));
        }
        if let Some(log) = node.log.as_mut().filter(|log| log.term == root.term)
            && log.on_root_durable(root)
        {
            node.head.on_store(now, StoreEvent::Recovered { term: root.term }, out);
        }
    }

    /// What the owner of a term writes to the own copy.
    pub fn on_far(&mut self, at: usize, term: Term, far: Far) {
        let delay = self.drive_delay(at);
        let node = &mut self.nodes[at];
        if !node.head.accepts(term) {
            return self.count("write of another term refused");
        }
        let start = Some(node.start);
        let term = Some(term);
        let what = match far {
            Far::Write { number, cell } => {
                node.copy.write(number, cell);
                AtHead::CellDurable { number, cell, term }
            }
            Far::Root(root) => {
                node.copy.begin_root(root);
                AtHead::RootDurable { root, term }
            }
        };
        self.at(delay, Event::Head { at, start, what });
    }

    pub fn send_far(&mut self, at: usize) {
        let node = &self.nodes[at];
        let Some(log) = &node.log else { return };
        let term = log.term;
        for far in log.plan_far(&node.copy) {
            self.send_to_other(at, AtHead::Far(term, far));
        }
    }

    pub fn drive_delay(&mut self, at: usize) -> Nanos {
        let usual = Nanos::from_millis(if self.prng.chance(900) { 2 } else { 30 });
        self.nodes[at].drives_stall_until.saturating_sub(self.now) + usual
    }

    /// Commits, writes roots, and tells the head what has become true.
    pub fn drive_log(&mut self, at: usize, now: Nanos) {
        for _ in 0..8 {
            let node = &mut self.nodes[at];
            let Some(log) = &mut node.log else { return };
            let done = log.advance(&node.copy);
            let root = log.root_to_write();
            let event = log.event();
            let term = log.term;
            for (number, cell, waiting) in done {
                if let Some(waiting) = waiting {
                    self.acknowledge(at, now, term, (number, cell), waiting.attempt);
                }
            }
            if let Some(root) = root {
                self.nodes[at].copy.begin_root(root);
                let (delay, start) = (self.drive_delay(at), Some(self.nodes[at].start));
                self.at(delay, Event::Head { at, start, what: AtHead::RootDurable { root, term: None } });
            }
            let Some(event) = event else { return };
            let mut out = Vec::new();
            self.nodes[at].head.on_store(now, event, &mut out);
            self.carry_out(at, now, out);
        }
    }

    pub fn acknowledge(&mut self, at: usize, now: Nanos, term: Term, entry: (u64, Cell), attempt: Attempt) {
        if !self.nodes[at].head.may_acknowledge(now) {
            return;
        }
        self.checks.on_acknowledged(self.now, at, term, entry, &self.register, &self.nodes);
        self.note(|| format!("head {at}: acknowledges {entry:?} of {attempt:?}"));
        if self.hosts.awaits(attempt) {
            let Attempt { block, version, .. } = attempt;
            self.hosts.acknowledged[block] = version;
            self.hosts.floor[block] = self.hosts.floor[block].max(version);
            self.count("acknowledged");
            let pause = Nanos::from_millis(self.prng.between(5, 80));
            self.at(pause, Event::NextWrite(block));
        }
    }
}
