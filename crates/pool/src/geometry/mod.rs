//! What a batch looks like: the five kinds of protection, which cell holds what, and the addresses of blocks.

pub mod layout;
pub mod position;
pub mod protection;
pub mod reference;
