//! The pool: drives joined into a checksummed, parity-protected log, and volumes mapped onto it.

mod format;
mod layout;
mod position;
mod protection;

pub use position::{Position, SegmentId};
pub use protection::{Protection, Shape, UnknownProtection, WidthOutOfRange};
