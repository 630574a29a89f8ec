//! Fencing of the other head by a fence agent of Debian's `fence-agents` (FenceAgentAPI: `key=value` lines on the standard input, an
//! exit code as the answer).
//!
//! What always holds: an agent's word counts only after its status has said "on" for a head that was heard at that time; a head counts as
//! fenced only if the status said "off" afterwards; a time-out is a failure, and ends the agent with all processes that it has started;
//! values of parameters are in no message.
//!
//! | file | what |
//! |---|---|
//! | `agent` | runs an agent for one action, with a time limit |
//! | `metadata` | what an agent says of itself: its parameters and actions |
//! | `fencer` | an agent that fences one head: whether it is to be trusted, and what it has done |
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

mod agent;
mod fencer;
mod metadata;

pub use agent::AgentError;
pub use fencer::{Fencer, Outcome, Power, Trust};
pub use metadata::{Metadata, ParameterFault};

use std::fmt;
use std::time::Duration;

/// What is to be done to the other head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// It stays off until somebody switches it on.
    Off,
    /// It is switched off, and on again.
    Reboot,
}

/// How the other head is fenced.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The name of the agent, such as `fence_ipmilan`, or a path.
    pub agent: String,
    /// What the agent needs to know: names and values. Some are secrets.
    pub parameters: Vec<(String, String)>,
    pub means: Means,
    /// How long one action may take.
    pub time: Duration,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.parameters.iter().map(|(name, _)| name).collect();
        f.debug_struct("Options")
            .field("agent", &self.agent)
            .field("parameters", &names)
            .field("means", &self.means)
            .field("time", &self.time)
            .finish()
    }
}
