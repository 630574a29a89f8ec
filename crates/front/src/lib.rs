//! The front door: sessions of hosts with this shard over iSCSI, from the socket to block requests.
//!
//! ```text
//!   socket ─► connection (iscsi) ─► scsi_command (scsi) ─► shard::Unit
//! ```
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
