//! The engine: one shard of the array, joining the rooms below it.
//!
//! No protocol and no parity logic lives here.

pub mod command;

pub use command::{Command, CommandError, CommandErrorKind, Reply, ReplyChannel};

/// What shards and the control plane say to a shard.
pub enum ShardMessage {
    /// To shard 0 only.
    Control(Command, ReplyChannel),
}
