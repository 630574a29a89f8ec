//! The messages of a shard, and the values that travel in them. All of them are `Send` by being values.

use std::net::SocketAddr;
use std::sync::Arc;

use base::{ShardId, VolumeId};
use block::{BlockRequest, BlockResult};
use env::IoError;

use crate::command::{Command, ReplyChannel, SessionStatus};
use crate::reinstatement::{SessionKey, SessionPlace};
use crate::replica::Replica;
use crate::task_management::Reset;

/// What shards and the control plane say to a shard.
pub enum ShardMessage {
    /// From the control plane, to shard 0 only.
    Control(Command, ReplyChannel),
    /// From a shard that waits for the answer.
    Call { from: ShardId, id: CallId, call: Call },
    /// To the shard that called.
    Answer { id: CallId, answer: Answer },
}

/// Numbers the calls of one shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallId(pub(crate) u64);

/// Work that one shard asks of another.
#[derive(Debug)]
pub enum Call {
    /// A request to a volume that lives on the asked shard. → [`Answer::Block`]
    Block(VolumeId, BlockRequest),
    /// From shard 0: the array as it is now. Answered when access that it takes away has ended.
    /// → [`Answer::Done`]
    Replicate(Arc<Replica>),
    /// From shard 0: listen on these addresses. → [`Answer::Listening`]
    Listen(Vec<SocketAddr>),
    /// To shard 0: a session wants to begin. Answered when the older session that it replaces has ended.
    /// → [`Answer::Registered`]
    Register(SessionKey, SessionPlace),
    /// To shard 0: a session has ended. → [`Answer::Done`]
    Unregister(SessionKey, SessionPlace),
    /// From shard 0: end this session. Answered when its commands have ended. → [`Answer::Done`]
    EndSession(SessionPlace),
    /// End every session of this host. → [`Answer::Done`]
    EndSessionsOf(String),
    /// Carry out a reset on every session of the asked shard. Answered when no aborted command is at work.
    /// → [`Answer::Done`]
    Reset(Reset),
    /// → [`Answer::Sessions`]
    Sessions,
    /// From shard 0: stop serving hosts. Answered when no session is left. → [`Answer::Done`]
    Quiesce,
    /// From shard 0: write checkpoints and stop for good. → [`Answer::Done`]
    Stop,
}

/// What came of a call.
#[derive(Debug)]
pub enum Answer {
    Done,
    Block(BlockResult),
    /// The bound addresses, in the order asked for.
    Listening(Vec<Result<SocketAddr, IoError>>),
    /// The session's TSIH.
    Registered(u16),
    Sessions(Vec<SessionStatus>),
}
