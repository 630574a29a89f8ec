//! Hosts with two paths. Each block has one writer with one write outstanding: it is tried on one path, and after half a second on
//! the other, until it is acknowledged. Readers take either path.

use base::Nanos;
use pair::{Action, ReadPermit, Reads, RoleName, Stamp, Timing};

use crate::log::Far;
use crate::node::WaitingRead;
use crate::world::{AtHead, Event, World};

/// Blocks that are written.
pub const BLOCKS: usize = 3;
/// A host gives up a path after this time.
pub const PATH_TIMEOUT: Nanos = Nanos::from_millis(500);

/// A write on its way over one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    pub block: usize,
    pub version: u64,
    /// When the host sent it, in real time: it tells the attempts apart.
    pub sent: Nanos,
}

#[derive(Debug)]
pub struct Hosts {
    pub issued: [u64; BLOCKS],
    pub acknowledged: [u64; BLOCKS],
    /// When the attempt was sent that is not given up.
    pub current: [Nanos; BLOCKS],
    /// No read that begins now may be older.
    pub floor: [u64; BLOCKS],
    pub are_stopped: bool,
}

impl Hosts {
    pub fn new() -> Hosts {
        Hosts {
            issued: [0; BLOCKS],
            acknowledged: [0; BLOCKS],
            current: [Nanos(0); BLOCKS],
            floor: [0; BLOCKS],
            are_stopped: false,
        }
    }

    /// Whether the host still waits for this attempt.
    pub fn awaits(&self, attempt: Attempt) -> bool {
        attempt.version > self.acknowledged[attempt.block] && attempt.sent == self.current[attempt.block]
    }
}

impl World {
    pub fn next_write(&mut self, block: usize) {
        if self.hosts.are_stopped {
            return;
        }
        self.hosts.issued[block] += 1;
        let attempt = Attempt { block, version: self.hosts.issued[block], sent: self.now };
        let path = self.prng.index(2);
        self.host_write(attempt, path);
    }

    /// The host gives up an attempt, unless it has done so before.
    pub fn retry_write(&mut self, attempt: Attempt, path: usize) {
        if self.hosts.awaits(attempt) {
            self.host_write(attempt, path);
        }
    }

    /// A new attempt of a write that is not acknowledged.
    pub fn host_write(&mut self, attempt: Attempt, path: usize) {
        let attempt = Attempt { sent: self.now, ..attempt };
        self.hosts.current[attempt.block] = self.now;
        let what = AtHead::Write { attempt, stamp: None };
        self.at(Nanos::from_millis(1), Event::Head { at: path, start: None, what });
        self.at(PATH_TIMEOUT, Event::HostWrite(attempt, 1 - path));
    }

    pub fn next_read(&mut self) {
        let pause = Nanos::from_millis(self.prng.between(5, 40));
        self.at(pause, Event::NextRead);
        let (block, at) = (self.prng.index(BLOCKS), self.prng.index(2));
        let what = AtHead::Read { block, floor: self.hosts.floor[block], is_forwarded: false };
        self.at(Nanos::from_millis(1), Event::Head { at, start: None, what });
    }

    pub fn on_write(&mut self, at: usize, now: Nanos, attempt: Attempt, stamp: Option<Stamp>) {
        let forward = Timing::default().forward;
        let delay = self.drive_delay(at);
        let node = &mut self.nodes[at];
        if node.head.role() == RoleName::Partner {
            // forwarded once, with the owner's clock as heard last
            if let Some(heard) = node.head.stamp().filter(|_| stamp.is_none()) {
                self.send_to_other(at, AtHead::Write { attempt, stamp: Some(heard) });
            }
            return;
        }
        let is_fresh = match stamp {
            // not promised where the clock stops with the machine: nothing there can tell how old a command is
            Some(stamp) if !node.clock.stops => node.head.is_fresh(now, stamp),
            // a head that finds a gap in its own time drops its connections, and what they had sent
            _ => self.now - attempt.sent < forward,
        };
        if !is_fresh {
            return self.count("command too old");
        }
        if !node.head.serves(now) {
            // "not ready": the host tries again at once
            let pause = Nanos::from_millis(self.prng.between(5, 60));
            let path = self.prng.index(2);
            return self.at(pause, Event::HostWrite(attempt, path));
        }
        let log = node.log.as_mut().expect("a head that serves has a log");
        let (number, cell) = log.append(attempt, now);
        let (mirrors, term, start) = (log.mirrors(), log.term, Some(node.start));
        node.copy.write(number, cell);
        self.at(delay, Event::Head { at, start, what: AtHead::CellDurable { number, cell, term: None } });
        if mirrors {
            self.send_to_other(at, AtHead::Far(term, Far::Write { number, cell }));
        }
    }

    pub fn on_read(
        &mut self,
        at: usize,
        now: Nanos,
        block: usize,
        floor: u64,
        is_forwarded: bool,
        out: &mut Vec<Action>,
    ) {
        let node = &mut self.nodes[at];
        match node.head.role() {
            RoleName::Partner if !is_forwarded => {
                self.send_to_other(at, AtHead::Read { block, floor, is_forwarded: true });
            }
            RoleName::Owner => {
                node.waiting_reads.push(WaitingRead { block, floor, came: now });
                if node.head.may_read(now, now) == ReadPermit::AfterHeartbeat {
                    node.head.confirm_reads(now, out);
                }
            }
            _ => {}
        }
    }

    pub fn answer_waiting_reads(&mut self, at: usize, now: Nanos) {
        let node = &mut self.nodes[at];
        for read in std::mem::take(&mut node.waiting_reads) {
            let node = &mut self.nodes[at];
            let Some(log) = &node.log else { continue };
            match node.head.may_read(now, read.came) {
                ReadPermit::No => {}
                ReadPermit::AfterHeartbeat => node.waiting_reads.push(read),
                ReadPermit::Yes => {
                    let got = log.blocks.get(&read.block).copied().unwrap_or(0);
                    let was_confirmed = node.reads == Reads::Confirmed && read.came < now;
                    self.note(|| format!("head {at}: reads {got} from block {}", read.block));
                    self.checks.on_read(self.now, at, read.block, read.floor, got, &mut self.hosts);
                    self.count(if was_confirmed { "read confirmed by the partner" } else { "read" });
                }
            }
        }
    }
}
