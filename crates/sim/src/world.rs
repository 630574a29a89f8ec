//! The world: one clock, one queue of events, one seed; drives, processes and the network between them.
//!
//! ```text
//!   Env::submit ─► operation in flight ─► event at now + latency ─► completion in the shard's inbox
//!                                                                    └► the shard's turn, a little later
//! ```
//!
//! What always holds:
//! - only the next event advances the clock; events of one moment happen in the order in which
//!   they were created;
//! - only the seed decides: two runs of one seed have the same [`World::digest`];
//! - a dead process gets no events, and operations that it had not submitted are not executed.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use base::{HashMap, Nanos};
use env::{Completion, Operation, Outcome, Token};

use crate::drive::{Drive, DriveNumber, DriveOptions};
use crate::drive_io::drive_of;
use crate::fault::{FaultCounts, FaultKind};
use crate::network::Network;
use crate::prng::Prng;
use crate::trace::{Trace, TraceSink};

/// A process of the world, by generation: a restart gets a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId(pub u32);

/// What has to happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventKind {
    Operation(u64),
    /// A message from one shard of a process to another has arrived.
    Message {
        process: ProcessId,
        from: u16,
        to: u16,
    },
    Turn {
        process: ProcessId,
        shard: u16,
    },
    /// A shard wanted to be woken at this time.
    Wake {
        process: ProcessId,
        shard: u16,
    },
    /// Bytes move from this end of a connection towards the other.
    Transfer(u32),
    DriveReturns(DriveNumber),
    /// A pulled drive stops to answer with errors, and is gone.
    DriveVanishes {
        drive: DriveNumber,
        /// Which pull of the drive it was.
        pull: u32,
        back_after: Option<Nanos>,
        handles_survive: bool,
    },
}

struct Scheduled {
    at: Nanos,
    serial: u64,
    kind: EventKind,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        (self.at, self.serial) == (other.at, other.serial)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

/// What a shard finds when it polls.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) completions: VecDeque<Completion>,
    /// Senders of the messages that have arrived, in order.
    pub(crate) arrived: VecDeque<u16>,
    turn_scheduled: bool,
    /// Something else has its core until then.
    held_up_until: Nanos,
}

/// What a drive handle of a process stands for.
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    pub(crate) drive: DriveNumber,
    pub(crate) writable: bool,
    pub(crate) open: bool,
    pub(crate) appearance: u32,
}

pub(crate) struct Process {
    pub(crate) machine: u16,
    pub(crate) alive: bool,
    pub(crate) inboxes: Vec<Inbox>,
    pub(crate) handles: Vec<Handle>,
    pub(crate) prng: Prng,
    /// Messages that may wait between two shards.
    pub(crate) queue_max: usize,
}

/// An operation between submission and completion.
pub(crate) struct InFlight {
    pub(crate) process: ProcessId,
    pub(crate) shard: u16,
    pub(crate) token: Token,
    pub(crate) operation: Operation,
    /// For a flush: the point up to which it counts. For a read: whether it was served at submission.
    pub(crate) mark: u64,
}

pub(crate) struct Inner {
    pub(crate) now: Nanos,
    serial: u64,
    queue: BinaryHeap<Reverse<Scheduled>>,
    pub(crate) prng: Prng,
    pub(crate) drives: Vec<Drive>,
    pub(crate) processes: Vec<Process>,
    pub(crate) operations: HashMap<u64, InFlight>,
    operations_made: u64,
    pub(crate) network: Network,
    pub(crate) trace: Trace,
    pub(crate) counts: FaultCounts,
    /// The longest that a shard lets its inbox wait.
    turn_delay: Nanos,
    events: u64,
    drive_operations: u64,
    /// Because another machine had reserved the drive.
    pub(crate) refused_writes: u64,
    /// How far the clocks on the wall are ahead of what has passed.
    wall_ahead_ms: i64,
    /// For how long the machine has been suspended.
    suspended_ms: u64,
}

