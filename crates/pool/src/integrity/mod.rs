//! Checks that all data is present and all counts are correct, and repairs what is not.

pub mod audit;
pub mod loss;
pub mod recount;
pub mod scrub;
pub mod scrubber;
