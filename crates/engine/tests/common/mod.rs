//! An array in the simulated environment: its shards, the interface of the control plane, and hosts that log in to it.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod copy;
pub mod host;
pub mod pool_bench;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{ArrayStatus, Change, NewBacking, NewHost, NewPool, NewVolume};
use api::{Command, CommandError, Event as ArrayEvent, EventFacts, Reply};
use base::{Nanos, ShardId};
use bytes::Bytes;
use engine::{Memory, PairedArray, PoolsAbsent, Saving, Shard, ShardMessage, StartParameters};
use env::{Env, Event, Operation, Token, Wait};
use sim::{DriveOptions, Outside, Patience, ProcessId, SimEnv, Simulation, TaskShard, Turn, World};

/// A shard's environment in which shard n listens n ports higher: the simulated environment cannot share an address,
/// and a test wants to choose the shard that serves it.
struct PortPerShard(SimEnv<ShardMessage>);

impl Env for PortPerShard {
    type Message = ShardMessage;

    fn shard(&self) -> ShardId {
        self.0.shard()
    }

    fn shards(&self) -> u16 {
        self.0.shards()
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn wall_clock_ms(&self) -> u64 {
        self.0.wall_clock_ms()
    }

    fn uptime(&self) -> Nanos {
        self.0.uptime()
    }

    fn random_u64(&mut self) -> u64 {
        self.0.random_u64()
    }

    fn submit(&mut self, token: Token, mut operation: Operation) {
        if let Operation::Listen { address } = &mut operation {
            address.set_port(address.port() + self.0.shard().0);
        }
        self.0.submit(token, operation);
    }

    fn poll(&mut self, events: &mut Vec<Event<ShardMessage>>, wait: Wait) {
        self.0.poll(events, wait);
    }

    fn send(&mut self, to: ShardId, message: ShardMessage) -> Result<(), ShardMessage> {
        self.0.send(to, message)
    }
}

/// A shard of the engine that takes its turns in the simulated world.
struct EngineShard {
    environment: PortPerShard,
    shard: Shard,
    /// In processor time.
    longest_turn: Duration,
}

/// The processor time of this thread: time that others use meanwhile does not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().expect("it is not negative")
}

impl Turn for EngineShard {
    fn turn(&mut self) {
        if self.shard.is_stopped() {
            return;
        }
        let begun = processor_time();
        self.shard.turn(&mut self.environment, false);
        self.longest_turn = self.longest_turn.max(processor_time().saturating_sub(begun));
        if let Some(deadline) = self.shard.next_deadline() {
            let soonest = self.environment.now() + Nanos::from_micros(1);
            self.environment.0.wake_at(deadline.max(soonest));
        }
    }
}

/// The answer to a command, when it comes.
pub type Answer = Arc<Mutex<Option<Result<Reply, CommandError>>>>;
type Saved = Arc<Mutex<Option<Bytes>>>;
pub type Slow = Arc<Mutex<Option<Vec<Saving>>>>;
/// What a head of a pair has found in place of the pools of its array.
type Absent = Arc<Mutex<Option<PoolsAbsent>>>;
type Started = Arc<Mutex<Option<Result<(), CommandError>>>>;

/// The machine of the array, and its environment.
pub struct Lab {
    pub simulation: Simulation,
    pub process: ProcessId,
    outside: Outside<ShardMessage>,
    shards: Vec<Rc<RefCell<EngineShard>>>,
    /// The head's state directory: survives restarts.
    pub saved: Saved,
    /// If there is a list, saving a copy of the catalog takes until the test reports its result.
    pub slow: Slow,
    pub started: Started,
    /// The number of the last event that the test has seen: survives restarts.
    pub newest_event: u64,
    pub drives: Vec<String>,
    /// From the next start on it is a head of a pair, in this term.
    pub pair: Option<(base::ArrayId, u64)>,
    /// From the next start on it is a head that was one of a pair, and is alone.
    pub was_paired: bool,
    /// What the start has found in place of the pools of its array.
    pub absent: Absent,
    shard_count: u16,
    memory: Memory,
    /// A task that only waits.
    sleeper: Rc<RefCell<TaskShard<()>>>,
}

