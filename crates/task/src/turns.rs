//! How a task yields: to other ready tasks of the same turn, or until the next turn of the shard.

use std::task::Poll;

use crate::io::Io;

impl Io {
    /// Lets every other ready task of this turn run first.
    pub async fn yield_now(&self) {
        pend_once(|| self.wake(self.current())).await;
    }

    /// Lets the turn end: what has happened in the world meanwhile comes first.
    pub async fn next_turn(&self) {
        pend_once(|| self.wake_next_turn(self.current())).await;
    }
}

async fn pend_once(see_to_waking: impl Fn()) {
    let mut pended = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut pended, true) {
            return Poll::Ready(());
        }
        see_to_waking();
        Poll::Pending
    })
    .await;
}
