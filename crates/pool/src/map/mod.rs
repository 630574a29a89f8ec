//! The map of a lane: a tree of pages for each layer, in memory and read from drives.

pub mod exposure;
pub mod pages;
pub mod recounted;
pub mod ring;
pub mod tree;
