//! SCSI (SAM-5, SPC-4, SBC-3): logical unit numbers, CDBs, sense data, inquiry and mode pages.
//!
//! Layouts and their meaning only: which commands exist and what they do is the business of crate `scsi`.
//! All integers are big-endian. Parsing accepts any bytes and never panics.

pub mod lun;
pub mod status;

pub use lun::{Lun, LunError};
pub use status::Status;
