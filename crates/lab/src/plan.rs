//! What to run.

use crate::job::Job;
use crate::target::Target;

/// What to run, where, and on which cores.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the target is called in tables.
    pub name: String,
    pub target: Target,
    pub job: Job,
    pub round: u32,
    /// Cores of the generator; wherever the system likes where there is none.
    pub cores: Vec<usize>,
    /// The process that serves, where it runs on this machine and is not found by its port.
    pub target_process: Option<u32>,
}
