//! Saving the head's own copy of the catalog to its state directory, seen from shard 0.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use base::Nanos;
use task::Io;

const UNDER_WAY: u8 = 0;
const KEPT: u8 = 1;
const FAILED: u8 = 2;

/// About as long as the fsync of a file.
const LOOK_EVERY: Nanos = Nanos::from_millis(1);

/// Whether one copy is durable; reported by its receiver, on a thread of its own.
#[derive(Clone, Debug)]
pub struct Saving(Arc<AtomicU8>);

impl Saving {
    /// Another thread reports the result.
    pub fn under_way() -> Saving {
        Saving(Arc::new(AtomicU8::new(UNDER_WAY)))
    }

    /// The copy is already durable, or need not be.
    pub fn kept() -> Saving {
        Saving(Arc::new(AtomicU8::new(KEPT)))
    }

    /// Reports the result.
    pub fn finish(&self, kept: bool) {
        self.0.store(if kept { KEPT } else { FAILED }, Ordering::Release);
    }

    /// Whether nobody waits for the result.
    pub fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Waits for the result; returns whether the copy is durable.
    pub(crate) async fn ended(&self, io: &Io) -> bool {
        loop {
            match self.0.load(Ordering::Acquire) {
                UNDER_WAY => io.sleep(LOOK_EVERY).await,
                outcome => return outcome == KEPT,
            }
        }
    }
}
