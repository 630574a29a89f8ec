//! Whether answers may be sent to hosts: one number, which the head sets and all shards of its array read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Nanos;

/// Until when answers may be sent to hosts, by the clock that goes on while the machine is suspended; at first never.
#[derive(Clone, Default, Debug)]
pub struct Permit(Arc<AtomicU64>);

impl Permit {
    /// `None`: none may be sent.
    pub fn set(&self, until: Option<Nanos>) {
        self.0.store(until.unwrap_or_default().0, Ordering::Release);
    }

    pub fn allows(&self, now: Nanos) -> bool {
        now.0 < self.0.load(Ordering::Acquire)
    }
}
