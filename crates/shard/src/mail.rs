//! Messages between shards: calls and their answers, and the queues that carry both.
//!
//! A call is work done on another shard. Its answer finds the waiting task by the call's number. Every call is answered
//! exactly once. Messages that do not fit into another shard's queue wait here, in order. Their number is bounded
//! because every waiting call belongs to a task, and tasks are bounded.

use std::cell::RefCell;
use std::collections::VecDeque;

use base::{PoolId, ShardId};
use env::Env;
use pool::{LaneRequest, LaneResult};
use task::{Io, OneshotReceiver, OneshotSender, oneshot};

use crate::message::{Answer, Call, CallId, ShardMessage};

/// What waits for an answer.
enum Waiting {
    ForAny(OneshotSender<Answer>),
    ForLane(OneshotSender<LaneResult>),
}

/// A place where a caller waits. It detects a second answer to the same call by its generation.
#[derive(Default)]
struct Place {
    generation: u32,
    waiting: Option<Waiting>,
}

/// The messages of one shard.
pub struct Mail {
    io: Io,
    shard: ShardId,
    /// One for each call under way, and free ones.
    places: RefCell<Vec<Place>>,
    free: RefCell<Vec<usize>>,
    /// One queue for each shard, indexed by its id.
    outgoing: RefCell<Vec<VecDeque<ShardMessage>>>,
}

impl Mail {
    pub fn new(io: &Io, shard: ShardId, shards: u16) -> Mail {
        Mail {
            io: io.clone(),
            shard,
            places: RefCell::default(),
            free: RefCell::default(),
            outgoing: RefCell::new((0..shards).map(|_| VecDeque::new()).collect()),
        }
    }

    /// Calls another shard. The answer arrives when the work is done. Dropping the receiver does not stop the work.
    pub fn call(&self, to: ShardId, call: Call) -> OneshotReceiver<Answer> {
        let (sender, receiver) = oneshot(&self.io);
        self.begin(to, call, Waiting::ForAny(sender));
        receiver
    }

    /// The same for a lane's request, without a task that unwraps the answer.
    pub fn call_lane(
        &self,
        to: ShardId,
        (pool, lane): (PoolId, u16),
        request: LaneRequest,
    ) -> OneshotReceiver<LaneResult> {
        let (sender, receiver) = oneshot(&self.io);
        self.begin(to, Call::Lane(pool, lane, request), Waiting::ForLane(sender));
        receiver
    }

    fn begin(&self, to: ShardId, call: Call, waiting: Waiting) {
        let mut places = self.places.borrow_mut();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            places.push(Place::default());
            places.len() - 1
        });
        let place = &mut places[index];
        place.generation = place.generation.wrapping_add(1);
        let replaced = place.waiting.replace(waiting);
        assert!(replaced.is_none(), "a place is one call's at a time");
        let id = CallId { place: index, generation: place.generation };
        self.post(to, ShardMessage::Call { from: self.shard, id, call });
    }

    /// Sends the answer to a call of another shard.
    pub fn answer(&self, to: ShardId, id: CallId, answer: Answer) {
        self.post(to, ShardMessage::Answer { id, answer });
    }

    /// An answer has arrived.
    pub fn on_answer(&self, id: CallId, answer: Answer) {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(id.place).filter(|place| place.generation == id.generation);
        let waiting =
            place.and_then(|place| place.waiting.take()).expect("an answer to a call that was made");
        drop(places);
        self.free.borrow_mut().push(id.place);
        match (waiting, answer) {
            (Waiting::ForAny(sender), answer) => sender.send(answer),
            (Waiting::ForLane(sender), Answer::Lane(result)) => sender.send(result),
            (Waiting::ForLane(_), other) => unreachable!("the answer to a lane's request, not {other:?}"),
        }
    }

    fn post(&self, to: ShardId, message: ShardMessage) {
        self.outgoing.borrow_mut()[usize::from(to.0)].push_back(message);
    }

    /// Passes as many messages to the environment as it has room for.
    pub fn flush<E: Env<Message = ShardMessage>>(&self, env: &mut E) {
        for (index, queue) in self.outgoing.borrow_mut().iter_mut().enumerate() {
            while let Some(message) = queue.pop_front() {
                if let Err(message) = env.send(ShardId(index as u16), message) {
                    queue.push_front(message);
                    break;
                }
            }
        }
    }

    /// Whether messages wait for another shard's queue.
    pub fn is_backlogged(&self) -> bool {
        self.outgoing.borrow().iter().any(|queue| !queue.is_empty())
    }
}
