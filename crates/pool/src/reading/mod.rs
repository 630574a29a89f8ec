//! Reading blocks: from the map to a drive, with checksums checked and lost cells rebuilt.

pub mod cells;
pub mod read;
pub mod verify;
