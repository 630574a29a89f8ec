//! An owner and a partner. The register is one value, and a head that is cut off leaves at once.

mod partner;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::prng::Prng;
use env::IoError;
use pair::{CommitRule, StoreEvent};

use super::drives::{Drive, check_marks};
use super::met::Met;
use crate::geometry::Geometry;
use crate::order::{CopyError, CopyId, Order, OwnDrive, RequestId};
use crate::owner::Mirror;
use crate::record::{Record, Synchrony, TwinId};
use crate::side::Side;
use crate::twin::TwinState;

const DRIVES: usize = 2;
const BLOCK_BYTES: u64 = 4096;
const BLOCKS: usize = 96;
const PIECE_BLOCKS: u64 = 2;
const REGION_BLOCKS: u64 = 8;

fn geometry() -> Geometry {
    Geometry::new(BLOCKS as u64 * BLOCK_BYTES, REGION_BLOCKS * BLOCK_BYTES, PIECE_BLOCKS * BLOCK_BYTES)
}

fn id(drive: usize) -> TwinId {
    TwinId(drive as u128 + 1)
}

fn mirror_of(records: Vec<Option<Record>>) -> Mirror {
    let mut mirror = Mirror::new(1);
    for (drive, record) in records.into_iter().enumerate() {
        mirror.add(drive, OwnDrive { id: id(drive), geometry: geometry(), record });
    }
    mirror
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Alone,
    Copying,
    Joining,
    InSync,
}

#[derive(Clone, Debug)]
enum Operation {
    Write { first: usize, count: usize, value: u64, durable: bool },
    Flush { covers: Vec<u64> },
}

#[derive(Clone, Debug)]
struct Request {
    drive: usize,
    operation: Operation,
}

enum OwnWork {
    Request(RequestId),
    Record(usize, Record),
    Read { copy: CopyId, drive: usize, first: usize, count: usize },
}

#[derive(Clone, Debug)]
enum Far {
    Request(RequestId, Request),
    Copy { copy: CopyId, drive: usize, first: usize, values: Vec<u64> },
    Joined { synchrony: Synchrony, drives: Vec<usize> },
}

pub struct World {
    prng: Prng,
    sides: [Vec<Drive>; 2],
    owner: usize,
    phase: Phase,
    mirror: Mirror,
    requests: BTreeMap<RequestId, Request>,
    own_work: Vec<OwnWork>,
    wire: VecDeque<Far>,
    /// At the partner, and whether the connection that brought it still stands.
    far_work: Vec<(Far, bool)>,
    /// What the partner has done, and whether its drive took it.
    answers: Vec<(Far, bool)>,
    /// Drives of the partner that have failed.
    failed: [bool; DRIVES],
    /// How often each was opened.
    openings: [u64; DRIVES],
    /// What of that the owner knows.
    known_openings: [u64; DRIVES],
    is_connected: bool,
    /// The partner is unfit, and the register does not know yet.
    must_leave: bool,
    /// Requests that the partner has answered well.
    far_done: BTreeSet<RequestId>,
    side: Side,
    starts: u64,
    seen_start: u64,
    last: u64,
    /// The newest values that were acknowledged, and those that must survive a loss of power.
    acknowledged: [Vec<u64>; DRIVES],
    durable: [Vec<u64>; DRIVES],
    pub met: Met,
}

impl World {
    pub fn new(prng: Prng) -> World {
        let drives = || (0..DRIVES).map(|_| Drive::new(BLOCKS)).collect::<Vec<_>>();
        let mut world = World {
            prng,
            sides: [drives(), drives()],
            owner: 0,
            phase: Phase::Alone,
            mirror: mirror_of(vec![None; DRIVES]),
            requests: BTreeMap::new(),
            own_work: Vec::new(),
            wire: VecDeque::new(),
            far_work: Vec::new(),
            answers: Vec::new(),
            failed: [false; DRIVES],
            openings: [1; DRIVES],
            known_openings: [0; DRIVES],
            is_connected: false,
            must_leave: false,
            far_done: BTreeSet::new(),
            side: Side::default(),
            starts: 0,
            seen_start: 0,
            last: 0,
            acknowledged: std::array::from_fn(|_| vec![0; BLOCKS]),
            durable: std::array::from_fn(|_| vec![0; BLOCKS]),
            met: Met::default(),
        };
        world.mirror.set_rule(CommitRule::Own);
        world.follow_orders();
        world
    }

