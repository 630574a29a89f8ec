//! The log of a lane: entries wait, are built into batches, written, and committed in order.

pub mod append;
pub mod apply;
pub mod batch;
pub mod queue;
pub mod write_batch;
