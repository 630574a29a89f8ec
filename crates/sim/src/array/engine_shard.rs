//! A shard of the engine that takes its turns in the simulated world, and the interface of the control plane to it.

use std::sync::{Arc, Mutex};

use api::{Command, CommandError, Reply};
use base::{Nanos, ShardId};
use engine::{Shard, ShardMessage};
use env::{Env, Event, Operation, Token, Wait};
use heads::{Mail, MirrorEnv};
use task::Io;

use crate::environment::{Outside, SimEnv};
use crate::process::Turn;

/// How often the administrator looks for an answer.
const LOOK: Nanos = Nanos::from_micros(50);

/// The world of a single head, or of the owner of two.
pub enum ArrayEnv {
    Alone(SimEnv<ShardMessage>),
    Mirrored(Box<MirrorEnv<SimEnv<Mail<ShardMessage>>, ShardMessage>>),
}

/// See the module's words.
pub struct EngineShard {
    pub environment: ArrayEnv,
    pub shard: Shard,
    /// When it has asked to be woken.
    pub armed: Option<Nanos>,
}

/// Does the same with either.
macro_rules! either {
    ($environment:expr, $inner:ident => $what:expr) => {
        match $environment {
            ArrayEnv::Alone($inner) => $what,
            ArrayEnv::Mirrored($inner) => $what,
        }
    };
}

impl ArrayEnv {
    /// When it needs a turn by itself.
    fn next_deadline(&self) -> Option<Nanos> {
        match self {
            ArrayEnv::Alone(_) => None,
            ArrayEnv::Mirrored(mirrored) => mirrored.next_deadline(),
        }
    }

    fn wake_at(&mut self, deadline: Nanos) {
        match self {
            ArrayEnv::Alone(alone) => alone.wake_at(deadline),
            ArrayEnv::Mirrored(mirrored) => mirrored.below().wake_at(deadline),
        }
    }
}

impl Env for ArrayEnv {
    type Message = ShardMessage;

    fn shard(&self) -> ShardId {
        either!(self, inner => inner.shard())
    }

    fn shards(&self) -> u16 {
        either!(self, inner => inner.shards())
    }

    fn now(&self) -> Nanos {
        either!(self, inner => inner.now())
    }

    fn wall_clock_ms(&self) -> u64 {
        either!(self, inner => inner.wall_clock_ms())
    }

    fn uptime(&self) -> Nanos {
        either!(self, inner => inner.uptime())
    }

    fn random_u64(&mut self) -> u64 {
        either!(self, inner => inner.random_u64())
    }

    fn submit(&mut self, token: Token, operation: Operation) {
        either!(self, inner => inner.submit(token, operation));
    }

    fn poll(&mut self, events: &mut Vec<Event<ShardMessage>>, wait: Wait) {
        either!(self, inner => inner.poll(events, wait));
    }

    fn send(&mut self, to: ShardId, message: ShardMessage) -> Result<(), ShardMessage> {
        either!(self, inner => inner.send(to, message))
    }
}

impl Turn for EngineShard {
    fn turn(&mut self) {
        if self.shard.is_stopped() {
            return;
        }
        self.shard.turn(&mut self.environment, false);
        let now = self.environment.now();
        let deadlines = [self.shard.next_deadline(), self.environment.next_deadline()];
        if let Some(deadline) = deadlines.into_iter().flatten().min() {
            let deadline = deadline.max(now + Nanos::from_micros(1));
            if self.armed.is_none_or(|armed| armed <= now || armed > deadline) {
                self.armed = Some(deadline);
                self.environment.wake_at(deadline);
            }
        }
    }
}

/// Sends a command to shard 0 and waits, on another machine's shard, for its answer.
pub async fn command(
    io: &Io,
    outside: &Outside<ShardMessage>,
    command: Command,
) -> Result<Reply, CommandError> {
    ask(io, outside, command, LOOK).await
}

/// The same for somebody who looks for the answer this often.
pub async fn ask(
    io: &Io,
    outside: &Outside<ShardMessage>,
    command: Command,
    look: Nanos,
) -> Result<Reply, CommandError> {
    let place: Arc<Mutex<Option<Result<Reply, CommandError>>>> = Arc::default();
    let answer = place.clone();
    let reply = Box::new(move |result| *answer.lock().expect("one thread") = Some(result));
    let mut message = ShardMessage::Control(command, reply, api::patient_caller());
    while let Err(returned) = outside.send(ShardId(0), message) {
        message = returned;
        io.sleep(look).await;
    }
    loop {
        if let Some(result) = place.lock().expect("one thread").take() {
            return result;
        }
        io.sleep(look).await;
    }
}
