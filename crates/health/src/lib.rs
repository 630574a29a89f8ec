//! What drives say of their own health: heat, wear, errors, failures that they foretell.
//!
//! ```text
//!   device ─► ask (smartctl, sysfs) ─► smartctl: Reading ─► judge ─► watch ─► problems, health of each drive
//!                                                 └► history ─► wear ──┘
//! ```
//!
//! What always holds: nothing here waits for a drive on a thread that serves hosts. One drive is asked at a time, within a time limit; a
//! drive that has not answered an earlier question is not asked again before that has ended. What a drive or smartctl says is never
//! trusted: it is bounded, and every value is optional. A value that is not known leads to no problem but that it is not known.
//!
//! | file | what |
//! |---|---|
//! | `device` | which device is to be asked for a drive of the array |
//! | `ask` | asks one drive: smartctl and sysfs |
//! | `smartctl` | what smartctl prints, as a value: `nvme`, `ata` and `scsi` by the protocol of the drive; `json` looks into it |
//! | `sysfs` | temperature and PCIe link, as the system says |
//! | `judge` | what is wrong with a drive; thresholds |
//! | `wear`, `history` | when its endurance is used up; what drives said on earlier days |
//! | `watch` | which drive is asked when, and what is told of all of them; `drive`: what is known of one |
//! | `testing` | what tests begin with |
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

mod ask;
mod device;
mod history;
mod judge;
mod smartctl;
mod sysfs;
#[cfg(test)]
mod testing;
mod watch;
mod wear;

pub use device::Roots;
pub use smartctl::{Protocol, Reading, parse};
pub use watch::{DriveList, Options, Report, keep};
