//! Writes a batch's columns, and handles missing space below the drives.
//!
//! ```text
//!   columns written ─► all except as many as the protection covers ─────────────────────────────► committed in order
//!                   └► no space for some ─► rewritten at once without refusable entries ─► hosts get the error ─► retried
//! ```
//!
//! A refused entry never takes effect later, not even by recovery: before the host gets the error, the batch is
//! overwritten on every drive that holds any part of it. If a drive with a part of it is gone, the host gets the error
//! only when a copy of the new header is on another drive. Later batches could only be committed after this one, so
//! they are handled in the same way. Entries that must not be refused stay in the batch and wait for space.

use std::rc::Rc;

use bytes::Bytes;
use env::IoError;
use task::join_all;

use crate::decision::Decision;
use crate::drives::evidence::Fault;
use crate::drives::full::NO_SPACE_RETRY;
use crate::drives::latency::Access;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::table::SegmentColumns;
use crate::geometry::position::SegmentId;
use crate::lane::Lane;
use crate::log::batch::{ColumnWrite, header_columns, take_out, writes};
use crate::log::queue::{Batch, BatchedEntry};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Written {
    Done,
    /// The segment never had this column.
    Absent,
    Lost,
    NoSpace,
}

impl Lane {
    /// Writes all columns of a batch, then commits it in its turn. Columns of failed drives are left out, at most as
    /// many as the protection allows.
    pub(crate) async fn write_batch(self: Rc<Self>, batch: Rc<Batch>, mut to_write: Vec<ColumnWrite>) {
        let segment = batch.header.borrow().segment;
        let columns = self.segments.borrow().get(segment).columns.clone();
        let absent = columns.columns.iter().filter(|column| column.is_none()).count();
        let (mut lost, mut refused) = (Vec::new(), Vec::new());
        loop {
            let written = to_write.iter().map(|write| self.write_column(&batch, &columns, write));
            let written = join_all(written).await;
            if self.has_ended() {
                return self.tell_refused(refused);
            }
            let ended =
                |how: Written| to_write.iter().zip(&written).filter(move |(_, written)| **written == how);
            lost.extend(ended(Written::Lost).map(|(write, _)| write.column));
            lost.sort_unstable();
            lost.dedup();
            // an absent column is counted even if this batch would not have used it, so the bound is safe
            if lost.len() + absent > columns.shape().parity() {
                return self.fail();
            }
            let short = written.contains(&Written::NoSpace);
            // a drive that is gone may come back with the content that it was given first
            if !short || lost.is_empty() || has_header(&batch, &columns, ended(Written::Done)) {
                self.tell_refused(std::mem::take(&mut refused));
            }
            if short {
                self.stall();
            } else if !self.waits_for_space(&batch) {
                break;
            }
            let taken = self.take_refusable(&batch);
            if taken.is_empty() {
                let mut written = written.into_iter();
                to_write.retain(|_| written.next() == Some(Written::NoSpace));
                self.io.sleep(NO_SPACE_RETRY).await;
            } else {
                Decision::RefusedTakenOut.taken();
                refused.extend(taken);
                to_write = writes(columns.shape(), &batch.header.borrow(), &batch.data.borrow());
            }
        }
        if !lost.is_empty() {
            self.lacks_columns(segment, lost.into_iter());
            self.want_repairs();
        }
        batch.written.set(true);
        self.advance();
    }

    /// Marks columns of a segment as lacking.
    fn lacks_columns(&self, id: SegmentId, columns: impl Iterator<Item = usize>) {
        let mut segments = self.segments.borrow_mut();
        columns.for_each(|column| segments.get_mut(id).lacking.add(column));
    }

