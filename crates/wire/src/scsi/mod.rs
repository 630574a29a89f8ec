//! SCSI (SAM-5, SPC-4, SBC-3): logical unit numbers, CDBs, sense data, inquiry and mode pages.
//!
//! Layouts and their meaning only: crate `scsi` decides which commands exist and what they do.
//! All integers are big-endian. Parsing accepts any bytes and never panics; `parse(emit(x)) == x`.

pub mod capacity;
pub mod cdb;
pub mod copy;
pub mod inquiry;
pub mod log;
pub mod lun;
pub mod mode;
pub mod port_groups;
pub mod provisioning;
pub mod report;
pub mod reservation;
pub mod sense;
pub mod sense_code;
pub mod status;
pub mod vpd;

pub use lun::{Lun, LunError};
pub use sense::{FieldPointer, Sense, SenseFormat};
pub use sense_code::{SenseCode, SenseKey};
pub use status::Status;
