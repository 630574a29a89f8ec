//! A profile, as results keep it.

use serde::{Deserialize, Serialize};

use super::class::Class;
use crate::job::Job;

/// What one target's server did during one job.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Profile {
    /// What the target is called in tables.
    pub target: String,
    /// As it was measured; for the profile it may have run longer.
    pub job: Job,
    pub samples: u64,
    /// Samples of each class, all classes in their order.
    pub classes: Vec<(Class, u64)>,
    /// The busiest functions.
    pub symbols: Vec<Symbol>,
    /// CPU of the server per request while perf watched: beside that of the measured rounds it tells what watching costs.
    pub us_per_io: f64,
}

/// A function and how often it was met.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Symbol {
    pub name: String,
    /// The file that it is in: a program, a library, or the kernel.
    pub file: String,
    pub class: Class,
    pub samples: u64,
}
