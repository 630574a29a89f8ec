//! How commands are answered.

use crate::{CommandError, Reply};

/// How an answer finds its way back. Called once, on shard 0's thread; must not block.
pub type ReplyChannel = Box<dyn FnOnce(Result<Reply, CommandError>) + Send>;

/// Whether whoever asked has gone: a command that has changed nothing by then changes nothing.
pub type Caller = Box<dyn Fn() -> bool + Send>;

/// One that waits until it is answered.
pub fn patient_caller() -> Caller {
    Box::new(|| false)
}
