//! The SCSI logical unit (SAM-5, SPC-4, SBC-3), as pure functions over [`block::BlockRequest`].
//!
//! [`LogicalUnit::start`] plans a command: it either answers at once or returns one block request.
//! [`LogicalUnit::finish`] takes the result of that request, and either answers or returns the next request. Nothing
//! here does I/O, waits, reads a clock or knows a transport.
//!
//! ```text
//!   cdb, data ─► start ─► Step::Done(response)
//!                  ├────► Step::Reserve(request, continuation): the owner of the reservations applies it
//!                  ├────► Step::SetAccess(changes, continuation): the owner of the access states applies them
//!                  └────► Step::Block(request, continuation)
//!                              │ the caller executes the request
//!                              ▼
//!                         finish(continuation, result) ─► Step::Done | Step::Block, and so on
//! ```
//!
//! What always holds: a command exists if and only if it has a row in `rows.rs`; every block request is
//! within the volume and within the limits; a refused command has changed nothing.

mod call;
mod commands;
mod document;
mod exercise;
mod fault;
mod finish;
mod identity;
mod nexus;
mod response;
mod row;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod traffic;
mod unit;

pub use commands::copy::{CopyPart, CopyStretch, Naa, Peer};
pub use document::command_list;
pub use exercise::exercise;
pub use identity::{Identity, PRODUCT, Target, TargetPort, VENDOR};
pub use nexus::{Nexus, UnitAttention};
pub use response::{Continuation, Response, Step};
pub use traffic::Traffic;
pub use unit::{
    Command, LogicalUnit, Space, command_name, no_auto_contingent_allegiance, no_room, no_such_lun,
    task_aborted,
};