pub const PORTAL: &str = "10.0.0.1:3260";

/// The address at which this shard serves.
pub fn portal(shard: u16) -> SocketAddr {
    let mut address: SocketAddr = PORTAL.parse().unwrap();
    address.set_port(address.port() + shard);
    address
}

impl Lab {
    /// An array of `shards` shards that looks at these drives, started and ready.
    pub fn new(seed: u64, shards: u16, drives: &[&str]) -> Lab {
        Lab::in_world(World::new(seed, None), shards, drives)
    }

    pub fn in_world(world: World, shards: u16, drives: &[&str]) -> Lab {
        Lab::with_memory(world, shards, drives, Memory::default())
    }

    /// Shards with a limited memory.
    pub fn with_memory(world: World, shards: u16, drives: &[&str], memory: Memory) -> Lab {
        let mut simulation = Simulation::new(world);
        let (_, mut sleepers, _) = simulation.start_task_process::<()>(2, 1, |_, _| Box::new(|_, ()| {}));
        let sleeper = sleepers.remove(0);
        let drives: Vec<String> = drives.iter().map(|&path| path.to_owned()).collect();
        let (saved, slow) = (Saved::default(), Slow::default());
        let (started, process, outside, parts) = start(
            &simulation.world,
            shards,
            (&drives, memory),
            (&saved, &slow, 0),
            (None, false, &Absent::default()),
        );
        let mut lab = Lab {
            simulation,
            process,
            outside,
            shards: Vec::new(),
            saved,
            slow,
            started,
            newest_event: 0,
            drives,
            pair: None,
            was_paired: false,
            absent: Absent::default(),
            shard_count: shards,
            memory,
            sleeper,
        };
        lab.attach(parts);
        lab.finish_start();
        lab
    }

    fn attach(&mut self, parts: Vec<Rc<RefCell<EngineShard>>>) {
        for (index, shard) in parts.iter().enumerate() {
            self.simulation.attach(self.process, index as u16, shard.clone());
        }
        self.shards = parts;
    }

    /// Waits until the array has started.
    pub fn finish_start(&mut self) {
        let started = self.started.clone();
        self.simulation.step_until(Patience::default(), || started.lock().unwrap().is_some()).unwrap();
    }

    /// Lets this time pass, and hardly more.
    pub fn pass(&mut self, time: Nanos) {
        let sleeper = self.sleeper.clone();
        let io = sleeper.borrow().io().clone();
        self.simulation.block_on(&sleeper, async move { io.sleep(time).await }).unwrap();
    }

    /// Starts the program again after it was stopped or killed.
    pub fn restart(&mut self) {
        self.begin_restart();
        self.finish_start();
    }

    pub fn begin_restart(&mut self) {
        self.simulation.bury();
        let (started, process, outside, parts) = start(
            &self.simulation.world,
            self.shard_count,
            (&self.drives, self.memory),
            (&self.saved, &self.slow, self.newest_event),
            (self.pair, self.was_paired, &self.absent),
        );
        (self.started, self.process, self.outside) = (started, process, outside);
        self.attach(parts);
    }

    /// Another program opens a drive for writing, until the end of the test.
    pub fn hold(&mut self, path: &str) {
        let sleeper = self.sleeper.clone();
        let (io, path) = (sleeper.borrow().io().clone(), path.to_owned());
        let opening = async move { pool::open_when_free(&io, &path, io.now() + Nanos::from_secs(1)).await };
        self.simulation.block_on(&sleeper, opening).unwrap().unwrap();
    }

