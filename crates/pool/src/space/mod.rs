//! Chunks and segments: which are free, what the others hold and lack, and how much each kind of work may use.

pub mod fit;
pub mod lacking;
pub mod promises;
pub mod segments;
pub mod shares;
pub mod waiting;
