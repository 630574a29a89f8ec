//! Processes of the simulated world, and the loop that gives their shards turns.
//!
//! A [`TaskShard`] is a shard that has only tasks: an executor over a [`SimEnv`]. Other kinds of shards
//! (the engine) implement [`Turn`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::rc::Rc;

use base::Nanos;
use env::{Env, Event, Wait};
use task::{Executor, Io};

use crate::environment::SimEnv;
use crate::world::{ProcessId, Step, World};

/// Random values that a task may draw within one turn.
const RANDOM_RESERVOIR: usize = 64;

/// A shard that can take its turn.
pub trait Turn {
    /// Handles everything that has arrived, and asks for its next turn.
    fn turn(&mut self);
}

type MessageHandler<M> = Box<dyn FnMut(&Io, M)>;

/// A shard made of tasks alone.
pub struct TaskShard<M> {
    environment: SimEnv<M>,
    executor: Executor,
    on_message: MessageHandler<M>,
    outbox: Outbox<M>,
    armed: Option<Nanos>,
}

/// Messages that tasks of a shard want sent to other shards: shared with the tasks.
pub type Outbox<M> = Rc<RefCell<std::collections::VecDeque<(base::ShardId, M)>>>;

impl<M: Send + 'static> TaskShard<M> {
    pub fn new(mut environment: SimEnv<M>, outbox: Outbox<M>, on_message: MessageHandler<M>) -> TaskShard<M> {
        let mut executor = Executor::new();
        executor.set_now(environment.now());
        executor.io().refill_random(RANDOM_RESERVOIR, || environment.random_u64());
        TaskShard { environment, executor, on_message, outbox, armed: None }
    }

    pub fn io(&self) -> &Io {
        self.executor.io()
    }

    fn turn_once(&mut self) {
        let mut events = Vec::new();
        self.environment.poll(&mut events, Wait::No);
        self.executor.set_now(self.environment.now());
        self.executor.io().set_clocks(self.environment.wall_clock_ms(), self.environment.uptime());
        for event in events {
            match event {
                Event::Completion(completion) => self.executor.on_completion(completion),
                Event::Message(message) => (self.on_message)(self.executor.io(), message),
            }
        }
        let environment = &mut self.environment;
        self.executor.io().refill_random(RANDOM_RESERVOIR, || environment.random_u64());
        self.executor.run_ready();
        for (token, operation) in self.executor.take_operations() {
            self.environment.submit(token, operation);
        }
    }
}

impl<M: Send + 'static> Turn for TaskShard<M> {
    fn turn(&mut self) {
        self.turn_once();
        let mut full = false;
        while let Some((to, message)) = { self.outbox.borrow_mut().pop_front() } {
            if let Err(message) = self.environment.send(to, message) {
                self.outbox.borrow_mut().push_front((to, message));
                full = true;
                break;
            }
        }
        let now = self.environment.now();
        let retry = full.then(|| now + Nanos::from_micros(10));
        let retry = if self.executor.has_ready() { Some(now + Nanos::from_micros(1)) } else { retry };
        if let Some(deadline) = [retry, self.executor.next_deadline()].into_iter().flatten().min()
            && self.armed.is_none_or(|armed| armed > deadline || armed <= now)
        {
            self.armed = Some(deadline);
            self.environment.wake_at(deadline);
        }
    }
}

/// Why waiting was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// No event is left that could end the wait: somebody waits for something that never comes.
    Deadlock,
    /// The simulated time that was allowed is over.
    OutOfTime,
    /// The number of events that was allowed is over: something spins.
    TooManyEvents,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stuck::Deadlock => "deadlock: nothing will ever happen again, and somebody still waits",
            Stuck::OutOfTime => "not done within the simulated time allowed",
            Stuck::TooManyEvents => "not done within the number of events allowed",
        })
    }
}

/// A shard of tasks, shared between the loop that gives it turns and whoever gives it tasks.
pub type SharedTaskShard<M> = Rc<RefCell<TaskShard<M>>>;

type SharedShard = Rc<RefCell<dyn Turn>>;

