//! The requests to a lane, and how it answers them. Reading is in `reading`.

pub mod admit;
pub mod beyond;
pub mod catalog;
pub mod hold;
pub mod holds;
pub mod map_status;
pub mod refer;
pub mod request;
pub mod write;
