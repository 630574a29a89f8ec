//! The manager of the array, on shard 0: what there is, how it starts, how it changes, how it stops.
//!
//! Changes take turns. Each is checked against the catalog, made durable, told to every shard, and answered
//! when every shard has taken it over. What is not durable is not told; what was told is durable. What other shards want of
//! the manager is a [`shard::ManagerCall`], and nothing else.

mod absent;
mod access;
mod at_stake;
mod bin;
mod care;
mod change;
mod clock;
mod clock_watch;
mod commands;
mod copy_sources;
mod drive_commands;
mod drives;
mod error;
mod fullness;
mod hosts;
mod identity;
mod judge;
mod keeper;
mod layers;
mod locate;
mod login_problems;
mod loss;
mod manager;
mod members;
mod opening;
mod order;
mod outlook;
mod pool_create;
mod pool_delete;
mod pool_settings;
mod pool_status;
mod pools;
mod portals;
mod probed;
mod raw;
mod raw_device;
mod refresh;
mod reload;
mod remembered;
mod rename;
mod resize;
mod saving;
mod schedules;
mod scrub;
mod settings;
mod slow;
mod snapshots;
mod space;
mod spares;
mod start;
mod state;
mod status;
mod turn;
mod volumes;
mod wipe;
mod words;

pub use manager::{Manager, StartParameters, StartedHook};
pub use saving::Saving;
