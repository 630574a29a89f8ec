//! [`SimEnv`]: the simulated world as one shard of one process sees it.
//!
//! What always holds: `poll` never waits, it only records until when the shard would have waited; the driver of the
//! world gives the shard its next turn at that time or at the next event, whichever is first.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use base::{Nanos, ShardId, limits};
use env::{Env, Event, Operation, Token, Wait};

use crate::fault::FaultKind;
use crate::world::{EventKind, InFlight, Inbox, Inner, Process, ProcessId, World};

type Queues<M> = Rc<RefCell<Vec<VecDeque<M>>>>;

/// One shard's [`Env`] in a [`World`].
pub struct SimEnv<M> {
    world: World,
    process: ProcessId,
    shard: u16,
    shards: u16,
    queues: Queues<M>,
    idle: bool,
    /// Sees what the shard submits.
    witness: Option<Witness>,
}

type Witness = Box<dyn Fn(Token, &Operation)>;

/// Sends messages into a process from outside its shards, as the control plane does.
pub struct Outside<M> {
    post: Post<M>,
}

impl<M> Clone for Outside<M> {
    fn clone(&self) -> Outside<M> {
        Outside { post: self.post.clone() }
    }
}

/// Hands a message to a shard, or gives it back where too many wait.
type Post<M> = Rc<dyn Fn(ShardId, M) -> Result<(), M>>;

impl World {
    /// Starts a process of `shards` shards on `machine`: one environment for each, and a way in from outside.
    pub fn start_process<M: Send + 'static>(
        &self,
        machine: u16,
        shards: u16,
    ) -> (ProcessId, Vec<SimEnv<M>>, Outside<M>) {
        let mut inner = self.0.borrow_mut();
        let process = ProcessId(inner.processes.len() as u32);
        let mut prng = inner.prng.fork();
        let queue_max = *prng.pick(&[8, 64, limits::SHARD_QUEUE_MAX]);
        let inboxes = (0..shards).map(|_| Inbox::default()).collect();
        let handles = Vec::new();
        inner.processes.push(Process { machine, alive: true, inboxes, handles, prng, queue_max });
        for shard in 0..shards {
            inner.want_turn(process, shard);
        }
        // one queue from each shard, and from outside, to each shard
        let queues = usize::from(shards) * (usize::from(shards) + 1);
        let queues: Queues<M> = Rc::new(RefCell::new((0..queues).map(|_| VecDeque::new()).collect()));
        let world = self.clone();
        let environment = |shard| {
            let (world, queues) = (self.clone(), queues.clone());
            SimEnv { world, process, shard, shards, queues, idle: false, witness: None }
        };
        let environments = (0..shards).map(environment).collect();
        let post = move |to, message| post(&world, process, shards, to, shards, &queues, message);
        (process, environments, Outside { post: Rc::new(post) })
    }

    /// Whether the process has not ended.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.0.borrow_mut().process(process).alive
    }
}

fn post<M>(
    world: &World,
    process: ProcessId,
    from: u16,
    to: ShardId,
    shards: u16,
    queues: &Queues<M>,
    message: M,
) -> Result<(), M> {
    assert!(to.0 < shards, "no shard {to}");
    let mut inner = world.0.borrow_mut();
    let queue = &mut queues.borrow_mut()[usize::from(from) * usize::from(shards) + usize::from(to.0)];
    if queue.len() >= inner.process(process).queue_max {
        inner.counts.add(FaultKind::QueueFull);
        return Err(message);
    }
    queue.push_back(message);
    let delay = Nanos(inner.prng.skewed(100, 5_000));
    inner.schedule(delay, EventKind::Message { process, from, to: to.0 });
    Ok(())
}

impl<M: 'static> Outside<M> {
    /// Hands a message to a shard, or gives it back where too many wait.
    pub fn send(&self, to: ShardId, message: M) -> Result<(), M> {
        (self.post)(to, message)
    }

    /// The same way in, for messages that go as a part of others.
    pub fn wrapped<N: 'static>(&self, wrap: fn(N) -> M, unwrap: fn(M) -> N) -> Outside<N> {
        let post = self.post.clone();
        Outside { post: Rc::new(move |to, message| post(to, wrap(message)).map_err(unwrap)) }
    }
}

impl<M> SimEnv<M> {
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Whether the last poll found nothing: the shard has no more to do until its next turn.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// From now on `witness` sees whatever the shard submits.
    pub fn watch(&mut self, witness: impl Fn(Token, &Operation) + 'static) {
        self.witness = Some(Box::new(witness));
    }

    /// Asks for a turn at `deadline` at the latest.
    pub fn wake_at(&mut self, deadline: Nanos) {
        let mut inner = self.world.0.borrow_mut();
        inner.schedule_at(deadline, EventKind::Wake { process: self.process, shard: self.shard });
    }
}

impl<M: Send + 'static> Env for SimEnv<M> {
    type Message = M;

    fn shard(&self) -> ShardId {
        ShardId(self.shard)
    }

    fn shards(&self) -> u16 {
        self.shards
    }

    fn now(&self) -> Nanos {
        self.world.now()
    }

    fn wall_clock_ms(&self) -> u64 {
        self.world.wall_clock_ms()
    }

    fn uptime(&self) -> Nanos {
        self.world.uptime()
    }

    fn random_u64(&mut self) -> u64 {
        self.world.0.borrow_mut().process(self.process).prng.next_u64()
    }

    fn submit(&mut self, token: Token, operation: Operation) {
        if let Some(witness) = &self.witness {
            witness(token, &operation);
        }
        let mut inner = self.world.0.borrow_mut();
        assert!(inner.process(self.process).alive, "a dead process submits nothing");
        let in_flight = InFlight { process: self.process, shard: self.shard, token, operation, mark: 0 };
        inner.submit(in_flight);
    }

    fn poll(&mut self, events: &mut Vec<Event<M>>, wait: Wait) {
        let before = events.len();
        {
            let mut inner = self.world.0.borrow_mut();
            let inbox = &mut inner.process(self.process).inboxes[usize::from(self.shard)];
            events.extend(inbox.completions.drain(..).map(Event::Completion));
            let mut queues = self.queues.borrow_mut();
            for from in inbox.arrived.drain(..) {
                let queue =
                    &mut queues[usize::from(from) * usize::from(self.shards) + usize::from(self.shard)];
                events.push(Event::Message(queue.pop_front().expect("an arrived message")));
            }
        }
        self.idle = events.len() == before;
        if let (true, Wait::Until(deadline)) = (self.idle, wait) {
            self.wake_at(deadline);
        }
    }

    fn send(&mut self, to: ShardId, message: M) -> Result<(), M> {
        post(&self.world, self.process, self.shard, to, self.shards, &self.queues, message)
    }
}

impl Inner {
    pub(crate) fn submit(&mut self, in_flight: InFlight) {
        match in_flight.operation {
            Operation::DriveOpen { .. }
            | Operation::DriveClose { .. }
            | Operation::DriveRead { .. }
            | Operation::DriveWrite { .. }
            | Operation::DriveFlush { .. }
            | Operation::DriveMeasure { .. }
            | Operation::DriveReservation { .. }
            | Operation::DriveDiscard { .. } => self.submit_to_drive(in_flight),
            Operation::Listen { .. }
            | Operation::ListenForwarded { .. }
            | Operation::CloseListener { .. }
            | Operation::Accept { .. }
            | Operation::Connect { .. }
            | Operation::Receive { .. }
            | Operation::Send { .. }
            | Operation::CloseConnection { .. } => self.submit_to_network(in_flight),
        }
    }
}
