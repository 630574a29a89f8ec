//! A shard of the engine that takes its turns in the simulated world, and the interface of the control plane to it.

use std::sync::{Arc, Mutex};

use api::{Command, CommandError, Reply};
use base::{Nanos, ShardId};
use engine::{Shard, ShardMessage};
use env::Env;
use task::Io;

use crate::environment::{Outside, SimEnv};
use crate::process::Turn;

/// How often the administrator looks for an answer.
const LOOK: Nanos = Nanos::from_micros(50);

/// See the module's words.
pub struct EngineShard {
    pub environment: SimEnv<ShardMessage>,
    pub shard: Shard,
    /// When it has asked to be woken.
    pub armed: Option<Nanos>,
}

impl Turn for EngineShard {
    fn turn(&mut self) {
        if self.shard.is_stopped() {
            return;
        }
        self.shard.turn(&mut self.environment, false);
        let now = self.environment.now();
        if let Some(deadline) = self.shard.next_deadline() {
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
