//! A head's own thread: takes turns like a shard of the engine, in the last of the process's environments.

use std::rc::Rc;

use base::{Nanos, ShardId};
use env::{Env, Event, Operation, Token, Wait};
use task::{Executor, Io};

use crate::head::{HeadOptions, RunningHead, Surroundings, ToArray};
use crate::mirror_env::Mail;
use crate::permit::Permit;

/// Random values generated in advance, for the numbers of connections.
const RANDOM_RESERVOIR: usize = 64;
/// How often what found a full queue is sent again.
const SEND_AGAIN: Nanos = Nanos::from_millis(1);

/// See the header of this file.
pub struct HeadShard {
    executor: Executor,
    running: Rc<RunningHead>,
    operations: Vec<(Token, Operation)>,
    started: bool,
}

impl HeadShard {
    /// Starts a head. `permit` is what the shards of its array will read; `surroundings` gets the way to run tasks here.
    pub fn start<M: Send + 'static>(
        env: &mut impl Env<Message = Mail<M>>,
        options: HeadOptions,
        permit: Permit,
        surroundings: impl FnOnce(&Io) -> Box<dyn Surroundings>,
    ) -> HeadShard {
        let mut executor = Executor::new();
        executor.set_now(env.now());
        executor.io().set_clocks(env.wall_clock_ms(), env.uptime());
        executor.io().refill_random(RANDOM_RESERVOIR, || env.random_u64());
        let surroundings = surroundings(executor.io());
        let running = RunningHead::start(executor.io(), options, env.shards() - 1, permit, surroundings);
        HeadShard { executor, running, operations: Vec::new(), started: false }
    }

    pub fn running(&self) -> &Rc<RunningHead> {
        &self.running
    }

    /// Runs one turn. With `may_wait` it waits for an event if there is nothing to do.
    pub fn turn<M: Send + 'static>(&mut self, env: &mut impl Env<Message = Mail<M>>, may_wait: bool) {
        let wait = if may_wait { self.wait(env.now()) } else { Wait::No };
        let mut events = Vec::new();
        env.poll(&mut events, wait);
        self.executor.set_now(env.now());
        self.executor.io().set_clocks(env.wall_clock_ms(), env.uptime());
        self.executor.io().refill_random(RANDOM_RESERVOIR, || env.random_u64());
        self.started = true;
        for event in events {
            match event {
                Event::Completion(completion) => self.executor.on_completion(completion),
                Event::Message(Mail::Head(mail)) => self.running.on_mail(mail),
                Event::Message(Mail::Task(task)) => task(&self.running),
                Event::Message(_) => unreachable!("only what is for the head comes here"),
            }
        }
        self.executor.run_ready();
        self.executor.take_operations_into(&mut self.operations);
        for (token, operation) in self.operations.drain(..) {
            env.submit(token, operation);
        }
        self.send(env);
    }

    fn send<M: Send + 'static>(&self, env: &mut impl Env<Message = Mail<M>>) {
        while let Some(shard) = self.running.next_to_ask() {
            // one whose queue is full is asked in the next turn
            if env.send(shard, Mail::Answer).is_err() {
                break;
            }
            self.running.asked(shard);
        }
        while let Some(next) = self.running.next_for_array() {
            let mail = match next {
                ToArray::Order(order) => Mail::Order(order),
                ToArray::Wait => Mail::Wait,
            };
            if env.send(ShardId(0), mail).is_err() {
                return;
            }
            self.running.told_array();
        }
    }

    fn wait(&self, now: Nanos) -> Wait {
        if !self.started || self.executor.has_ready() {
            return Wait::No;
        }
        let again = self.running.next_for_array().map(|_| now + SEND_AGAIN);
        match [again, self.executor.next_deadline()].into_iter().flatten().min() {
            Some(deadline) => Wait::Until(deadline),
            None => Wait::Forever,
        }
    }

    /// When the head needs its next turn if no event arrives; `None`: never.
    pub fn next_deadline(&self, now: Nanos) -> Option<Nanos> {
        match self.wait(now) {
            Wait::No => Some(Nanos::default()),
            Wait::Until(deadline) => Some(deadline),
            Wait::Forever => None,
        }
    }
}
