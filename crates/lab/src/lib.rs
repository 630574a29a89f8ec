//! The lab: loads on drives, logical units and the echo floor; their results and bottlenecks.
//!
//! ```text
//!   job + target ─► run: threads on io_uring, started together ─► tally ─► result (JSON) ─► tables, report
//!                    worker/: channels over drives, iSCSI, echo           compare, against, history
//! ```
//! What always holds: every figure can be traced to a job, a target and the settings in force; a comparison is a ratio
//! of runs that were interleaved. The lab uses only a server's protocol, so it treats all targets alike.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a load generator is at the edge to the world"
)]

mod against;
mod agent;
mod bottleneck;
mod chart;
pub mod cli;
mod command;
mod compare;
mod copy;
mod cpu;
mod fio;
mod floor;
mod grid;
mod history;
mod html;
mod job;
mod kernels;
mod measure;
mod more;
mod offload;
mod place;
mod plan;
mod profile;
mod progress;
mod result;
mod run;
mod settings;
mod steady;
mod suite;
mod sweep;
mod table;
mod target;
#[cfg(test)]
mod testing;
mod torture;
mod units;
mod verify;
mod watch;
mod worker;

pub use command::{Form, run as run_command};
