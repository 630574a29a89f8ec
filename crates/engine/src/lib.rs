//! One shard of the array, joined from its rooms: `shard` (volumes, lanes, messages), `front` (sessions of hosts) and,
//! on shard 0, `manager`.
//!
//! ```text
//!   control plane ─► Command ─► manager (shard 0) ─► Replica ─► every shard: units, sessions
//!   socket ─► front: connection (iscsi) ─► command (scsi) ─► shard: null, memory, raw, pool, or another shard
//! ```
//!
//! This crate contains only the turn and the dispatch of calls to rooms.

mod dispatch;
mod turn;

pub use manager::{PairedArray, PoolsAbsent, Saving, StartParameters, StartedHook, what_it_holds};
pub use shard::{Memory, ShardMessage};
pub use turn::Shard;
