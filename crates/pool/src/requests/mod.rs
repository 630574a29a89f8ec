//! The requests to a lane, and how it answers them. Reading is in `reading`.

pub mod admit;
pub mod catalog;
pub mod hold;
pub mod hold_table;
pub mod map_status;
pub mod refer;
pub mod request;
pub mod shrink;
pub mod write;
