//! The shard: one turn of its event loop.
//!
//! ```text
//!   poll ─► completions ─► executor        what happened since the last turn
//!        └► messages ────► Rooms           (calls become tasks)
//!   run every ready task
//!   submit ◄─ operations, send ◄─ messages what the tasks want of the environment
//! ```
//!
//! Only [`Shard::turn`] knows the environment. Everything else reaches it through the executor's handle and the mail. A
//! turn blocks only in `poll`, and `poll` never waits while there is work to do.

use std::rc::Rc;

use base::{Nanos, ShardId};
use env::{Env, Event, Operation, Token, Wait};
use task::Executor;

use manager::StartParameters;
use shard::{Context, Memory, ShardMessage, Stage};

use crate::dispatch::Rooms;

/// Random values generated in advance for one turn's tasks: ids, challenges, epochs.
const RANDOM_RESERVOIR: usize = 4096;

/// One shard of the array. Made on the thread that runs it.
pub struct Shard {
    executor: Executor,
    rooms: Rc<Rooms>,
    events: Vec<Event<ShardMessage>>,
    operations: Vec<(Token, Operation)>,
    started: bool,
}

impl Shard {
    /// Shard `shard` of `shards`. Shard 0 needs the start parameters; it starts the others.
    pub fn new(shard: ShardId, shards: u16, parameters: Option<StartParameters>, memory: Memory) -> Shard {
        assert!(shard.0 < shards && usize::from(shards) <= base::limits::SHARDS_MAX);
        assert_eq!(parameters.is_some(), shard.0 == 0, "shard 0 starts the array");
        let executor = Executor::new();
        let context = Context::new(executor.io(), shard, shards, memory);
        let rooms = Rooms::new(context, parameters);
        Shard { executor, rooms, events: Vec::new(), operations: Vec::new(), started: false }
    }

    /// Runs one turn. With `may_wait` it waits for an event if there is nothing to do; otherwise it only processes what
    /// is there.
    pub fn turn<E: Env<Message = ShardMessage>>(&mut self, env: &mut E, may_wait: bool) {
        assert_eq!(env.shard(), self.rooms.context.shard, "a shard stays with its environment");
        let wait = if may_wait { self.wait() } else { Wait::No };
        env.poll(&mut self.events, wait);
        self.executor.set_now(env.now());
        let io = self.executor.io();
        io.set_clocks(env.wall_clock_ms(), env.uptime());
        io.refill_random(RANDOM_RESERVOIR, || env.random_u64());
        self.started = true;
        for event in self.events.drain(..) {
            match event {
                Event::Completion(completion) => self.executor.on_completion(completion),
                Event::Message(message) => self.rooms.on_message(message),
            }
        }
        self.executor.run_ready();
        self.executor.take_operations_into(&mut self.operations);
        for (token, operation) in self.operations.drain(..) {
            env.submit(token, operation);
        }
        self.rooms.context.mail.flush(env);
    }

    /// Whether the shard has been stopped: nothing is in flight, and it needs no further turn.
    pub fn is_stopped(&self) -> bool {
        self.rooms.context.stage.get() == Stage::Stopped && !self.rooms.context.mail.is_backlogged()
    }

    /// Bytes of memory that transfers of the control plane hold, for those who check that they are bounded.
    pub fn bulk_held_bytes(&self) -> usize {
        self.rooms.context.bulk_held_bytes()
    }

    /// How long the next poll may wait.
    fn wait(&self) -> Wait {
        if !self.started || self.executor.has_ready() || self.rooms.context.mail.is_backlogged() {
            return Wait::No;
        }
        match self.executor.next_deadline() {
            Some(deadline) => Wait::Until(deadline),
            None => Wait::Forever,
        }
    }

    /// When the shard needs its next turn if no event arrives; `None`: never.
    pub fn next_deadline(&self) -> Option<Nanos> {
        match self.wait() {
            Wait::No => Some(Nanos::default()),
            Wait::Until(deadline) => Some(deadline),
            Wait::Forever => None,
        }
    }
}
