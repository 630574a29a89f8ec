//! The memory that transfers hold: a reader that takes more than it may, and what comes back.

use api::{BulkOutput, BulkRequest, Command};
use base::Nanos;
use base::limits::{BULK_BYTES_MAX, TRANSFER_BYTES_MAX_HELD};
use bytes::Bytes;

use super::{DATA_BYTES, KEEP_NS_MAX, Mover, Moving, Place, Seen, Stop};
use crate::array::engine_shard::command;

/// Within this time, credit comes back.
const BACK_TIME: Nanos = Nanos::from_secs(10);
/// Whoever takes more than it may asks for so many pieces at once.
const GREED: usize = 2 * TRANSFER_BYTES_MAX_HELD / BULK_BYTES_MAX;

impl Mover {
    /// Asks for more than it may hold, and drops nothing.
    pub(super) async fn take_too_much(&self, moving: &Moving) -> Result<(), Stop> {
        let length_bytes = (moving.grant.size_bytes as usize).min(BULK_BYTES_MAX);
        let mut places = Vec::new();
        for _ in 0..GREED {
            places.push(self.post(moving, BulkRequest::Read { offset_bytes: 0, length_bytes }).await);
        }
        self.io.sleep(Nanos(KEEP_NS_MAX)).await;
        let held = |place: &Place| match &*place.lock().expect("one thread") {
            Some(Ok(BulkOutput::Data(pieces))) => pieces.iter().map(Bytes::len).sum(),
            _ => 0,
        };
        let held_bytes: usize = places.iter().map(held).sum();
        if held_bytes > TRANSFER_BYTES_MAX_HELD {
            return Err(self.fail(format!("one transfer was given {held_bytes} bytes at once")));
        }
        self.check_bound()?;
        if held_bytes > TRANSFER_BYTES_MAX_HELD - length_bytes {
            Seen::Full.seen();
        }
        // each is answered when the earlier ones are dropped
        for place in places {
            drop(self.answer(&place).await?);
        }
        Ok(())
    }

    pub(super) fn held_bytes(&self) -> impl Iterator<Item = usize> {
        self.shards.iter().map(|shard| shard.borrow().shard.bulk_held_bytes())
    }

    pub(super) fn check_bound(&self) -> Result<(), Stop> {
        match self.held_bytes().find(|&bytes| bytes > DATA_BYTES / 4) {
            Some(bytes) => Err(self.fail(format!("transfers hold {bytes} bytes of a shard"))),
            None => Ok(()),
        }
    }

    /// Nothing is held when nothing is moved.
    pub(super) async fn check_credit_is_back(&self) {
        let deadline = self.io.now() + BACK_TIME;
        while self.held_bytes().any(|bytes| bytes > 0) {
            self.io.sleep(Nanos::from_millis(5)).await;
            // an array that has ended does not answer
            if self.io.now() >= deadline
                && command(&self.io, &self.outside, Command::Problems).await.is_ok()
                && self.held_bytes().any(|bytes| bytes > 0)
            {
                self.fail(format!("credit does not come back within {BACK_TIME:?}"));
                return;
            }
        }
        Seen::CreditBack.seen();
    }
}
