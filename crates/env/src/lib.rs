//! The interface between Tangelo and the outside world.
//!
//! Everything below the control plane accesses clocks, randomness, drives, sockets and other shards only through
//! [`Env`]. It has two implementations: `uring` (io_uring, the real world) and `sim` (one seed determines
//! everything). This crate has the trait and its types, and no implementation.
//!
//! What always holds, in both implementations:
//! - every submitted operation completes exactly once, with the token it was submitted with;
//! - a buffer that is passed with an operation belongs to the environment until the completion returns it;
//! - operations on one drive may complete in any order, and a read that overlaps a write in flight may
//!   return the old or the new data;
//! - drive handles are valid on every shard of the process; connection and listener handles only on the
//!   shard that created them.

mod operation;
mod reservation;

pub use operation::{
    Completion, ConnectionHandle, DriveHandle, DriveIdentity, DriveInfo, DriveKind, IoError, ListenerHandle,
    Operation, Outcome, Token,
};
pub use reservation::{Reservation, ReservationAsk, ReservationHolder};

use base::{Nanos, ShardId};

/// How long [`Env::poll`] may wait for something to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all: take what is there.
    No,
    /// Until an event arrives or the clock reaches this point.
    Until(Nanos),
    /// Until an event arrives.
    Forever,
}

/// What [`Env::poll`] reports.
#[derive(Debug)]
pub enum Event<M> {
    Completion(Completion),
    /// From another shard, or from the control plane.
    Message(M),
}

/// A shard's view of the world.
pub trait Env {
    /// What shards say to each other.
    type Message: Send + 'static;

    /// This shard.
    fn shard(&self) -> ShardId;

    /// How many shards this process has; their ids run from 0.
    fn shards(&self) -> u16;

    /// The monotonic clock. Its zero is arbitrary; it never runs backwards.
    fn now(&self) -> Nanos;

    /// Wall-clock time in milliseconds since 1970, for people to read; may jump.
    fn wall_clock_ms(&self) -> u64;

    /// Time since the machine was started, including time in suspend. It never runs backwards, and cannot be set.
    fn uptime(&self) -> Nanos;

    /// Unpredictable bits (in the simulator: from the seed), fit for challenges and ids.
    fn random_u64(&mut self) -> u64;

    /// Begins an operation. It may already be done when this returns, but is reported by [`Env::poll`] only.
    fn submit(&mut self, token: Token, operation: Operation);

    /// Appends events to `events`, waiting at most as told if there is none yet.
    fn poll(&mut self, events: &mut Vec<Event<Self::Message>>, wait: Wait);

    /// Hands a message to another shard (or this one). Messages between two shards arrive in order.
    /// Gives the message back where that shard's queue is full: try again next turn.
    fn send(&mut self, to: ShardId, message: Self::Message) -> Result<(), Self::Message>;
}
