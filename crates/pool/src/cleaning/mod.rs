//! Cleaning: live blocks of segments are written anew, beside the hosts.

pub mod clean;
pub mod cleaner;
pub mod pacing;
pub mod round;
