//! The simulated world: one seed determines the clock, the drives, the network, the faults and the workload.
//!
//! The same pool and shard code that runs on io_uring runs here, unchanged, against [`SimEnv`]. An oracle knows
//! what every block may hold. A failing seed can be replayed exactly. The parts:
//!
//! ```text
//!   workload ─► oracle (what may be read)          scenarios: scripted worlds with a name
//!      │
//!   Simulation: gives shards their turns ─► TaskShard (executor) or the engine
//!      │                                        │ Env
//!   World: clock, events, faults  ◄─────────── SimEnv
//!      ├── drives: medium, volatile cache, faults
//!      └── network: ordered bytes in random pieces
//! ```
//!
//! Nothing here reads a real clock, a file, a socket or randomness from outside the seed, and no thread is
//! started: seeds run in parallel in processes of the `sim` program.

pub mod array;
mod counts;
mod drive;
mod drive_faults;
mod drive_io;
mod environment;
mod fault;
pub mod matrix;
mod medium;
mod network;
pub mod oracle;
mod process;
mod reservations;
pub mod scenarios;
pub mod seed;
pub mod steady;
mod trace;
pub mod workload;
mod world;

pub(crate) use base::prng;
pub use base::prng::{Prng, scatter};
pub use counts::counts;
pub use drive::{DriveNumber, DriveOptions};
pub use drive_faults::Snapshot;
pub use environment::{Outside, SimEnv};
pub use fault::{FaultCounts, FaultKind, FaultRates};
pub use process::{Outbox, Patience, SharedTaskShard, Simulation, Stuck, TaskShard, Turn};
pub use trace::TraceSink;
pub use world::{ProcessId, Step, World};
