//! The front end: sessions of hosts with this shard over iSCSI, from the socket to block requests.
//!
//! ```text
//!   socket ─► connection (iscsi) ─► scsi_command (scsi) ─► shard::Unit
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `front`, `calls` | what the sessions of a shard share; the calls about sessions |
//! | `listener`, `eviction`, `admission` | accepting connections; which ones are closed for a new one; whether a session is admitted |
//! | `connection` | one connection from accept to end |
//! | `directory` | which hosts the target admits, and where they reach it |
//! | `session`, `sessions` | one session: its LUNs and its running commands; all sessions of a shard |
//! | `register` | which initiators are logged in on which shard |
//! | `units` | volumes as hosts see them |
//! | `scsi_command`, `extended_copy` | one command; a copy inside a pool |
//! | `task_set`, `running`, `aborting`, `task_management` | the order of commands, and how they are aborted |
//! | `reservations`, `access` | reservations and access states: requested from shard 0, and announced to sessions |
//! | `figures`, `scrape` | what commands have done, by volume, host and portal; how it is added up when it is asked for |
//! | `events`, `session_events` | logins, refusals and ends of sessions, reported as events |
//!
//! If something concerns sessions on several shards, a shard sends messages to the others: logins, reservations, access
//! states, resets. Shard 0 owns this state. No management and no parity logic belongs here.

mod aborting;
mod access;
mod admission;
mod calls;
mod connection;
mod directory;
mod events;
mod eviction;
mod extended_copy;
mod figures;
mod front;
mod listener;
mod register;
mod reservations;
mod running;
mod scrape;
mod scsi_command;
mod session;
mod session_events;
mod sessions;
mod task_management;
mod task_set;
mod units;

pub use front::Front;