    /// Another program listens on an address for this time.
    pub fn occupy(&mut self, address: SocketAddr, time: Nanos) {
        let sleeper = self.sleeper.clone();
        let io = sleeper.borrow().io().clone();
        let inner = io.clone();
        let listening = async move {
            let (listener, _) = inner.listen(address).await.expect("nobody else has it");
            let holder = inner.clone();
            inner.spawn(async move {
                holder.sleep(time).await;
                let _ = holder.close_listener(listener).await;
            });
        };
        self.simulation.block_on(&sleeper, listening).unwrap();
    }

    pub fn kill(&mut self) {
        self.simulation.world.kill(self.process);
        self.simulation.bury();
    }

    pub fn start_result(&self) -> Result<(), CommandError> {
        self.started.lock().unwrap().clone().unwrap()
    }

    /// Sends a command and runs the world until it is answered.
    pub fn command(&mut self, command: Command) -> Result<Reply, CommandError> {
        let answer = self.send_command(command);
        let check = answer.clone();
        self.simulation.step_until(Patience::default(), || check.lock().unwrap().is_some()).unwrap();
        answer.lock().unwrap().take().unwrap()
    }

    /// Sends a command; the place fills when it is answered.
    pub fn send_command(&mut self, command: Command) -> Answer {
        self.send_command_from(command, api::patient_caller())
    }

    /// The same; `caller` tells whether the caller has gone.
    pub fn send_command_from(&mut self, command: Command, caller: api::Caller) -> Answer {
        let answer = Answer::default();
        let place = answer.clone();
        let reply = Box::new(move |result| *place.lock().unwrap() = Some(result));
        let mut message = ShardMessage::Control(command, reply, caller);
        while let Err(returned) = self.outside.send(ShardId(0), message) {
            message = returned;
            assert!(self.simulation.step(), "the queue to shard 0 stays full");
        }
        answer
    }

    /// Sends a request of a transfer to a shard.
    pub fn send_bulk(&mut self, shard: u16, bulk: api::Bulk, reply: api::BulkReply) {
        let mut message = ShardMessage::Bulk(bulk, reply);
        while let Err(returned) = self.outside.send(ShardId(shard), message) {
            message = returned;
            assert!(self.simulation.step(), "the queue to the shard stays full");
        }
    }

    /// Bytes of memory that transfers hold on all shards.
    pub fn bulk_held_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.borrow().shard.bulk_held_bytes()).sum()
    }

    pub fn change(&mut self, command: Command) -> Change {
        match self.command(command.clone()) {
            Ok(Reply::Changed(change)) => change,
            other => panic!("{command:?} gave {other:?}"),
        }
    }

    /// The events since the last call of this function.
    pub fn events(&mut self) -> Vec<ArrayEvent> {
        let mut all = Vec::new();
        loop {
            let ask = Command::Events { after: self.newest_event, limit: usize::MAX, wait: false };
            let Ok(Reply::Events(page)) = self.command(ask) else { panic!("no events") };
            assert_eq!(page.dropped, 0);
            let Some(last) = page.events.last() else { return all };
            self.newest_event = last.sequence;
            all.extend(page.events);
        }
    }

    /// What these events were, in order.
    pub fn facts(&mut self) -> Vec<EventFacts> {
        self.events().into_iter().map(|event| event.facts).collect()
    }

    pub fn status(&mut self) -> ArrayStatus {
        match self.command(Command::Status) {
            Ok(Reply::Status(status)) => *status,
            other => panic!("status gave {other:?}"),
        }
    }

    /// Whether every shard has stopped.
    pub fn is_stopped(&self) -> bool {
        self.shards.iter().all(|shard| shard.borrow().shard.is_stopped())
    }

    /// The longest turn of any shard since the last call of this function.
    pub fn longest_turn(&mut self) -> Duration {
        let turns = self.shards.iter().map(|shard| std::mem::take(&mut shard.borrow_mut().longest_turn));
        turns.max().unwrap_or_default()
    }

    pub fn create_memory_volume(&mut self, name: &str, size_bytes: u64) {
        self.change(Command::VolumeCreate { volume: memory_volume(name, size_bytes), dry_run: false });
    }

    /// Four drives of 1 GiB, and pool `fast` with parity-1 on them.
    pub fn with_pool(seed: u64, shards: u16) -> Lab {
        let world = World::new(seed, None);
        let drives: Vec<String> = (0..4).map(|n| format!("/dev/nvme{n}n1")).collect();
        for path in &drives {
            world.add_drive(DriveOptions::new(path, 1 << 30));
        }
        let mut lab = Lab::in_world(world, shards, &drives.iter().map(String::as_str).collect::<Vec<_>>());
        let pool = NewPool::new("fast", "parity-1", drives);
        lab.change(Command::PoolCreate { pool, dry_run: false });
        lab
    }

    /// A volume of 64 MiB in pool `fast`.
    pub fn create_pool_volume(&mut self, name: &str, write_back: bool) {
        let volume = NewVolume {
            name: name.to_owned(),
            backing: NewBacking::Pool("fast".to_owned()),
            size_bytes: Some(64 << 20),
            block_bytes: 512,
            write_back,
        };
        self.change(Command::VolumeCreate { volume, dry_run: false });
    }

    pub fn create_host(&mut self, name: &str, initiator: &str) {
        let host = NewHost {
            name: name.to_owned(),
            initiators: vec![initiator.to_owned()],
            chap: None,
            mutual_chap: None,
        };
        self.change(Command::HostCreate { host, dry_run: false });
    }

    pub fn map(&mut self, volume: &str, host: &str, lun: u16, read_only: bool) {
        let (volume, host) = (volume.to_owned(), host.to_owned());
        self.change(Command::Map { volume, host, lun: Some(lun), read_only, dry_run: false });
    }

    pub fn unmap(&mut self, volume: &str, host: &str) {
        self.change(Command::Unmap { volume: volume.to_owned(), host: host.to_owned(), dry_run: false });
    }
}

