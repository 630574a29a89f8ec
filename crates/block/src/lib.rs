//! The interface between the protocols of hosts and the storage of data: block requests in, statuses out.
//!
//! A target is anything that can execute a [`BlockRequest`]. The caller has validated the request (range, access); the
//! target does not validate again, it asserts.
//!
//! Three targets are here, [`Null`], [`Memory`] and [`Raw`], and two filters over any target, [`Fault`] and
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
