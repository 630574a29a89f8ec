//! A small, single-threaded, deterministic executor. A shard runs its `async fn`s on it.
//!
//! Tasks run in the order in which they became ready; nothing else affects the order. Leaf futures do not use wakers:
//! they record the running task ([`Io::current`]), and the executor makes it ready again. So every future
//! awaited here must come from this crate or be built from such futures. Futures accept spurious polls.
//!
//! Dropping the future of an operation does not cancel the operation: its slot stays occupied until the
//! completion arrives, and then discards it.
//!
//! ```text
//!   Env::poll ──► Executor::on_completion ─► slot filled, task ready
//!                 Executor::run_ready ─────► tasks polled; they push operations
//!                 Executor::take_operations ► Env::submit
//! ```

mod executor;
mod io;
mod sockets;
mod sync;
mod turns;

pub use executor::{Executor, TaskId};
pub use io::{Io, OperationFuture, Sleep};
pub use sync::{
    Gate, JoinAll, Notify, OneshotReceiver, OneshotSender, Semaphore, SemaphorePermit, join_all, oneshot,
    race,
};