    pub fn run(&mut self, steps: usize) {
        let troubles_permille = self.prng.between(2, 30) as u32;
        for _ in 0..steps {
            if self.prng.chance(troubles_permille) {
                match self.prng.below(9) {
                    0 => self.lose_owner(),
                    1 => self.restart_partner(),
                    2 => self.fail_drive(),
                    3 => self.replace_drives(),
                    4 => self.return_drives(),
                    5 => {
                        // gone and back before anything is sent to it
                        self.fail_drive();
                        self.return_drives();
                    }
                    _ => self.cut(),
                }
                self.follow_orders();
            }
            match self.prng.below(100) {
                0..16 => self.submit_write(),
                16..19 => self.submit_flush(),
                19..45 => self.end_own_work(),
                45..60 => self.deliver(),
                60..76 => self.end_far_work(),
                76..88 => self.answer(),
                88..90 if self.must_leave => self.leave(),
                90..92 => (0..DRIVES).for_each(|drive| self.mirror.settle(drive)),
                _ => self.connect(),
            }
            self.follow_orders();
            self.check();
        }
    }

    /// Nothing goes wrong any more: the copies become equal.
    pub fn end_quietly(&mut self) {
        for _ in 0..20_000 {
            self.end_own_work();
            self.deliver();
            self.end_far_work();
            self.answer();
            if self.must_leave {
                self.leave();
            }
            self.connect();
            self.replace_drives();
            self.follow_orders();
            self.check();
            let rests = self.own_work.is_empty() && self.wire.is_empty() && self.far_work.is_empty();
            if rests && self.answers.is_empty() && self.phase == Phase::InSync && self.requests.is_empty() {
                match self.prng.below(3) {
                    0 => (0..DRIVES).for_each(|drive| self.flush(drive)),
                    1 => (0..DRIVES).for_each(|drive| self.mirror.settle(drive)),
                    _ if self.is_equal() => return,
                    _ => {}
                }
                self.follow_orders();
            }
        }
        for drive in 0..DRIVES {
            let [a, b] = [&self.sides[0][drive], &self.sides[1][drive]];
            let differ: Vec<usize> =
                (0..BLOCKS).filter(|&block| a.durable(block) != b.durable(block)).collect();
            println!("{drive}: blocks {differ:?} differ; {:?} {:?}", a.record(), b.record());
        }
        panic!("the copies did not become equal: {:?}, owner {}, {:?}", self.phase, self.owner, self.mirror);
    }

    fn is_equal(&self) -> bool {
        (0..DRIVES).all(|drive| {
            let [a, b] = [&self.sides[0][drive], &self.sides[1][drive]];
            let (Some(one), Some(other)) = (a.record(), b.record()) else { return false };
            (0..BLOCKS).all(|block| a.durable(block) == b.durable(block))
                && one.synchrony == other.synchrony
                && one.marked.is_empty()
                && other.marked.is_empty()
        })
    }

    fn partner(&self) -> usize {
        1 - self.owner
    }

    fn is_busy(&self, drive: usize, block: usize) -> bool {
        self.requests.values().any(|request| match request.operation {
            Operation::Write { first, count, .. } => {
                request.drive == drive && (first..first + count).contains(&block)
            }
            Operation::Flush { .. } => false,
        })
    }

    fn submit_write(&mut self) {
        let (drive, count) = (self.prng.index(DRIVES), 1 + self.prng.index(4));
        // mostly in the same place, as a log does
        let span = if self.prng.chance(700) { 2 * REGION_BLOCKS as usize } else { BLOCKS };
        let first = self.prng.index(span - count);
        if (first..first + count).any(|block| self.is_busy(drive, block)) {
            return;
        }
        let durable = self.prng.chance(700);
        self.last += 1;
        let (request, value) = (RequestId(self.last), self.last);
        let operation = Operation::Write { first, count, value, durable };
        self.requests.insert(request, Request { drive, operation });
        let place = (first as u64 * BLOCK_BYTES, count as u64 * BLOCK_BYTES);
        let before = self.own_work.len();
        self.mirror.write(request, drive, place, durable);
        let copies = self.own_work.iter().any(|work| matches!(work, OwnWork::Read { .. }));
        self.met.held_for_copies += u32::from(copies && before == self.own_work.len());
    }

