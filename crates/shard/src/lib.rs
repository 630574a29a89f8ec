//! One core of the array, below the rooms that work on it: what its tasks share, how shards exchange messages, and
//! where blocks live.
//!
//! A shard is one thread with its own event loop. It owns its lanes of every pool, and serves the array as shard 0 has
//! last described it. Shards share nothing but messages. All messages and the values in them are defined here; a second
//! head will send them, too. No protocol, no management and no parity logic belongs here.
//!
//! ```text
//!   front (sessions of hosts) ─┐                      ┌─► units: null, memory, raw, pool, or on another shard
//!   manager (shard 0) ─────────┴─► Context: ask, mail ┴─► lanes
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `context` | what the tasks of a shard share; calls to other shards |
//! | `message` | the messages: calls, the room that carries out each, and answers |
//! | `news` | values in messages: changes of reservations and access states, resets, space, copies, events |
//! | `figures` | values in messages: what the sessions of a shard have done |
//! | `names` | values in messages: the identity of a session, and the shard that serves it |
//! | `mail` | calls under way, and queues to other shards |
//! | `replica` | the array as every shard sees it |
//! | `units` | the volumes of a shard and where their blocks live |
//! | `target_plan` | how a shard reaches the blocks of a volume, and what this depends on |
//! | `pool_target` | a volume in a pool: writes wait while its layer changes |
//! | `lanes` | the lanes of pools on a shard, and the way to other lanes |
//! | `transfers`, `bulk`, `bulk_credit` | layers that the control plane reads and writes; its requests and their credit |
//! | `patience` | a pool's settings as lanes use them |
//! | `kept` | reservations and access states as the catalog keeps them |
//! | `memory` | the array's memory, divided among the shards |
//! | `refusals` | writes that recently found no space |
//! | `reports`, `limiter` | events that the shard reports to shard 0; repetitions are counted |
//! | `runners` | tasks that carry out one job after the other |

mod bulk;
mod bulk_credit;
mod context;
mod figures;
pub mod kept;
mod lanes;
mod limiter;
mod mail;
mod memory;
mod message;
mod names;
mod news;
mod patience;
mod pool_target;
mod refusals;
mod replica;
mod reports;
mod runners;
mod target_plan;
mod transfers;
mod units;

pub use context::{Context, Handler, MANAGER, Stage};
pub use figures::FrontFigures;
pub use lanes::{home, pool_layer, worst_exposed};
pub use limiter::Reports;
pub use memory::Memory;
pub use message::{Answer, Call, CallId, FrontCall, ManagerCall, ShardCall, ShardMessage};
pub use names::{AddressSource, CommandPlace, SessionKey, SessionLimit, SessionPlace, SessionRequest};
pub use news::{
    AccessAsk, AccessNews, CopyAsk, CopyGrant, DriveUse, NotifiedHosts, Report, ReservationAsk,
    ReservationNews, Reset, Space, Spaces,
};
pub use patience::effective;
pub use refusals::LATELY as REFUSED_LATELY;
pub use replica::{Replica, Transfer};
pub use runners::Runners;
pub use units::{Target, Unit, Units};
