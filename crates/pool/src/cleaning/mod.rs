//! Cleaning: live blocks of segments are written anew, beside the hosts.

pub mod brake;
pub mod clean;
pub mod pace;
pub mod round;
