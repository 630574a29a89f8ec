//! The geometry of a batch: the five protections, what each cell holds, and the positions of blocks.

pub mod layout;
pub mod position;
pub mod protection;
pub mod reference;
