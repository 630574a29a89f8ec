//! What a disk says: the SCSI logical unit (SAM-5, SPC-4, SBC-3), pure, over [`block::BlockRequest`].
//!
//! A command is planned by [`LogicalUnit::start`], which either answers at once or names one block request;
//! [`LogicalUnit::finish`] takes that request's result and either answers or names the next. Nothing here
//! does I/O, waits, reads a clock or knows a transport.
//!
//! ```text
//!   cdb, data ─► start ─► Step::Done(response)
//!                  ├────► Step::Reserve(request, continuation): whoever owns the reservations applies it
//!                  ├────► Step::SetAccess(changes, continuation): whoever owns the access states does
//!                  └────► Step::Block(request, continuation)
//!                              │ the caller executes the request
//!                              ▼
//!                         finish(continuation, result) ─► Step::Done | Step::Block, and so on
//! ```
//!
//! What always holds: a command exists if and only if it has a row in `rows.rs`; every block request lies
//! within the volume and within the limits; a command that is refused has changed nothing.

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
mod unit;

pub use commands::copy::{CopyPart, CopyStretch, Naa, Peer};
pub use document::command_list;
pub use exercise::exercise;
pub use identity::{Identity, PRODUCT, Target, TargetPort, VENDOR};
pub use nexus::{Nexus, UnitAttention};
pub use response::{Continuation, Response, Step};
pub use unit::{
    Command, LogicalUnit, Space, command_name, no_auto_contingent_allegiance, no_room, no_such_lun,
    task_aborted,
};
