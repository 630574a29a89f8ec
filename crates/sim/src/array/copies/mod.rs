//! What an administrator does with copies in the whole array: snapshots of one volume and of groups while hosts write,
//! schedules, clones, rollback, promotion, the bin, other sizes; and what must be true of it.
//!
//! Volumes of the hosts are snapshotted, cloned and promoted under their load. Those of the administrator's own host,
//! clones among them, are unmapped, rolled back, made smaller and deleted, too. After every start the catalog must be one
//! of the states that are possible: what was answered is there, what was cut off is there as a whole or not at all.
//! Snapshots are read by clones that are made to be read; the oracle knows what may be in them.

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
