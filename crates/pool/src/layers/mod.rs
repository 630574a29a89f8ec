//! Layers: how they are stacked, what they say of each other's blocks, and how unneeded ones are removed.

pub mod bases;
pub mod dropping;
pub mod layer;
pub mod merge;
pub mod merger;
pub mod names;
pub mod references;
pub mod stacks;
pub mod usage;
