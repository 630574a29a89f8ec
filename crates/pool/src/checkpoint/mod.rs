//! Checkpoints, and opening a lane from the newest one.

pub mod checkpointer;
pub mod found;
pub mod recovery;
pub mod sanity;
pub mod writer;
