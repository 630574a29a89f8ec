//! The environment on io_uring: drives, sockets, messages and clocks of the real world, one ring per shard.
//!
//! ```text
//!  turn of a shard                        ring                                kernel
//!  submit(op) -> slot owns its buffers -> submission queue  --one enter-->    drives, sockets
//!  poll()     <- ready <- completion()  <- completion queue <--               doorbell (eventfd) <- other threads
//! ```
//!
//! What always holds:
//! - a buffer belongs to its slot until its completion has been taken, also when the environment is dropped;
//! - an idle shard sleeps in its ring and uses no CPU; before that it polls for a short time that adapts to the load
//!   (`spin`);
//! - system calls are made per turn, not per operation, except rare ones: to listen, and to create and close sockets;
//! - no system call of a shard blocks: helper threads make those that may, such as opening a drive (`drive/helper.rs`).
//!
//! This is one of the two crates with `unsafe`: submissions point to memory. It decides nothing about what is read,
//! written or sent, and retries only what the kernel did in part.

// This room is the world that the others must not touch.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod clock;
mod completion;
mod core;
mod drive;
mod errno;
mod mailbox;
mod ring;
mod slots;
mod socket;
mod spin;
#[cfg(test)]
mod tests;
mod threads;

pub use mailbox::Mailbox;
pub use threads::{Options, Shards, spawn_shards};

use std::sync::Arc;

use ::core::hint::spin_loop;
use base::{Nanos, ShardId};
use env::{Env, Event, Operation, Token, Wait};

use clock::Random;
use core::{Common, Core};
use mailbox::Messages;
use spin::Spin;

/// How long a shard looks for more work before it sleeps, at most, by default: about what a host on a fast network takes
/// from one answer to its next request.
pub const DEFAULT_SPIN_MAX: Nanos = Nanos::from_micros(50);

/// One shard's world. Stays on the thread it was made on.
pub struct UringEnv<M: Send + 'static> {
    // dropped in this order: no completion, then no message
    core: Core,
    messages: Messages<M>,
    random: Random,
    spin: Spin,
    /// The last poll had something to report.
    active: bool,
}

impl<M: Send + 'static> UringEnv<M> {
    pub(crate) fn new(
        shard: ShardId,
        mailboxes: Vec<Mailbox<M>>,
        common: Arc<Common>,
        spin_max: Nanos,
    ) -> std::io::Result<UringEnv<M>> {
        let messages = Messages::new(shard, mailboxes);
        let core = Core::new(shard, common, messages.doorbell().clone())?;
        let spin = Spin::new(spin_max);
        Ok(UringEnv { core, messages, random: Random::default(), spin, active: false })
    }

    /// Moves what has happened into `events`. Whether there was anything.
    fn collect(&mut self, events: &mut Vec<Event<M>>) -> bool {
        let before = events.len();
        self.core.work();
        events.extend(self.core.ready.drain(..).map(Event::Completion));
        self.messages.receive(events);
        events.len() > before
    }

    fn has_something(&mut self) -> bool {
        self.core.has_something() || self.messages.has_incoming()
    }

    /// Looks for something to happen without sleeping, for a short while.
    fn look_until(&mut self, until: Nanos) {
        while !self.has_something() && clock::now() < until {
            // completions that wait for us to ask
            self.core.ring.submit();
            spin_loop();
        }
    }

    /// Sleeps in the ring until something happens, or about the deadline.
    fn sleep(&mut self, timeout: Option<Nanos>) {
        let timeout = match (timeout, self.core.patience()) {
            (Some(timeout), Some(patience)) => Some(timeout.min(patience)),
            (timeout, patience) => timeout.or(patience),
        };
        self.messages.doorbell().announce_sleep();
        if !self.has_something() {
            self.core.ring.wait(timeout);
        }
        self.messages.doorbell().awake();
    }
}

impl<M: Send + 'static> Env for UringEnv<M> {
    type Message = M;

    fn shard(&self) -> ShardId {
        self.messages.shard()
    }

    fn shards(&self) -> u16 {
        self.messages.shards()
    }

    fn now(&self) -> Nanos {
        clock::now()
    }

    fn wall_clock_ms(&self) -> u64 {
        clock::wall_clock_ms()
    }

    fn uptime(&self) -> Nanos {
        clock::uptime()
    }

    fn random_u64(&mut self) -> u64 {
        self.random.next()
    }

    fn submit(&mut self, token: Token, operation: Operation) {
        self.core.submit(token, operation);
    }

    fn poll(&mut self, events: &mut Vec<Event<M>>, wait: Wait) {
        self.messages.flush();
        let mut may_spin = self.active && self.spin.limit() > Nanos(0);
        let mut idle_since = None;
        loop {
            // What was there before counts; what has been queued goes out with the same system call that brings in
            // what has been done meanwhile, unless we are about to wait: then that does it.
            let has_something = self.has_something();
            let deadline = match wait {
                Wait::No => Some(Nanos(0)),
                Wait::Until(deadline) => Some(deadline),
                Wait::Forever => None,
            };
            let now = if wait == Wait::No { Nanos(0) } else { clock::now() };
            let must_return = deadline.is_some_and(|deadline| deadline <= now);
            if has_something || must_return || may_spin {
                self.core.ring.submit();
            }
            if !has_something && !must_return {
                idle_since.get_or_insert(now);
                let left = deadline.map(|deadline| deadline - now);
                if std::mem::take(&mut may_spin) {
                    let limit = self.spin.limit();
                    self.look_until(now + left.map_or(limit, |left| left.min(limit)));
                } else {
                    self.sleep(left);
                }
            }
            if self.collect(events) || must_return {
                break;
            }
        }
        if let Some(since) = idle_since {
            self.spin.on_gap(clock::now() - since);
        }
        self.active = !events.is_empty();
    }

    fn send(&mut self, to: ShardId, message: M) -> Result<(), M> {
        self.messages.send(to, message)
    }
}
