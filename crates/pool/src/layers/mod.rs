//! Layers: which stands on which, what they say of each other's blocks, and what becomes of those that nobody needs.

pub mod bases;
pub mod dropping;
pub mod layer;
pub mod merge;
pub mod merger;
pub mod names;
pub mod references;
pub mod stacks;
pub mod usage;