    fn submit_flush(&mut self) {
        let drive = self.prng.index(DRIVES);
        self.flush(drive);
    }

    fn flush(&mut self, drive: usize) {
        self.last += 1;
        let request = RequestId(self.last);
        let operation = Operation::Flush { covers: self.acknowledged[drive].clone() };
        self.requests.insert(request, Request { drive, operation });
        self.mirror.flush(request, drive);
    }

    fn end_own_work(&mut self) {
        if self.own_work.is_empty() {
            return;
        }
        let index = self.prng.index(self.own_work.len());
        match self.own_work.swap_remove(index) {
            OwnWork::Request(id) => {
                let request = self.requests[&id].clone();
                let fails = matches!(request.operation, Operation::Write { .. }) && self.prng.chance(5);
                if fails {
                    self.met.own_errors += 1;
                    self.mirror.on_own(id, Err(IoError::Media));
                } else {
                    apply(&mut self.sides[self.owner], &request);
                    self.mirror.on_own(id, Ok(()));
                }
            }
            OwnWork::Record(drive, record) => {
                self.sides[self.owner][drive].write_record(record);
                self.mirror.on_recorded(drive, Ok(()));
            }
            OwnWork::Read { copy, .. } if !self.mirror.wants(copy) => {}
            OwnWork::Read { copy, drive, first, count } => {
                let values = (first..first + count).map(|block| self.sides[self.owner][drive].read(block));
                self.send(Far::Copy { copy, drive, first, values: values.collect() });
            }
        }
    }

    fn send(&mut self, far: Far) {
        if self.is_connected {
            self.wire.push_back(far);
        }
    }

    fn answer(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let index = self.prng.index(self.answers.len());
        match self.answers.swap_remove(index) {
            (Far::Request(id, _), true) => {
                self.far_done.insert(id);
                self.mirror.on_far(id, Ok(()));
            }
            (Far::Request(id, _), false) => self.mirror.on_far(id, Err(IoError::Media)),
            (Far::Copy { copy, .. }, true) => self.mirror.on_copied(copy, Ok(())),
            (Far::Copy { copy, .. }, false) => self.mirror.on_copied(copy, Err(CopyError::Far)),
            (Far::Joined { .. }, _) => {}
        }
    }

    fn cut(&mut self) {
        self.disconnect();
        if self.phase != Phase::InSync || self.prng.chance(500) {
            self.leave();
        }
    }

    fn leave(&mut self) {
        let before = std::mem::replace(&mut self.phase, Phase::Alone);
        self.met.late_leaves += u32::from(std::mem::take(&mut self.must_leave));
        if matches!(before, Phase::Joining | Phase::InSync) {
            self.mirror.set_rule(CommitRule::Own);
        }
        self.mirror.stop_copying();
    }

    fn lose_owner(&mut self) {
        // what was sent may arrive
        for _ in 0..self.prng.index(self.wire.len() + 1) {
            self.deliver();
        }
        self.disconnect();
        for work in std::mem::take(&mut self.own_work) {
            if self.prng.chance(500) {
                continue;
            }
            match work {
                OwnWork::Request(id) => apply(&mut self.sides[self.owner], &self.requests[&id]),
                OwnWork::Record(drive, record) => self.sides[self.owner][drive].write_record(record),
                OwnWork::Read { .. } => {}
            }
        }
        self.requests.clear();
        let owner = self.owner;
        self.sides[owner].iter_mut().for_each(|drive| drive.lose_power(&mut self.prng));
        if self.phase == Phase::InSync {
            while !self.side.is_quiet() {
                self.end_far_work();
            }
            self.met.takeovers += 1;
            if self.seen_start != self.starts {
                // its power had gone, too
                self.met.takeovers_after_a_restart += 1;
                self.acknowledged = self.durable.clone();
            }
            self.lose_unsound_drives();
            self.owner = self.partner();
            self.sides[self.owner].iter_mut().for_each(Drive::flush);
        } else {
            self.met.restarts += 1;
            while !self.side.is_quiet() {
                self.end_far_work();
            }
            self.acknowledged = self.durable.clone();
        }
        (self.phase, self.must_leave) = (Phase::Alone, false);
        self.starts += 1;
        let drives = &self.sides[self.owner];
        self.mirror = mirror_of(drives.iter().map(Drive::record).collect());
        self.mirror.set_rule(CommitRule::Own);
    }

