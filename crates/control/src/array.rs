//! The array as the control plane sees it: a trait that carries out commands.

use std::future::Future;
use std::pin::Pin;

use api::{
    Bulk, BulkResult, Command, CommandError, CommandErrorKind, FenceTest, Origin, PairForgetting, PairOrder,
    PairStatus, Reply,
};

/// An answer on its way.
pub type Answer = Pin<Box<dyn Future<Output = Result<Reply, CommandError>> + Send>>;

/// The answer to a request of a transfer, on its way.
pub type BulkAnswer = Pin<Box<dyn Future<Output = BulkResult> + Send>>;

/// What a head says about the pair, on its way.
pub type PairAnswer = Pin<Box<dyn Future<Output = Result<PairStatus, CommandError>> + Send>>;

/// The array as the API reaches it. The real one passes commands to shard 0; tests have one of their own.
pub trait Array: Send + Sync {
    /// Carries out a command for somebody. One that was begun is finished even when nobody waits for the answer any more.
    fn call_for(&self, command: Command, origin: Origin) -> Answer;

    /// Sends a request of a transfer to a shard, at once.
    fn bulk(&self, shard: u16, bulk: Bulk) -> BulkAnswer;

    /// Tells how the pair of heads is, or asks this head for something. A head that is alone refuses.
    fn pair(&self, _order: PairOrder) -> PairAnswer {
        Box::pin(std::future::ready(Err(alone())))
    }

    /// Has both heads hold a pool: each drive gets a twin on the other head, or (`shared`) both see it. Hosts wait while the array is started
    /// again.
    fn convert(&self, _pool: String, _shared: bool, _dry_run: bool) -> Answer {
        Box::pin(std::future::ready(Err(alone())))
    }

    /// Makes the array one of this head alone. Hosts wait while it is started again.
    fn forget(&self, _how: PairForgetting, _dry_run: bool) -> Answer {
        Box::pin(std::future::ready(Err(alone())))
    }

    /// Tries this head's fence agent, and fences the other head if that is wanted.
    fn test_fence(&self, _how: FenceTest, _dry_run: bool) -> Answer {
        Box::pin(std::future::ready(Err(alone())))
    }

    /// The same as [`Array::call_for`] for the daemon itself.
    fn call(&self, command: Command) -> Answer {
        self.call_for(command, Origin::Daemon)
    }
}

fn alone() -> CommandError {
    let hint = "docs/pair.md tells how it gets a second one";
    CommandError::new(CommandErrorKind::NotFound, "this array has one head", hint)
}
