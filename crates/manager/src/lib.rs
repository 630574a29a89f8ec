//! The manager of the array, on shard 0: what the array contains, how it starts, changes and stops.
//!
//! Changes are made one at a time, under the change lock. Each change is checked against the catalog, made durable, announced to every shard, and answered
//! when every shard has adopted it. Only durable changes are announced. Other shards ask the manager only by a
//! [`shard::ManagerCall`].
//!
//! | file | what is in it |
//! |---|---|
//! | `manager`, `state` | the manager, and what it knows of the array |
//! | `commands`, `order`, `change_lock` | commands: carried out, abandoned, changing one at a time |
//! | `start`, `paired`, `alone`, `opening`, `probed`, `absent`, `reload`, `portals` | how the array starts; what was not available then |
//! | `change`, `layers` | changing the catalog; making and dropping layers |
//! | `volumes`, `resize`, `snapshots`, `refresh`, `bin`, `copy_sources` | volumes and their copies |
//! | `transfers` | exports and imports of whole volumes |
//! | `hosts`, `access`, `rename` | hosts, mappings, access states, names |
//! | `schedules`, `clock`, `clock_watch` | work that depends on the time, and whether the clock is trusted |
//! | `raw`, `raw_device` | devices of raw volumes |
//! | `pools`, `pool_create`, `pool_delete`, `pool_settings`, `pool_upgrade`, `settings` | pools |
//! | `drives`, `drive_commands`, `drive_health`, `identity`, `locate`, `remembered`, `wipe` | drives |
//! | `keeper`, `keeper_state`, `repair`, `members`, `error_threshold`, `slow`, `spares`, `scrub` | looking after pools |
//! | `space`, `fullness`, `at_stake`, `loss`, `outlook`, `login_problems` | what is short, lost or at risk |
//! | `error`, `failure` | errors of drives, lanes and pools, as values for administrators |
//! | `status`, `pool_status`, `condition`, `metrics` | what administrators read |
//! | `event_ring`, `events`, `drive_events`, `known_problems`, `watch` | what has happened: numbered and told; problems that begin and end |
//! | `head_problems` | problems that only the head can see |
//! | `saving` | the head's own copy of the catalog |

mod absent;
mod access;
mod alone;
mod at_stake;
mod bin;
mod change;
mod change_lock;
mod clock;
mod clock_watch;
mod commands;
mod condition;
mod copy_sources;
mod drive_commands;
mod drive_events;
mod drive_health;
mod drives;
mod error;
mod error_threshold;
mod event_ring;
mod events;
mod failure;
mod fullness;
mod head_problems;
mod hosts;
mod identity;
mod keeper;
mod keeper_state;
mod known_problems;
mod layers;
mod locate;
mod login_problems;
mod loss;
mod manager;
mod members;
mod metrics;
mod opening;
mod order;
mod outlook;
mod paired;
mod pool_create;
mod pool_delete;
mod pool_settings;
mod pool_status;
mod pool_upgrade;
mod pools;
mod portals;
mod probed;
mod raw;
mod raw_device;
mod refresh;
mod reload;
mod remembered;
mod rename;
mod repair;
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
mod transfers;
mod volumes;
mod watch;
mod wipe;

pub use manager::{Manager, StartParameters, StartedHook};
pub use paired::{PairedArray, PoolsAbsent};
pub use saving::Saving;
pub use wipe::what_it_holds;
