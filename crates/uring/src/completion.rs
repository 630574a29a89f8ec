//! What a completion means for the operation it belongs to: go on with the rest, or end.

use env::{IoError, Outcome};

use crate::core::{Core, after_discard};
use crate::drive::transfer::{Next, next};
use crate::errno::{drive_error, is_transient};
use crate::ring::Entry;
use crate::slots::Work;

impl Core {
    pub(crate) fn on_completion(&mut self, slot: u32, entry: Entry) {
        let result = entry.result;
        match self.slots.take(slot) {
            Work::Read { drive, offset_bytes, buffer, done } => {
                match self.next(slot, done, buffer.len(), result) {
                    Next::Continue(done) => {
                        self.again(slot, Work::Read { drive, offset_bytes, buffer, done })
                    }
                    Next::Done => self.finish(slot, Outcome::DriveRead(buffer, Ok(()))),
                    Next::Failed(error) => self.finish(slot, Outcome::DriveRead(buffer, Err(error))),
                }
            }
            Work::Write { drive, offset_bytes, data, length, done, durable } => {
                match self.next(slot, done, length, result) {
                    Next::Continue(done) => {
                        self.again(slot, Work::Write { drive, offset_bytes, data, length, done, durable });
                    }
                    Next::Done => self.finish(slot, Outcome::Done),
                    Next::Failed(error) => self.finish(slot, Outcome::Failed(error)),
                }
            }
            work @ (Work::Flush { .. } | Work::Discard { .. })
                if is_transient(-result) && self.may_retry(slot) =>
            {
                self.again(slot, work);
            }
            Work::Flush { .. } => {
                let outcome = if result < 0 { Outcome::Failed(drive_error(-result)) } else { Outcome::Done };
                self.finish(slot, outcome);
            }
            Work::Discard { .. } => self.finish(slot, after_discard(result)),
            Work::DiscardByHelper => unreachable!("the helper's work is not submitted to the ring"),
            Work::Accept { listener, socket } => self.on_accepted(slot, listener, socket, result),
            Work::Connect { socket, address } => self.on_connected(slot, socket, address, result),
            Work::Receive { connection, socket, buffer, .. } => {
                self.on_received(slot, connection, socket, buffer, entry);
            }
            Work::Send { connection, socket, data, length, done } => {
                self.on_sent(slot, connection, socket, (data, length, done), result);
            }
        }
    }

    /// What follows for a transfer, with the bound on retries applied.
    fn next(&mut self, slot: u32, done: usize, length: usize, result: i32) -> Next {
        match next(done, length, result) {
            Next::Continue(_) if self.is_ending() => Next::Failed(IoError::Gone),
            Next::Continue(reached) if reached == done && !self.may_retry(slot) => {
                Next::Failed(if result < 0 { drive_error(-result) } else { IoError::Media })
            }
            next => next,
        }
    }
}
