//! The front door: sessions of hosts with this shard over iSCSI, from the socket to block requests.
//!
//! ```text
//!   socket ─► connection (iscsi) ─► scsi_command (scsi) ─► shard::Unit
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `door`, `calls` | what the sessions of a shard share; the calls that are about sessions |
//! | `listener`, `guests`, `admission` | accepting connections; who gives way, who may have one more, who has to wait |
//! | `connection` | one connection from accept to end |
//! | `directory` | whom the target lets in, and where it can be reached |
//! | `session`, `sessions` | one session: its LUNs and its commands at work; all of a shard |
//! | `register` | who is logged in on which shard |
//! | `units` | volumes as hosts see them |
//! | `scsi_command`, `extended_copy` | one command; a copy inside a pool |
//! | `task_set`, `running`, `aborting`, `task_management` | the order of commands, and how they are aborted |
//! | `reservations`, `access` | reservations and access states: asked of shard 0, and told to sessions |
//! | `events`, `telling` | what happens at the front door, told to the log |
//!
//! What concerns more than one session, a shard tells the others in messages: who is logged in, reservations, access
//! states, resets. Shard 0 owns them. No management and no parity logic lives here.

mod aborting;
mod access;
mod admission;
mod calls;
mod connection;
mod directory;
mod door;
mod events;
mod extended_copy;
mod guests;
mod listener;
mod register;
mod reservations;
mod running;
mod scsi_command;
mod session;
mod sessions;
mod task_management;
mod task_set;
mod telling;
mod units;

pub use door::Front;
pub use events::{LoginRefusal, SessionChange, SessionEnd, SessionEvent, SessionListener};
pub use iscsi::LoginFault;
