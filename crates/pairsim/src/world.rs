//! Time, events, and what a head's actions do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use base::prng::Prng;
use base::{HeadId, Nanos};
use pair::{Action, Decision, Head, Message, Question, Reads, Register, Revision, Stamp, Term, Timing};

use crate::checks::Checks;
use crate::copy::{Cell, Copy, Root};
use crate::hosts::{Attempt, BLOCKS, Hosts};
use crate::log::{Far, Log};
use crate::network::{Network, REGISTER};
use crate::node::{Clock, Node};
use crate::trouble::Troubles;
use crate::wire::Wire;

/// Between two ticks of a head.
const TICK: Nanos = Nanos::from_millis(25);

/// What reaches a head.
#[derive(Clone, Copy, Debug)]
pub enum AtHead {
    Tick,
    Answered(Register),
    Message(Message),
    Far(Term, Far),
    FarDurable(Term, Far),
    /// The own drives have written a cell; of a partner, for the owner of this term.
    CellDurable {
        number: u64,
        cell: Cell,
        term: Option<Term>,
    },
    RootDurable {
        root: Root,
        term: Option<Term>,
    },
    Recover(Term),
    HandOver,
    Write {
        attempt: Attempt,
        stamp: Option<Stamp>,
    },
    Read {
        block: usize,
        floor: u64,
        is_forwarded: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// For this start of the head only; `None`: for whichever runs.
    Head {
        at: usize,
        start: Option<u64>,
        what: AtHead,
    },
    Register {
        from: usize,
        start: u64,
        question: Question,
    },
    HostWrite(Attempt, usize),
    NextWrite(usize),
    NextRead,
    Trouble,
    Boot(usize),
    Kill(usize),
}

pub struct World {
    pub now: Nanos,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: BTreeMap<u64, Event>,
    next_event: u64,
    pub prng: Prng,
    pub nodes: [Node; 2],
    pub register: Register,
    pub network: Network,
    wire: Wire,
    pub troubles: Troubles,
    pub hosts: Hosts,
    pub checks: Checks,
    pub counts: BTreeMap<&'static str, u64>,
    traced: bool,
    pub trace: Vec<String>,
}

impl World {
    pub fn new(seed: u64, traced: bool) -> World {
        let mut prng = Prng::new(seed);
        let ids = [HeadId(1), HeadId(2)];
        let register =
            Register { revision: Revision(2), ..Register::first(ids[0], ids[1], Term(1)).joined() };
        let root = Root { term: Term(1), sequence: 1, upto: 0, by: ids[0], other_lacks_from: None };
        // a run in eight is of virtual machines whose clocks stop with them
        let stops = prng.chance(125);
        let reads = if stops || prng.chance(100) { Reads::Confirmed } else { Reads::Leased };
        let nodes = ids.map(|id| {
            let error = *prng.pick(&[0, 1, 50]) as i64;
            let error_permille = if prng.chance(500) { error } else { -error };
            let offset = Nanos::from_millis(prng.below(100_000));
            let clock = Clock { error_permille, stops, started: Nanos(0), offset, stopped: Nanos(0) };
            Node {
                id,
                is_up: false,
                start: 0,
                paused_until: Nanos(0),
                drives_stall_until: Nanos(0),
                drives_come_at: Nanos(0),
                head: Head::new(id, Timing::default(), reads, clock.at(Nanos(0))),
                clock,
                reads,
                copy: Copy::new(root),
                log: None,
                waiting_reads: Vec::new(),
            }
        });
        let troubles = Troubles::choose(&mut prng);
        let mut trace = Vec::new();
        if traced {
            trace.push(format!(
                "reads: {reads:?}; clocks: {:?}",
                nodes.each_ref().map(|node: &Node| &node.clock)
            ));
        }
        World {
            now: Nanos(0),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            prng,
            nodes,
            register,
            network: Network::default(),
            wire: Wire::new(ids),
            troubles,
            hosts: Hosts::new(),
            checks: Checks::default(),
            counts: BTreeMap::new(),
            traced,
            trace,
        }
    }

