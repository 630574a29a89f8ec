//! Whether everything is there and every count is right, and what is done where it is not.

pub mod audit;
pub mod loss;
pub mod recount;
pub mod scrub;
pub mod scrubber;
