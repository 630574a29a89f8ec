//! The checkers: what an acknowledgement and a read must be true of.

use std::collections::BTreeMap;

use base::Nanos;
use pair::{Register, Term};

use crate::copy::Cell;
use crate::hosts::{BLOCKS, Hosts};
use crate::node::Node;
use crate::recovery::recover;

#[derive(Debug, Default)]
pub struct Checks {
    pub failure: Option<String>,
    /// Who has acknowledged in a term: head and start.
    by_term: BTreeMap<Term, (usize, u64)>,
    pub first_service: Option<Nanos>,
}

impl Checks {
    pub fn fail(&mut self, now: Nanos, what: String) {
        if self.failure.is_none() {
            self.failure = Some(format!("at {now:?}: {what}"));
        }
    }

    /// Entry `number` is acknowledged by this head.
    pub fn on_acknowledged(
        &mut self,
        now: Nanos,
        at: usize,
        term: Term,
        (number, cell): (u64, Cell),
        register: &Register,
        nodes: &[Node; 2],
    ) {
        let start = nodes[at].start;
        let first = *self.by_term.entry(term).or_insert((at, start));
        if first != (at, start) {
            self.fail(now, format!("two acknowledge in {term:?}: {first:?} and {:?}", (at, start)));
        }
        for node in nodes.iter().filter(|node| register.is_in_sync(node.id)) {
            if !node.copy.has_durably(number, cell) {
                let what = format!(
                    "{register:?} calls {} in sync, which lacks the acknowledged {number} {cell:?}",
                    node.id
                );
                self.fail(now, what);
            }
        }
        self.first_service = self.first_service.or(Some(now));
    }

    pub fn on_read(&mut self, now: Nanos, at: usize, block: usize, floor: u64, got: u64, hosts: &mut Hosts) {
        if got < floor {
            self.fail(
                now,
                format!("stale read by head {at}: block {block} gave {got}, which was {floor} before"),
            );
        }
        if got > hosts.issued[block] {
            self.fail(now, format!("head {at} read {got} from block {block}, which was never written"));
        }
        hosts.floor[block] = hosts.floor[block].max(got);
    }

    /// The register has changed.
    pub fn on_change(&mut self, now: Nanos, before: &Register, new: &Register) {
        let is_taken_over = new.owner != before.owner && new.written_by == new.owner;
        if is_taken_over && before.maintenance.is_some() {
            self.fail(now, format!("{} took over during maintenance", new.owner));
        }
    }

    /// The register calls a head in sync that it did not call so before.
    pub fn on_joined(&mut self, now: Nanos, node: &Node, hosts: &Hosts) {
        match recover(&node.copy, node.id, true) {
            Ok(recovered) => {
                for block in 0..BLOCKS {
                    let has = recovered.blocks.get(&block).copied().unwrap_or(0);
                    if has < hosts.acknowledged[block] {
                        let acknowledged = hosts.acknowledged[block];
                        self.fail(
                            now,
                            format!(
                                "{} joined with block {block} = {has}, {acknowledged} is acknowledged",
                                node.id
                            ),
                        );
                    }
                }
            }
            Err(why) => self.fail(now, format!("{} joined: {why}", node.id)),
        }
    }

    /// All is quiet: both copies are equal, and hold what is acknowledged.
    pub fn at_rest(&mut self, now: Nanos, register: &Register, nodes: &[Node; 2], hosts: &Hosts) {
        if !register.in_sync {
            let roles = nodes.each_ref().map(|node| (node.head.role(), node.head.relation()));
            return self.fail(now, format!("the copy did not end: {register:?}, {roles:?}"));
        }
        let Some(log) = nodes.iter().filter_map(|node| node.log.as_ref()).max_by_key(|log| log.term) else {
            return self.fail(now, "nobody serves at the end".to_owned());
        };
        for number in 1..=log.top {
            let [one, other] = nodes.each_ref().map(|node| node.copy.cell(number));
            if one != other {
                return self.fail(now, format!("the copies differ: {number} is {one:?} and {other:?}"));
            }
        }
        for block in 0..BLOCKS {
            let has = log.blocks.get(&block).copied().unwrap_or(0);
            if has < hosts.acknowledged[block] {
                return self.fail(
                    now,
                    format!("block {block} is {has}, {} was acknowledged", hosts.acknowledged[block]),
                );
            }
        }
    }
}
