//! An administrator's work with copies in the whole array, and checks of its results: snapshots of one volume and of
//! groups while hosts write, schedules, clones, rollback, promotion, the bin, and resizing.
//!
//! Volumes of the hosts are snapshotted, cloned and promoted under load. Volumes of the administrator's own host,
//! including clones, are also unmapped, rolled back, shrunk and deleted. After every start, the catalog must be one
//! of the possible states: an answered command is there, and a command that was cut off is there completely or not at
//! all. Snapshots are read through clones that are made for this purpose; the oracle knows what they may contain.

mod administrator;
mod counts;
mod orders;
mod records;
mod schedule;
mod state;
mod told;
mod view;

pub use administrator::Administrator;
pub use counts::{Kind, administration};
pub use records::Records;
pub use state::HOST;
