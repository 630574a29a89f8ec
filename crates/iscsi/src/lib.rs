//! iSCSI (RFC 7143), both ends, sans-IO. Input: bytes, answers and time. Output: effects and bytes.
//!
//! One [`Connection`] is one session (MaxConnections 1, ErrorRecoveryLevel 0). Nothing here does I/O, reads
//! a clock or draws randomness: the caller supplies all three. `base::limits` bounds every buffer.
//! Bytes from a peer never cause a panic: they become a reject, a status, or the end of the connection.

mod api;
mod chap;
mod command;
mod connection;
mod data_in;
mod data_out;
mod failure;
mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod initiator;
mod keys;
mod link;
mod login;
mod output;
mod params;
mod security;
mod serial;
mod session;
mod task_management;
mod tasks;
mod text;
mod transfer;

/// What a connection is made with.
pub use block::Budget;

pub use api::{
    Chap, CloseReason, Command, CommandResponse, Directory, Effect, HostAccess, LoginFault, Secret,
    SessionIdentity, SessionKind, TaskAttribute, TaskManagement, TaskManagementFunction,
    TaskManagementResponse, TaskTag,
};
pub use connection::Connection;
pub use keys::Parameters;
pub use params::ConnectionParams;
