//! The engine: one shard of the array, joining the rooms below it.
//!
//! A shard owns its connections, its logical units and its lanes of every pool; shards share nothing but
//! messages. Shard 0 also manages the array: it opens drives and pools, changes the catalog, and tells the
//! others. No protocol and no parity logic lives here.
//!
//! ```text
//!   control plane ─► Command ─► shard 0: array ─► Replica ─► every shard: units, sessions
//!   socket ─► connection (iscsi) ─► scsi_command (scsi) ─► unit: null, memory, raw, pool, or another shard
//! ```

mod aborting;
mod access;
mod admission;
mod array;
mod connection;
mod context;
mod events;
mod extended_copy;
mod guests;
mod lanes;
mod listener;
mod mail;
mod memory;
mod message;
mod pool_target;
mod refusals;
mod reinstatement;
mod replica;
mod reservations;
mod runners;
mod running;
mod saving;
mod scsi_command;
mod session;
mod settings;
mod shard;
mod task_management;
mod task_set;
mod unit;

use api::{CommandError, PortalOptions};
use bytes::Bytes;

pub use admission::SessionLimit;
pub use events::{LoginRefusal, SessionChange, SessionEnd, SessionEvent, SessionListener};
pub use iscsi::LoginFault;
pub use memory::Memory;
pub use message::ShardMessage;
pub use saving::Saving;
pub use shard::Shard;

/// What shard 0 starts the array with.
pub struct StartParameters {
    /// Where to listen; every shard does. Port 0 takes a free one.
    pub portals: Vec<PortalOptions>,
    /// Paths of the drives to look at.
    pub drives: Vec<String>,
    /// Name of a new array, where neither the drives nor `state` know of one.
    pub array_name: String,
    /// What `save_state` was last given by an earlier run.
    pub state: Option<Bytes>,
    /// Keeps a copy of the catalog in the head's own state directory, for an array without a pool. Called on
    /// shard 0's thread before the reply to the command that changed it; must not block. Whoever keeps it
    /// passes that reply on when the copy is safe, and tells how it went: hosts' own changes wait for that.
    pub save_state: Box<dyn Fn(Bytes) -> Saving + Send>,
    /// Called once: when hosts are served, or with the reason why they never will be.
    pub started: StartedHook,
}

/// Told how the start went.
pub type StartedHook = Box<dyn FnOnce(Result<(), CommandError>) + Send>;
