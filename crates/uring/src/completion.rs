//! The effect of a completion on its operation: continue with the rest, or end.

use env::{DriveKind, IoError, Outcome};

use crate::core::{Core, after_discard};
use crate::drive::DriveUse;
use crate::drive::transfer::{Next, next};
use crate::errno::{Asked, drive_error, is_transient_of_drive};
use crate::ring::Entry;
use crate::slots::Work;

impl Core {
    pub(crate) fn on_completion(&mut self, slot: u32, entry: Entry) {
        let result = entry.result;
        match self.slots.take(slot) {
            Work::Read { drive, offset_bytes, buffer, length, done } => {
                match self.next(slot, done, length, result) {
                    Next::Continue(done) => {
                        self.again(slot, Work::Read { drive, offset_bytes, buffer, length, done })
                    }
                    Next::Done => self.finish(slot, Outcome::DriveRead(buffer, Ok(()))),
                    Next::Failed(errno) => {
                        let error = failure(&drive, Asked::Read, offset_bytes + length as u64, errno);
                        self.finish(slot, Outcome::DriveRead(buffer, Err(error)));
                    }
                }
            }
            Work::Write { drive, offset_bytes, data, length, done, durable } => {
                match self.next(slot, done, length, result) {
                    Next::Continue(done) => {
                        self.again(slot, Work::Write { drive, offset_bytes, data, length, done, durable });
                    }
                    Next::Done => self.finish(slot, Outcome::Done),
                    Next::Failed(errno) => {
                        let error = failure(&drive, Asked::Write, offset_bytes + length as u64, errno);
                        self.finish(slot, Outcome::Failed(error));
                    }
                }
            }
            work @ (Work::Flush { .. } | Work::Discard { .. })
                if is_transient_of_drive(-result) && self.may_retry(slot) =>
            {
                self.again(slot, work);
            }
            Work::Flush { drive } => {
                let outcome = match result < 0 {
                    true => Outcome::Failed(failure(&drive, Asked::Flush, drive.end_bytes(), Some(-result))),
                    false => Outcome::Done,
                };
                self.finish(slot, outcome);
            }
            Work::Discard { drive, .. } => {
                drop(drive);
                self.finish(slot, after_discard(DriveKind::File, result));
            }
            Work::ByHelper => unreachable!("the helper's work is not submitted to the ring"),
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
            Next::Continue(_) if self.is_ending() => Next::Failed(Some(libc::ENODEV)),
            Next::Continue(reached) if reached == done && !self.may_retry(slot) => {
                Next::Failed((result < 0).then_some(-result))
            }
            next => next,
        }
    }
}

/// Why an operation failed that reaches as far as `end_bytes`. A drive that does not reach there any more has been removed,
/// or is not the one that was opened, whatever the error number.
fn failure(drive: &DriveUse, asked: Asked, end_bytes: u64, errno: Option<i32>) -> IoError {
    if !drive.is_there(end_bytes) {
        return IoError::Gone;
    }
    // without an error number: nothing was transferred, since a file ends before this place
    errno.map_or(IoError::Media, |errno| drive_error(drive.kind, asked, errno))
}
