//! iSCSI (RFC 7143), both ends, sans-IO: bytes, answers and time in; effects and bytes out.
//!
//! One [`Connection`] is one session (MaxConnections 1, ErrorRecoveryLevel 0). Nothing here does I/O, reads
//! a clock or draws randomness: the caller hands all three in. Every buffer is bounded by `base::limits`.

mod api;
mod connection;

pub use api::{
    Chap, CloseReason, Command, CommandResponse, Directory, Effect, HostAccess, Secret, SessionIdentity,
    SessionKind, TaskAttribute, TaskManagement, TaskManagementFunction, TaskManagementResponse, TaskTag,
};
pub use connection::{Connection, ConnectionParams};