impl Inner {
    pub(crate) fn schedule(&mut self, delay: Nanos, kind: EventKind) {
        self.schedule_at(self.now + delay, kind);
    }

    pub(crate) fn schedule_at(&mut self, at: Nanos, kind: EventKind) {
        self.serial += 1;
        self.queue.push(Reverse(Scheduled { at: at.max(self.now), serial: self.serial, kind }));
    }

    pub(crate) fn begin(&mut self, in_flight: InFlight) -> u64 {
        self.operations_made += 1;
        self.operations.insert(self.operations_made, in_flight);
        self.operations_made
    }

    pub(crate) fn process(&mut self, id: ProcessId) -> &mut Process {
        &mut self.processes[id.0 as usize]
    }

    /// Puts a completion into the inbox of whoever waits for it.
    pub(crate) fn complete(&mut self, process: ProcessId, shard: u16, token: Token, outcome: Outcome) {
        let now = self.now;
        self.trace.mix(&[now.0, u64::from(process.0), u64::from(shard), token.0, outcome_code(&outcome)]);
        self.trace.line(now, || format!("p{}.{shard} op {} -> {}", process.0, token.0, describe(&outcome)));
        if !self.process(process).alive {
            return;
        }
        self.process(process).inboxes[usize::from(shard)]
            .completions
            .push_back(Completion { token, outcome });
        self.want_turn(process, shard);
    }

    pub(crate) fn want_turn(&mut self, process: ProcessId, shard: u16) {
        let inbox = &mut self.process(process).inboxes[usize::from(shard)];
        if !std::mem::replace(&mut inbox.turn_scheduled, true) {
            let held_up_until = inbox.held_up_until;
            let delay = Nanos(self.prng.skewed(200, self.turn_delay.0));
            let at = (self.now + delay).max(held_up_until);
            self.schedule_at(at, EventKind::Turn { process, shard });
        }
    }

    /// Lets the next event happen. `Some`: this shard should take its turn.
    fn step(&mut self) -> Step {
        let Some(Reverse(event)) = self.queue.pop() else { return Step::Dry };
        assert!(event.at >= self.now, "the clock ran backwards");
        self.now = event.at;
        self.events += 1;
        match event.kind {
            EventKind::Operation(id) => self.end_operation(id),
            EventKind::Message { process, from, to } => {
                self.trace.mix(&[self.now.0, 1, u64::from(from), u64::from(to)]);
                if self.process(process).alive {
                    self.process(process).inboxes[usize::from(to)].arrived.push_back(from);
                    self.want_turn(process, to);
                }
            }
            EventKind::Turn { process, shard } => {
                if self.process(process).alive {
                    self.process(process).inboxes[usize::from(shard)].turn_scheduled = false;
                    self.trace.mix(&[self.now.0, 2, u64::from(process.0), u64::from(shard)]);
                    return Step::Turn(process, shard);
                }
            }
            EventKind::Wake { process, shard } => {
                if self.process(process).alive {
                    self.want_turn(process, shard);
                }
            }
            EventKind::Transfer(end) => self.transfer(end),
            EventKind::DriveReturns(drive) => self.return_drive(drive),
            EventKind::DriveVanishes { drive, pull, back_after, handles_survive } => {
                self.notice_pulled(drive, pull, back_after, handles_survive);
            }
        }
        Step::Passed
    }

    fn end_operation(&mut self, id: u64) {
        if !self.operations.contains_key(&id) || self.is_drive_operation_held_up(id) {
            return;
        }
        let in_flight = &self.operations[&id];
        let (process, shard, token) = (in_flight.process, in_flight.shard, in_flight.token);
        let in_flight = self.operations.remove(&id).expect("it was there");
        let outcome = match in_flight.operation {
            Operation::DriveOpen { .. } => self.finish_drive(in_flight),
            ref operation if drive_of(operation).is_some() => {
                self.drive_operations += 1;
                self.finish_drive(in_flight)
            }
            _ => self.finish_network(id, in_flight),
        };
        if !self.process(process).alive {
            self.free_drives_of(process);
        }
        self.complete(process, shard, token, outcome);
    }
}

