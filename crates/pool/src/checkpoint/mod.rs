//! Checkpoints, and opening a lane from the newest one.

pub mod checkpointer;
pub mod found;
pub mod newest;
pub mod recovery;
pub mod sanity;