    pub fn begin(&mut self) {
        self.begin_without_trouble();
        self.at(Nanos::from_millis(1500), Event::Trouble);
    }

    pub fn begin_without_trouble(&mut self) {
        self.boot(0);
        self.boot(1);
        for block in 0..BLOCKS {
            self.at(Nanos::from_millis(10 * block as u64), Event::NextWrite(block));
        }
        self.at(Nanos(0), Event::NextRead);
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_insert(0) += 1;
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if self.traced {
            self.trace.push(format!("{:?} {}", self.now, what()));
        }
    }

    pub fn at(&mut self, after: Nanos, event: Event) {
        let number = self.next_event;
        self.next_event += 1;
        self.events.insert(number, event);
        self.queue.push(Reverse((self.now + after, number)));
    }

    pub fn run_until(&mut self, end: Nanos) {
        while self.checks.failure.is_none() {
            let Some(&Reverse((time, number))) = self.queue.peek() else { break };
            if time > end {
                break;
            }
            self.queue.pop();
            self.now = time;
            let event = self.events.remove(&number).expect("each event happens once");
            self.happen(event);
        }
        self.now = self.now.max(end);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Head { at, start, what } => self.reach(at, start, what),
            Event::Register { from, start, question } => self.ask_register(from, start, question),
            Event::HostWrite(attempt, path) => self.retry_write(attempt, path),
            Event::NextWrite(block) => self.next_write(block),
            Event::NextRead => self.next_read(),
            Event::Trouble => self.trouble(),
            // after the trouble, the run itself says who is up
            Event::Boot(_) | Event::Kill(_) if self.network.is_calm => {}
            Event::Boot(at) => self.boot(at),
            Event::Kill(at) => self.kill(at),
        }
    }

    // ---- heads

    /// Something reaches a head: lost if it is down or has started anew, later if it stands still.
    fn reach(&mut self, at: usize, start: Option<u64>, what: AtHead) {
        let node = &self.nodes[at];
        if !node.is_up || start.is_some_and(|start| start != node.start) {
            return;
        }
        if node.paused_until > self.now {
            let wait = node.paused_until - self.now;
            let start = Some(node.start);
            return self.at(wait, Event::Head { at, start, what });
        }
        let now = node.local(self.now);
        let mut out = Vec::new();
        self.handle(at, now, what, &mut out);
        self.carry_out(at, now, out);
        self.drive_log(at, now);
        self.answer_waiting_reads(at, now);
    }

    fn handle(&mut self, at: usize, now: Nanos, what: AtHead, out: &mut Vec<Action>) {
        let node = &mut self.nodes[at];
        match what {
            AtHead::Tick => {
                let waits = node.log.as_ref().and_then(Log::waits_since);
                node.head.on_tick(now, waits, out);
                let start = Some(node.start);
                self.at(TICK, Event::Head { at, start, what: AtHead::Tick });
                self.send_far(at);
            }
            AtHead::Answered(content) => node.head.on_register(now, content, out),
            AtHead::Message(message) => node.head.on_message(now, message, out),
            AtHead::Far(term, far) => self.on_far(at, term, far),
            AtHead::FarDurable(term, far) => {
                if let Some(log) = node.log.as_mut().filter(|log| log.term == term) {
                    log.on_far_durable(far);
                }
            }
            AtHead::CellDurable { number, cell, term } => {
                node.copy.settle(number, cell);
                if let Some(term) = term {
                    self.send_to_other(at, AtHead::FarDurable(term, Far::Write { number, cell }));
                }
            }
            AtHead::RootDurable { root, term } => self.on_root_durable(at, now, root, term, out),
            AtHead::Recover(term) => self.recover(at, now, term, out),
            AtHead::HandOver => {
                let _refused = node.head.hand_over(now, out);
            }
            AtHead::Write { attempt, stamp } => self.on_write(at, now, attempt, stamp),
            AtHead::Read { block, floor, is_forwarded } => {
                self.on_read(at, now, block, floor, is_forwarded, out)
            }
        }
    }

