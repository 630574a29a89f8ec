//! What a head and its log tell each other. The log stands for everything that is stored: pools on drives, of which the partner
//! has a copy.
//!
//! The contract of the log:
//! - A batch is acknowledged when this head holds it durably, all batches before it are acknowledged, and, with
//!   [`CommitRule::Both`](crate::CommitRule), the partner holds it and all batches before it durably.
//! - A root that is written alone records from where on the partner's copy lacks something. A root that is written in sync ends
//!   where both have everything, so whatever is behind it is copied.
//! - Reads see acknowledged data only.
//! - The partner's copy refuses what is not of the term in which [`crate::Head::accepts`] holds.

use crate::register::Term;
use crate::relation::CommitRule;

/// What a head demands of its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreOrder {
    /// Read the own copy, cut off the tail at its first hole, and write roots of this term. Answered by [`StoreEvent::Recovered`].
    Recover { term: Term },
    /// From now on, this rule says what is acknowledged. The partner gets every new batch under [`CommitRule::Both`].
    Commit(CommitRule),
    /// Copy to the partner what its copy lacks; acknowledge alone meanwhile. [`StoreEvent::NearlyCopied`] when little is left.
    Copy,
    /// Copy no more: the partner is gone.
    StopCopying,
    /// The partner is in sync: record that it lacks nothing.
    Joined,
    /// Take no new commands from hosts, end those under way, and write a checkpoint. Answered by [`StoreEvent::Drained`].
    Drain,
    /// Take commands again.
    EndDrain,
    /// This head owns nothing any more: forget what is under way, answer nothing.
    Demote,
}

/// What the log tells its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreEvent {
    /// The log of this term is ready.
    Recovered { term: Term },
    /// The partner lacks so little that new batches may wait for it.
    NearlyCopied,
    /// The partner holds everything that is acknowledged, and the roots of this term. Said again whenever it becomes true.
    Covered,
    /// Nothing is under way, and the checkpoint is on both heads.
    Drained,
}
