//! What a disk says: the SCSI logical unit (SAM-5, SPC-4, SBC-3), pure, over [`block::BlockRequest`].
//!
//! A command is planned by [`LogicalUnit::start`], which either answers at once or names one block request;
//! [`LogicalUnit::finish`] takes that request's result and either answers or names the next. Nothing here
//! does I/O, waits, reads a clock or knows a transport.
//!
//! ```text
//!   cdb, data ─► start ─► Step::Done(response)
//!                  └────► Step::Block(request, continuation)
//!                              │ the caller executes the request
//!                              ▼
//!                         finish(continuation, result) ─► Step::Done | Step::Block, and so on
//! ```

mod identity;
mod nexus;
mod response;
mod unit;

pub use identity::{AluaState, Identity, PRODUCT, PortGroup, Target, TargetPort, VENDOR};
pub use nexus::{Nexus, UnitAttention};
pub use response::{Continuation, Response, Step};
pub use unit::{Command, LogicalUnit, no_such_lun};