    pub fn carry_out(&mut self, at: usize, now: Nanos, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ask(question) => {
                    if let Some(delay) = self.network.delay(self.now, at, REGISTER, &mut self.prng) {
                        let start = self.nodes[at].start;
                        self.at(delay, Event::Register { from: at, start, question });
                    }
                }
                Action::Send(message) => {
                    let arrives = self.wire.carry(at, message);
                    assert_eq!(arrives, message, "a link changes nothing");
                    self.send_to_other(at, AtHead::Message(arrives));
                }
                Action::Store(order) => self.order(at, now, order),
                Action::Note(decision) => {
                    self.note(|| format!("head {at}: {}", decision.name()));
                    self.count(decision.name());
                    if decision == Decision::Forgotten {
                        self.checks.fail(self.now, format!("head {at} was forgotten"));
                    }
                }
            }
        }
    }

    /// Sends something to the other head, over the connection between these two starts.
    pub fn send_to_other(&mut self, at: usize, what: AtHead) {
        let other = 1 - at;
        if let Some(delay) = self.network.delay(self.now, at, other, &mut self.prng) {
            let start = Some(self.nodes[other].start);
            self.at(delay, Event::Head { at: other, start, what });
        }
    }

    pub fn boot(&mut self, at: usize) {
        let (now, node) = (self.now, &mut self.nodes[at]);
        if node.is_up {
            return;
        }
        node.start += 1;
        if self.prng.chance(500) {
            node.clock.restart(now, Nanos::from_millis(self.prng.below(5_000)));
        }
        node.boot(now);
        let start = Some(node.start);
        self.note(|| format!("head {at} starts"));
        self.at(Nanos::from_millis(10), Event::Head { at, start, what: AtHead::Tick });
    }

    pub fn kill(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.is_up {
            node.is_up = false;
            if node.clock.stops {
                let rest = node.paused_until.saturating_sub(self.now);
                node.clock.stopped = node.clock.stopped - rest;
            }
            node.paused_until = Nanos(0);
            node.copy.crash(&mut self.prng);
            node.forget();
            self.note(|| format!("head {at} dies"));
        }
    }

    // ---- the register

    fn ask_register(&mut self, from: usize, start: u64, question: Question) {
        if self.network.is_cut(self.now, from, REGISTER) {
            return;
        }
        let wait = self.network.register_wait(self.now);
        if wait > Nanos(0) {
            return self.at(wait, Event::Register { from, start, question });
        }
        if let Question::CompareAndSet { expected, new } = question
            && expected == self.register.revision
        {
            self.change_register(from, new);
        }
        let content = self.register;
        if let Some(delay) = self.network.delay(self.now, REGISTER, from, &mut self.prng) {
            self.at(delay, Event::Head { at: from, start: Some(start), what: AtHead::Answered(content) });
        }
    }

    pub fn change_register(&mut self, from: usize, new: Register) {
        let before = std::mem::replace(&mut self.register, new);
        self.note(|| format!("register: {new:?}"));
        self.checks.on_change(self.now, &before, &new);
        if new.term > before.term && new.in_sync {
            self.count(if self.nodes[from].head.is_handing_over() {
                "handover won"
            } else {
                "handover won late"
            });
        }
        for at in 0..2 {
            let id = self.nodes[at].id;
            if new.is_in_sync(id) && !before.is_in_sync(id) {
                self.checks.on_joined(self.now, &self.nodes[at], &self.hosts);
            }
        }
    }

    // ---- the end of a run

    pub fn stop_hosts(&mut self) {
        self.hosts.are_stopped = true;
    }

    pub fn check_service(&mut self, dead: Option<usize>) {
        let may_serve = dead.is_none_or(|dead| self.register.is_in_sync(self.nodes[1 - dead].id));
        if self.checks.first_service.is_none() && may_serve {
            let heads: Vec<_> =
                self.nodes.iter().map(|node| (node.is_up, node.head.role(), node.head.relation())).collect();
            let what = format!("no service after healing; dead: {dead:?}; {:?}; {heads:?}", self.register);
            self.checks.fail(self.now, what);
        }
    }

    pub fn check_rest(&mut self) {
        self.checks.at_rest(self.now, &self.register, &self.nodes, &self.hosts);
    }
}