pub fn memory_volume(name: &str, size_bytes: u64) -> NewVolume {
    NewVolume {
        name: name.to_owned(),
        backing: NewBacking::Memory,
        size_bytes: Some(size_bytes),
        block_bytes: 512,
        write_back: false,
    }
}

fn start(
    world: &World,
    shards: u16,
    (drives, memory): (&[String], Memory),
    (saved, slow, newest_event): (&Saved, &Slow, u64),
    (pair, was_paired, absent): (Option<(base::ArrayId, u64)>, bool, &Absent),
) -> (Started, ProcessId, Outside<ShardMessage>, Vec<Rc<RefCell<EngineShard>>>) {
    let (process, environments, outside) = world.start_process::<ShardMessage>(0, shards);
    let started = Started::default();
    let (place, keep, slow) = (started.clone(), saved.clone(), slow.clone());
    let absent = absent.clone();
    let waits = move |found| *absent.lock().unwrap() = Some(found);
    let mut parameters = Some(StartParameters {
        portals: vec![portal(0).into()],
        drives: drives.to_vec(),
        head: base::HeadId(1),
        term: pair.map_or(0, |(_, term)| term),
        array_name: "test".to_owned(),
        pair: pair.map(|(array, _)| PairedArray { array, waits: Box::new(waits) }),
        was_paired,
        state: saved.lock().unwrap().clone(),
        save_state: Box::new(move |bytes| {
            *keep.lock().unwrap() = Some(bytes);
            slow.lock().unwrap().as_mut().map_or(Saving::kept(), |waiting| {
                waiting.push(Saving::under_way());
                waiting.last().expect("just put there").clone()
            })
        }),
        newest_event,
        started: Box::new(move |result| *place.lock().unwrap() = Some(result)),
    });
    let make = |environment: SimEnv<ShardMessage>| {
        let shard = Shard::new(environment.shard(), shards, parameters.take(), memory);
        Rc::new(RefCell::new(EngineShard {
            environment: PortPerShard(environment),
            shard,
            longest_turn: Duration::ZERO,
        }))
    };
    (started, process, outside, environments.into_iter().map(make).collect())
}
