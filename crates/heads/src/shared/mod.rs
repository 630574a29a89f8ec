//! Drives that both heads see (`docs/design/0024-shared-drives.md`). The owner holds each of them by a persistent reservation, with a key
//! that names its term; drives refuse the writes of everybody else. Nothing is copied.
//!
//! What always holds: an owner reads a drive for its pools only after it has seen its own key hold it; a drive that another head holds by
//! now ends the owner's process, and is never taken for one that has failed.
//!
//! | file | what |
//! |---|---|
//! | `key` | keys of reservations: head, array and term |
//! | `record` | what makes a drive a shared one |
//! | `claim` | what is to be done until the drive is held, and that carried out |
//! | `owned` | the shared drives of an owner |
//! | `make` | drives become shared ones |

mod claim;
mod key;
mod make;
mod owned;
mod record;

pub use claim::ClaimError;
pub(crate) use claim::claim;
pub use key::ClaimKey;
pub use make::{SharedWish, make_shared};
pub(crate) use owned::SharedDrives;
pub use record::SharedRecord;
