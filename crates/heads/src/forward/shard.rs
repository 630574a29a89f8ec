//! The forwarder as a thread runs it, until this head becomes the owner and the thread a shard of its array.

use std::collections::BTreeSet;
use std::rc::Rc;

use base::Nanos;
use env::{Completion, ConnectionHandle, Env, Event, ListenerHandle, Operation, Outcome, Token, Wait};
use task::Executor;

use super::forwarder::{ForwardOptions, Forwarder};

/// Random values generated in advance: for connections.
const RANDOM_RESERVOIR: usize = 64;
/// Tokens of a forwarder: what has not ended when it stops may end in a later world of the thread.
const OURS: u64 = 1 << 62;
/// It takes a turn at least so often.
const BEAT: Nanos = Nanos::from_millis(50);
/// After a longer pause it stood still.
const STANDSTILL: Nanos = Nanos::from_millis(250);

/// Whether an operation was one of a forwarder.
pub(crate) fn is_of_forwarder(token: Token) -> bool {
    token.0 & OURS != 0
}

/// What a forwarder has begun ends after it has stopped: a connection that is made only now is closed.
pub(crate) fn end_late(outcome: &Outcome) -> Option<Operation> {
    match *outcome {
        Outcome::Connected { connection, .. } | Outcome::Accepted { connection, .. } => {
            Some(Operation::CloseConnection { connection })
        }
        Outcome::Listening(listener, _) => Some(Operation::CloseListener { listener }),
        _ => None,
    }
}

/// See the header of this file.
pub struct ForwardShard<M> {
    executor: Executor,
    forwarder: Rc<Forwarder>,
    operations: Vec<(Token, Operation)>,
    turned: Nanos,
    listeners: BTreeSet<ListenerHandle>,
    connections: BTreeSet<ConnectionHandle>,
    mail: Vec<M>,
}

impl<M: Send + 'static> ForwardShard<M> {
    pub fn start(env: &mut impl Env<Message = M>, options: ForwardOptions) -> ForwardShard<M> {
        let mut executor = Executor::new();
        executor.set_now(env.now());
        executor.io().set_clocks(env.wall_clock_ms(), env.uptime());
        executor.io().refill_random(RANDOM_RESERVOIR, || env.random_u64());
        let forwarder = Forwarder::start(executor.io(), options);
        let (listeners, connections) = (BTreeSet::new(), BTreeSet::new());
        let turned = env.uptime();
        let (operations, mail) = (Vec::new(), Vec::new());
        ForwardShard { executor, forwarder, operations, turned, listeners, connections, mail }
    }

    /// Runs one turn. With `may_wait` it waits for an event if there is nothing to do.
    pub fn turn(&mut self, env: &mut impl Env<Message = M>, may_wait: bool) {
        let deadline = self.next_deadline(env.now());
        let wait = if may_wait && deadline > env.now() { Wait::Until(deadline) } else { Wait::No };
        let mut events = Vec::new();
        env.poll(&mut events, wait);
        let before = std::mem::replace(&mut self.turned, env.uptime());
        self.executor.set_now(env.now());
        self.executor.io().set_clocks(env.wall_clock_ms(), env.uptime());
        self.executor.io().refill_random(RANDOM_RESERVOIR, || env.random_u64());
        if self.turned.saturating_sub(before) > STANDSTILL {
            self.forwarder.drop_hosts();
        }
        for event in events {
            match event {
                Event::Completion(Completion { token, outcome }) => {
                    self.note(&outcome);
                    self.executor.on_completion(Completion { token: Token(token.0 & !OURS), outcome });
                }
                Event::Message(mail) => self.mail.push(mail),
            }
        }
        self.executor.run_ready();
        self.submit(env);
    }

    fn submit(&mut self, env: &mut impl Env<Message = M>) {
        self.executor.take_operations_into(&mut self.operations);
        for (token, operation) in self.operations.drain(..) {
            match operation {
                Operation::CloseConnection { connection } => drop(self.connections.remove(&connection)),
                Operation::CloseListener { listener } => drop(self.listeners.remove(&listener)),
                _ => {}
            }
            env.submit(Token(token.0 | OURS), operation);
        }
    }

    fn note(&mut self, outcome: &Outcome) {
        match *outcome {
            Outcome::Connected { connection, .. } | Outcome::Accepted { connection, .. } => {
                self.connections.insert(connection);
            }
            Outcome::Listening(listener, _) => drop(self.listeners.insert(listener)),
            _ => {}
        }
    }

    /// When it needs its next turn if no event arrives.
    pub fn next_deadline(&self, now: Nanos) -> Nanos {
        match self.executor.has_ready() || self.executor.live() == 0 {
            true => now,
            false => self.executor.next_deadline().map_or(now + BEAT, |deadline| deadline.min(now + BEAT)),
        }
    }

    /// Closes everything. What ends later is for [`crate::MirrorEnv`], and so is the mail that has come.
    pub fn stop(self, env: &mut impl Env<Message = M>) -> Vec<M> {
        let connections = self.connections.into_iter();
        let closing = connections.map(|connection| Operation::CloseConnection { connection });
        let listeners = self.listeners.into_iter();
        let closing = closing.chain(listeners.map(|listener| Operation::CloseListener { listener }));
        // no token of the executor is so large
        for (number, operation) in (1 << 40..).zip(closing) {
            env.submit(Token(number | OURS), operation);
        }
        self.mail
    }
}
