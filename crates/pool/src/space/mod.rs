//! Chunks and segments: which are free, what the others hold and lack, and who may use how many.

pub mod fit;
pub mod lacking;
pub mod promises;
pub mod segments;
pub mod shares;
pub mod waiting;
