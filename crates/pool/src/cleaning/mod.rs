//! Cleaning: live blocks of segments are written anew, while hosts read and write.

pub mod clean;
pub mod cleaner;
pub mod pacing;
pub mod round;