/// A world and the shards that live in it.
pub struct Simulation {
    pub world: World,
    shards: BTreeMap<(ProcessId, u16), SharedShard>,
}

/// Bounds of one wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub time: Nanos,
    pub events: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { time: Nanos::from_secs(3_600), events: 20_000_000 }
    }
}

impl Simulation {
    pub fn new(world: World) -> Simulation {
        Simulation { world, shards: BTreeMap::new() }
    }

    /// From now on the world's turns for this shard go to `shard`.
    pub fn attach(&mut self, process: ProcessId, shard: u16, turns: SharedShard) {
        self.shards.insert((process, shard), turns);
    }

    /// Drops the shards of processes that have ended, with all their tasks.
    pub fn bury(&mut self) {
        let world = self.world.clone();
        self.shards.retain(|&(process, _), _| world.is_alive(process));
    }

    /// Lets one event happen, and the turn that it asks for. `false`: there is none.
    pub fn step(&mut self) -> bool {
        match self.world.step() {
            Step::Dry => return false,
            Step::Passed => {}
            Step::Turn(process, shard) => {
                if let Some(shard) = self.shards.get(&(process, shard)) {
                    shard.borrow_mut().turn();
                }
            }
        }
        true
    }

    /// Steps until `done` says so.
    pub fn step_until(&mut self, patience: Patience, mut done: impl FnMut() -> bool) -> Result<(), Stuck> {
        let deadline = self.world.now() + patience.time;
        let events = self.world.events() + patience.events;
        while !done() {
            if !self.step() {
                return Err(Stuck::Deadlock);
            }
            if self.world.now() > deadline {
                return Err(Stuck::OutOfTime);
            }
            if self.world.events() > events {
                return Err(Stuck::TooManyEvents);
            }
        }
        Ok(())
    }

    /// Steps until this much simulated time has passed, or nothing is left to happen.
    pub fn run_for(&mut self, time: Nanos) {
        let deadline = self.world.now() + time;
        while self.world.now() < deadline && self.step() {}
    }

    /// Runs a future as a task of `shard` to its end.
    pub fn block_on<M: Send + 'static, T: 'static>(
        &mut self,
        shard: &Rc<RefCell<TaskShard<M>>>,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, Stuck> {
        let result = self.start(shard, future);
        let check = result.clone();
        self.step_until(Patience::default(), || check.borrow().is_some())?;
        Ok(result.borrow_mut().take().expect("it is done"))
    }

    /// Starts a future as a task of `shard`; the place fills when it ends.
    pub fn start<M: Send + 'static, T: 'static>(
        &mut self,
        shard: &Rc<RefCell<TaskShard<M>>>,
        future: impl Future<Output = T> + 'static,
    ) -> Rc<RefCell<Option<T>>> {
        let result = Rc::new(RefCell::new(None));
        let place = result.clone();
        shard.borrow().io().spawn(async move {
            let value = future.await;
            *place.borrow_mut() = Some(value);
        });
        let mut shard = shard.borrow_mut();
        let now = shard.environment.now();
        shard.environment.wake_at(now);
        result
    }

    /// Starts a process of `shards` shards of tasks; messages go to `on_message` of the shard they reach.
    pub fn start_task_process<M: Send + 'static>(
        &mut self,
        machine: u16,
        shards: u16,
        mut on_message: impl FnMut(u16, &Outbox<M>) -> MessageHandler<M>,
    ) -> (ProcessId, Vec<SharedTaskShard<M>>, Vec<Outbox<M>>) {
        let (process, environments, _) = self.world.start_process::<M>(machine, shards);
        let mut started = Vec::new();
        let mut outboxes = Vec::new();
        for (index, environment) in environments.into_iter().enumerate() {
            let outbox = Outbox::default();
            let handler = on_message(index as u16, &outbox);
            let shard = Rc::new(RefCell::new(TaskShard::new(environment, outbox.clone(), handler)));
            self.attach(process, index as u16, shard.clone());
            started.push(shard);
            outboxes.push(outbox);
        }
        (process, started, outboxes)
    }
}
