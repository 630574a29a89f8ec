//! The world below the array of a head, with somebody who sees what is sent to hosts.

use std::cell::RefCell;
use std::rc::Rc;

use base::{Nanos, ShardId};
use engine::ShardMessage;
use env::{Env, Event, Operation, Token, Wait};
use heads::{Mail, Permit, is_of_engine};

use crate::environment::SimEnv;

/// What was sent to hosts without a permit.
pub type Seen = Rc<RefCell<Option<String>>>;

/// See the header of this file.
pub struct Witness {
    pub below: SimEnv<Mail<ShardMessage>>,
    pub permit: Permit,
    pub seen: Seen,
}

impl Env for Witness {
    type Message = Mail<ShardMessage>;

    fn shard(&self) -> ShardId {
        self.below.shard()
    }

    fn shards(&self) -> u16 {
        self.below.shards()
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn wall_clock_ms(&self) -> u64 {
        self.below.wall_clock_ms()
    }

    fn uptime(&self) -> Nanos {
        self.below.uptime()
    }

    fn random_u64(&mut self) -> u64 {
        self.below.random_u64()
    }

    fn submit(&mut self, token: Token, operation: Operation) {
        let is_answer = matches!(operation, Operation::Send { .. }) && is_of_engine(token);
        if is_answer && !self.permit.allows(self.uptime()) {
            *self.seen.borrow_mut() = Some("hosts are answered without a permit".to_owned());
        }
        self.below.submit(token, operation);
    }

    fn poll(&mut self, events: &mut Vec<Event<Mail<ShardMessage>>>, wait: Wait) {
        self.below.poll(events, wait);
    }

    fn send(&mut self, to: ShardId, message: Mail<ShardMessage>) -> Result<(), Mail<ShardMessage>> {
        self.below.send(to, message)
    }
}