/// What one step of the world gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// This shard should take its turn now.
    Turn(ProcessId, u16),
    /// Something happened that concerns no shard yet.
    Passed,
    /// Nothing will ever happen again.
    Dry,
}

/// The simulated world. All clones are the same world.
#[derive(Clone)]
pub struct World(pub(crate) Rc<RefCell<Inner>>);

impl World {
    pub fn new(seed: u64, sink: Option<TraceSink>) -> World {
        let mut prng = Prng::new(seed);
        let turn_delay = Nanos(prng.skewed(1_000, 50_000));
        World(Rc::new(RefCell::new(Inner {
            now: Nanos(0),
            serial: 0,
            queue: BinaryHeap::new(),
            drives: Vec::new(),
            processes: Vec::new(),
            operations: HashMap::default(),
            operations_made: 0,
            network: Network::new(prng.fork()),
            prng,
            trace: Trace::new(sink),
            counts: FaultCounts::default(),
            turn_delay,
            events: 0,
            drive_operations: 0,
            refused_writes: 0,
            wall_ahead_ms: 0,
            suspended_ms: 0,
        })))
    }

    /// What clocks on the wall show, milliseconds since 1970.
    pub fn wall_clock_ms(&self) -> u64 {
        let inner = self.0.borrow();
        (1_800_000_000_000 + inner.suspended_ms + inner.now.0 / 1_000_000)
            .saturating_add_signed(inner.wall_ahead_ms)
    }

    /// How long the machine has been up.
    pub fn uptime(&self) -> Nanos {
        let inner = self.0.borrow();
        Nanos(inner.now.0 + inner.suspended_ms * 1_000_000)
    }

    /// The machine is suspended for so long.
    pub fn suspend(&self, ms: u64) {
        self.note(|| format!("the machine is suspended for {ms} ms"));
        self.0.borrow_mut().suspended_ms += ms;
    }

    /// Somebody, or something, sets the clocks on the wall, forward or back.
    pub fn set_wall_clock(&self, by_ms: i64) {
        self.note(|| format!("the clocks on the wall are set by {by_ms} ms"));
        self.0.borrow_mut().wall_ahead_ms += by_ms;
    }

    pub fn now(&self) -> Nanos {
        self.0.borrow().now
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.0.borrow().events
    }

    /// Operations that drives have ended so far.
    pub fn drive_operations(&self) -> u64 {
        self.0.borrow().drive_operations
    }

    /// Equal for two runs exactly where everything that happened was.
    pub fn digest(&self) -> u64 {
        self.0.borrow().trace.digest()
    }

    pub fn fault_counts(&self) -> FaultCounts {
        self.0.borrow().counts.clone()
    }

    /// Whether anybody reads the trace.
    pub fn is_traced(&self) -> bool {
        self.0.borrow().trace.is_on()
    }