    /// Writes one column, as long as its drive is in service.
    async fn write_column(&self, batch: &Batch, columns: &SegmentColumns, write: &ColumnWrite) -> Written {
        let Some(column) = columns.columns[write.column] else { return Written::Absent };
        let row = usize::from(batch.header.borrow().row);
        let offset_bytes = self.membership.borrow().offset_bytes(column, row);
        let mut attempts = 0;
        loop {
            let Some(drive) = self.membership.borrow().handle(column.drive) else { return Written::Lost };
            let began = self.io.now();
            let durable = batch.durable.get();
            let written = self.io.drive_write(drive, offset_bytes, write.data.clone(), durable).await;
            let bytes = write.data.iter().map(Bytes::len).sum();
            self.note_latency(column.drive, Access::Write, bytes, began);
            let Err(error) = written else { return Written::Done };
            self.counters.borrow_mut().failed_write(column.drive, error);
            match error {
                IoError::NoSpace => {
                    self.health.note_full(column.drive, self.io.now());
                    return Written::NoSpace;
                }
                IoError::Media | IoError::TimedOut if attempts == 0 => {
                    Decision::ColumnRetried.taken();
                    attempts += 1;
                }
                IoError::Media | IoError::TimedOut if self.tolerates_fault(column.drive, Fault::Write) => {
                    // what it lacks is written anew elsewhere; until then it is marked as lacking
                    Decision::ColumnBorne.taken();
                    self.want_checkpoint();
                    return Written::Lost;
                }
                error => {
                    Decision::ColumnDriveOut.taken();
                    let recorded = match error {
                        IoError::Media | IoError::TimedOut => self.report_condemned_drive(column.drive).await,
                        _ => self.report_failed_drive(column.drive, error).await,
                    };
                    if !recorded {
                        self.fail();
                    }
                    return Written::Lost;
                }
            }
            if self.has_ended() {
                return Written::Lost;
            }
        }
    }

    /// There is no space below a drive: from now on writes are refused, and entries that wait for this batch are
    /// abandoned.
    fn stall(self: &Rc<Self>) {
        Decision::StalledFull.taken();
        self.full.notify();
        if self.life.is_recovering() {
            return;
        }
        self.life.stall();
        self.give_up_pending(|entry| self.may_be_refused(entry));
        let behind: Vec<Rc<Batch>> = {
            let log = self.log.borrow();
            log.in_flight
                .iter()
                .filter(|batch| batch.written.get() && self.waits_for_space(batch))
                .cloned()
                .collect()
        };
        for batch in behind {
            batch.written.set(false);
            self.spawn(self.clone().write_batch(batch, Vec::new()));
        }
        self.space.notify();
    }

    /// Whether the entry's host gets an error at once, instead of waiting for space.
    fn may_be_refused(&self, entry: &Entry) -> bool {
        !entry.must_be_known() || self.life.is_closing()
    }

    /// Whether an entry of a batch would wait for an earlier batch for which there is no space.
    fn waits_for_space(&self, batch: &Rc<Batch>) -> bool {
        let first = self.log.borrow().in_flight.front().is_some_and(|front| Rc::ptr_eq(front, batch));
        self.life.is_stalled()
            && !first
            && batch.header.borrow().entries.iter().any(|entry| self.may_be_refused(entry))
    }

    /// Removes the refusable entries from a batch.
    fn take_refusable(&self, batch: &Batch) -> Vec<(Entry, BatchedEntry)> {
        if self.life.is_recovering() {
            return Vec::new();
        }
        let (mut header, mut batched) = (batch.header.borrow_mut(), batch.batched.borrow_mut());
        // the batch that replaces it must survive a power loss
        batch.durable.set(true);
        take_out(&mut header, &mut batched, &mut batch.data.borrow_mut(), |entry| self.may_be_refused(entry))
    }

    /// Reports the refused entries, which are in no batch any more.
    fn tell_refused(&self, refused: Vec<(Entry, BatchedEntry)>) {
        match self.has_ended() {
            _ if refused.is_empty() => {}
            true => refused.iter().for_each(|(_, batched)| batched.ticket.fail(LaneError::Unavailable)),
            false => self.refuse(refused.into_iter()),
        }
    }
}

/// Whether one of these writes contains a copy of the batch's header.
fn has_header<'a>(
    batch: &Batch,
    columns: &SegmentColumns,
    mut writes: impl Iterator<Item = (&'a ColumnWrite, &'a Written)>,
) -> bool {
    let copies = header_columns(columns.shape(), &batch.header.borrow());
    writes.any(|(write, _)| copies.contains(&write.column))
}