    fn follow_orders(&mut self) {
        loop {
            let orders = self.mirror.take_orders();
            if orders.is_empty() {
                return;
            }
            orders.into_iter().for_each(|order| self.follow(order));
        }
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Begin { request, far } => {
                self.own_work.push(OwnWork::Request(request));
                if far {
                    self.send(Far::Request(request, self.requests[&request].clone()));
                }
            }
            Order::SendAgain { request } => self.send(Far::Request(request, self.requests[&request].clone())),
            Order::Done { request, result } => self.done(request, result),
            Order::Record { drive, record } => self.own_work.push(OwnWork::Record(drive, record)),
            Order::Copy { copy, drive, offset_bytes, length_bytes } => {
                let (first, count) = (offset_bytes / BLOCK_BYTES, length_bytes / BLOCK_BYTES);
                self.own_work.push(OwnWork::Read {
                    copy,
                    drive,
                    first: first as usize,
                    count: count as usize,
                });
            }
            Order::Reconnect => self.disconnect(),
            Order::Tell(StoreEvent::NearlyCopied) if self.phase == Phase::Copying => {
                self.phase = Phase::Joining;
                self.mirror.set_rule(CommitRule::Both);
            }
            Order::Tell(StoreEvent::Covered) if self.phase == Phase::Joining => {
                self.phase = Phase::InSync;
                self.met.joins += 1;
                let synchrony = Synchrony(u128::from(self.prng.next_u64()) + 1);
                self.mirror.joined(synchrony);
            }
            Order::TellSynchrony { synchrony, drives } => self.send(Far::Joined { synchrony, drives }),
            Order::Tell(_) => {}
            // the register takes its time
            Order::PartnerIsUnfit if self.phase == Phase::InSync => self.must_leave = true,
            Order::PartnerIsUnfit => self.leave(),
        }
    }

    fn done(&mut self, id: RequestId, result: Result<(), IoError>) {
        let Request { drive, operation } = self.requests.remove(&id).expect("it was asked for");
        let has_far = self.far_done.remove(&id);
        if result.is_err() {
            return;
        }
        let is_sound = |drive: usize| self.mirror.twin_state(drive) == TwinState::Sound;
        // one drive may be missing after a takeover; what a flush that began alone covers was copied durably
        let is_borne =
            !is_sound(drive) && (0..DRIVES).any(is_sound) || matches!(operation, Operation::Flush { .. });
        assert!(
            self.phase != Phase::InSync || is_borne || has_far,
            "{id:?} is done without the partner, which has not left"
        );
        match operation {
            Operation::Write { first, count, value, durable } => {
                for block in first..first + count {
                    self.acknowledged[drive][block] = value;
                    if durable {
                        self.durable[drive][block] = value;
                    }
                }
            }
            Operation::Flush { covers } => {
                for (durable, covered) in self.durable[drive].iter_mut().zip(covers) {
                    *durable = covered.max(*durable);
                }
            }
        }
    }

    /// What is acknowledged is where it must be, and where the copies may differ there is a mark.
    fn check(&self) {
        let partner = self.partner();
        let counts = self.phase == Phase::InSync && self.seen_start == self.starts;
        for drive in 0..DRIVES {
            let (own, far) = (&self.sides[self.owner][drive], &self.sides[partner][drive]);
            let is_known = self.known_openings[drive] == self.openings[drive];
            let is_sound =
                is_known && !self.failed[drive] && self.mirror.twin_state(drive) == TwinState::Sound;
            for block in 0..BLOCKS {
                let (acknowledged, durable) = (self.acknowledged[drive][block], self.durable[drive][block]);
                assert!(
                    own.read(block) >= acknowledged && own.durable(block) >= durable,
                    "own {drive}.{block}"
                );
                if counts && is_sound {
                    assert!(far.read(block) >= acknowledged, "the partner lacks {drive}.{block}");
                    assert!(far.durable(block) >= durable, "the partner may lose {drive}.{block}");
                }
            }
            if !self.failed[drive] {
                check_marks(&self.sides[0][drive], &self.sides[1][drive], REGION_BLOCKS);
            }
        }
    }
}

fn apply(drives: &mut [Drive], request: &Request) {
    match request.operation {
        Operation::Write { first, count, value, durable } => {
            (first..first + count).for_each(|block| drives[request.drive].write(block, value, durable));
        }
        Operation::Flush { .. } => drives[request.drive].flush(),
    }
}