    /// Adds a line of the caller's own to the trace.
    pub fn note(&self, text: impl FnOnce() -> String) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        inner.trace.line(now, text);
    }

    /// Mixes values of the caller's own into the digest.
    pub fn mix(&self, values: &[u64]) {
        self.0.borrow_mut().trace.mix(values);
    }

    /// A stream of its own from the world's seed.
    pub fn fork_prng(&self) -> Prng {
        self.0.borrow_mut().prng.fork()
    }

    pub fn add_drive(&self, options: DriveOptions) -> DriveNumber {
        let mut inner = self.0.borrow_mut();
        let mut prng = inner.prng.fork();
        inner.drives.push(Drive::new(options, &mut prng));
        DriveNumber(inner.drives.len() as u32 - 1)
    }

    /// Gives a shard a turn soon, because it was given something to do from outside.
    pub fn nudge(&self, process: ProcessId, shard: u16) {
        self.0.borrow_mut().want_turn(process, shard);
    }

    /// Something else has the core of a shard for so long: it takes no turn.
    pub fn hold_up(&self, process: ProcessId, shard: u16, time: Nanos) {
        let mut inner = self.0.borrow_mut();
        let until = inner.now + time;
        inner.process(process).inboxes[usize::from(shard)].held_up_until = until;
        inner.trace.line(until, || format!("p{}.{shard} is held up until now", process.0));
    }

    /// Lets the next event happen; the clock moves to it.
    pub fn step(&self) -> Step {
        self.0.borrow_mut().step()
    }

    /// The process ends at once, as by `kill -9`: writes it had in flight may or may not have been done, or are
    /// done later, what was completed stays, its connections are reset. A drive with an operation in flight is
    /// free when that has ended, as the kernel has it with io_uring.
    pub fn kill(&self, process: ProcessId) {
        let mut inner = self.0.borrow_mut();
        inner.counts.add(FaultKind::Kill);
        inner.end_process(process, false);
    }

    /// The process ends; nobody counts it as a fault.
    pub fn end_quietly(&self, process: ProcessId) {
        self.0.borrow_mut().end_process(process, false);
    }

    /// The power of a machine goes: its processes end, and its drives lose what was not durable.
    pub fn power_loss(&self, machine: u16) {
        let mut inner = self.0.borrow_mut();
        inner.counts.add(FaultKind::PowerLoss);
        let ids = (0..inner.processes.len() as u32).map(ProcessId);
        let ids: Vec<ProcessId> =
            ids.filter(|&id| inner.processes[id.0 as usize].machine == machine).collect();
        for id in ids {
            inner.end_process(id, true);
        }
        inner.lose_drive_caches(machine);
    }
}

impl Inner {
    fn end_process(&mut self, process: ProcessId, power_lost: bool) {
        let was_alive = std::mem::replace(&mut self.process(process).alive, false);
        let mut flying: Vec<u64> = self
            .operations
            .iter()
            .filter(|(_, flying)| flying.process == process)
            .map(|(&id, _)| id)
            .collect();
        if !was_alive && (!power_lost || flying.is_empty()) {
            return;
        }
        let now = self.now;
        self.trace.mix(&[now.0, 3, u64::from(process.0), u64::from(power_lost)]);
        self.trace.line(now, || {
            format!("p{} {}", process.0, if power_lost { "loses its power" } else { "is killed" })
        });
        flying.sort_unstable();
        self.interrupt_operations(&flying, power_lost);
        self.reset_connections_of(process);
        self.free_drives_of(process);
        for inbox in &mut self.process(process).inboxes {
            *inbox = Inbox::default();
        }
    }
}

fn outcome_code(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Done => 10,
        Outcome::Failed(_) => 11,
        Outcome::DriveOpened(..) => 12,
        Outcome::DriveRead(buffer, Ok(())) => 13 + (u64::from(base::crc32c(buffer)) << 8),
        Outcome::DriveRead(_, Err(_)) => 14,
        Outcome::DriveMeasured(end_bytes) => 20 + (end_bytes << 8),
        Outcome::DriveReservation(found) => 21 + ((found.keys.len() as u64) << 8),
        Outcome::Listening(..) => 15,
        Outcome::Accepted { .. } => 16,
        Outcome::Connected { .. } => 17,
        Outcome::Received(buffer, result) => 18 + u64::from(result.is_err()) + ((buffer.len() as u64) << 8),
    }
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::DriveRead(_, Ok(())) => "read".to_owned(),
        Outcome::DriveRead(_, Err(error)) => format!("read failed: {error}"),
        Outcome::Received(buffer, result) => format!("received, {} in buffer, {result:?}", buffer.len()),
        other => format!("{other:?}"),
    }
}
