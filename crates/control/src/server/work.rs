//! Counts the requests of a client that are being carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What is at work for a client: requests that are here with their bodies, and not answered. Each request carries it.
#[derive(Clone)]
pub(super) struct Work {
    requests: Arc<AtomicUsize>,
    done: Arc<Notify>,
}

impl Work {
    /// `done` is notified after each request.
    pub(super) fn new(done: &Arc<Notify>) -> Work {
        Work { requests: Arc::default(), done: done.clone() }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Until the returned value is dropped.
    pub(super) fn begin(self) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        UnderWay(self)
    }
}

pub(super) struct UnderWay(Work);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.done.notify_one();
    }
}
