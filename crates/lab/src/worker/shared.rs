//! What the threads of a run share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use super::drives;
use crate::job::Job;
use crate::target::Target;

/// What the threads of a run share with who started them.
pub struct Shared {
    pub target: Target,
    pub job: Job,
    /// When to begin, once this has been decided.
    pub start: OnceLock<Instant>,
    pub operations: AtomicU64,
    pub bytes: AtomicU64,
    /// A thread has failed or given up: all threads end.
    pub stop: AtomicBool,
    pub drives: drives::Opened,
}
