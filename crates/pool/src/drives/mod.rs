//! The drives of a pool: what a drive holds, making a pool, and when a drive is given up.

pub mod create;
pub mod departure;
pub mod evidence;
pub mod fault_response;
pub mod full;
pub mod health;
pub mod labels;
pub mod latency;
pub mod membership;
pub mod probe;
pub mod twin_record;
pub mod watch;
