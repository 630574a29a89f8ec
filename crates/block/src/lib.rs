//! The seam between what hosts speak and where data lives: block requests in, statuses out.
//!
//! A target is anything that can execute a [`BlockRequest`]; it validates nothing that the edge has
//! validated already (range, access), it asserts it.
//!
//! Three targets live here, [`Null`], [`Memory`] and [`Raw`], and two filters over any target, [`Fault`] and
//! [`Delay`].

mod budget;
mod extent;
mod filter;
mod memory;
mod null;
mod payload;
mod range_lock;
mod raw;
mod request;
#[cfg(test)]
mod testing;

pub use budget::{Budget, Held};
pub use extent::RequestKind;
pub use filter::{Delay, Fault, ScriptedFault};
pub use memory::Memory;
pub use null::Null;
pub use payload::Payload;
pub use raw::Raw;
pub use request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};
