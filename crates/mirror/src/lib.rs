//! The drives of two heads are kept equal: each drive of the owner has a twin on the partner. Without I/O; whoever uses it moves the
//! bytes. `docs/design/0017-mirrored-drives.md` says why this is done below the pool.
//!
//! | file | what |
//! |---|---|
//! | `bits` | sets of regions and pieces |
//! | `geometry` | how a drive is divided into regions and pieces |
//! | `message` | what owner and partner say to each other about drives |
//! | `record` | what is recorded on a drive: where its twin may differ from it |
//! | `twin` | a drive and its twin |
//! | `order` | what the owner's side wants done |
//! | `request` | a request that the owner's side has been given |
//! | `owner` | the owner's side: writes to both; `copying`: what the partner lacks |
//! | `side` | the partner's side: takes writes of one term |
//! | `tests` | single cases (`cases`); two sides (`world`) with drives that have caches (`drives`), a connection, power cuts and takeovers, from seeds, and what these must have met (`met`) |

mod bits;
mod geometry;
pub mod message;
mod order;
mod owner;
mod record;
mod request;
mod side;
#[cfg(test)]
mod tests;
mod twin;

pub use bits::Bits;
pub use geometry::{Geometry, PIECE_BYTES};
pub use message::{Answer, Ask, TwinNews, WantedTwin};
pub use order::{CopyError, CopyId, Order, OwnDrive, RequestId};
pub use owner::Mirror;
pub use record::{RECORD_BYTES, REGIONS_MAX, Record, SLOT_BYTES, Synchrony, TwinId};
pub use side::{Refused, Side, StillBusy};
pub use twin::TwinState;
