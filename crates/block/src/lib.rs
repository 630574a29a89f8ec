//! The seam between what hosts speak and where data lives: block requests in, statuses out.
//!
//! A target is anything that can execute a [`BlockRequest`]; it validates nothing that the edge has
//! validated already (range, access), it asserts it.

mod payload;
mod request;

pub use payload::Payload;
pub use request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};
