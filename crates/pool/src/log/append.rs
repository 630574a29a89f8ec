//! The log task: places batches in segments and commits them in order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use task::join_all;

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::{BATCH_ROWS_MAX, BatchHeader, ENTRIES_MAX, Entry};
use crate::geometry::position::SegmentId;
use crate::lane::Lane;
use crate::layers::names::FORWARDS;
use crate::log::batch::{Built, build};
use crate::log::queue::{Batch, BatchedEntry, IN_FLIGHT_MAX, PENDING_MAX, Pending};
use crate::space::segments::SegmentState;

impl Lane {
    /// Waits until the log accepts more entries.
    pub(crate) async fn log_room(&self) -> Result<(), LaneError> {
        loop {
            self.check_running()?;
            if self.log.borrow().pending.len() < PENDING_MAX {
                return Ok(());
            }
            self.committed.wait().await;
        }
    }

    /// Appends an entry; it is on its way when this returns. The ticket reports its commit.
    pub(crate) fn append(&self, pending: Pending) {
        if self.has_ended() {
            pending.ticket.add();
            return pending.ticket.fail(LaneError::Unavailable);
        }
        self.log.borrow_mut().append(pending);
        self.log_work.notify();
    }

    /// Runs until the lane fails or is closed.
    pub(crate) async fn run_log(self: Rc<Self>) {
        loop {
            while !self.should_close() {
                if self.has_ended() {
                    return;
                }
                self.log_work.wait().await;
            }
            // other tasks that are ready in this turn may still join the batch
            self.io.yield_now().await;
            let Some((segment, row)) = self.find_place().await else { continue };
            if let Some(built) = self.close_batch(segment, row) {
                self.placed(&built);
                self.start_batch(built);
            }
        }
    }

    /// A batch is closed when nothing is in flight, or when it is full.
    fn should_close(&self) -> bool {
        let log = self.log.borrow();
        let in_flight = log.in_flight.len();
        !log.pending.is_empty()
            && (in_flight == 0 || (in_flight < IN_FLIGHT_MAX && log.pending.len() >= ENTRIES_MAX))
    }

    /// The place of the next batch: in the open segment, or in the next one. Waits if nothing may be written now.
    /// `None` if there is nothing left to place.
    async fn find_place(&self) -> Option<(SegmentId, usize)> {
        loop {
            if self.has_ended() || self.log.borrow().pending.is_empty() {
                return None;
            }
            let place = self.log.borrow().place;
            if let Some((id, row)) = place {
                if self.has_room(id, row) {
                    if self.may_write(id) {
                        return place;
                    }
                    self.wait_for_place().await;
                    continue;
                }
                self.seal(id, row);
            }
            if !self.open_next() {
                self.wait_for_place().await;
            }
        }
    }

    /// Waits until a checkpoint reserves segments, or cleaning frees some. If no checkpoint can help any more, entries
    /// that would wait for themselves are abandoned: a checkpoint's own entries, and cleaning's.
    async fn wait_for_place(&self) {
        self.background.notify();
        if self.log.borrow().pending.iter().any(Pending::is_checkpoint) {
            // the running checkpoint cannot be written: the log is completely full
            Decision::CheckpointGivenUp.taken();
            self.give_up_pending(Entry::is_checkpoint);
        } else if self.checkpointer.is_writing() {
            // a checkpoint is being written: its end is notified
        } else if self.checkpoint_could_help() {
            self.want_checkpoint();
        } else if self.log.borrow().in_flight.is_empty() {
            let own = |entry: &Entry| {
                matches!(entry, Entry::Move { .. } | Entry::Merge { .. } | Entry::Merged { .. })
            };
            if self.log.borrow().pending.iter().any(|pending| own(&pending.entry)) {
                Decision::MovesGivenUp.taken();
            }
            self.give_up_pending(own);
        }
        task::race(self.space.wait(), self.log_work.wait()).await.ok();
    }

    /// Removes entries from the queue for which there is no space.
    pub(crate) fn give_up_pending(&self, which: impl Fn(&Entry) -> bool) {
        let (given_up, kept): (Vec<Pending>, Vec<Pending>) =
            std::mem::take(&mut self.log.borrow_mut().pending)
                .into_iter()
                .partition(|pending| which(&pending.entry));
        self.log.borrow_mut().pending = kept.into();
        self.refuse(given_up.into_iter().map(Pending::into_batched));
    }

    /// Refuses entries for want of space; they are in no queue and no batch any more.
    pub(crate) fn refuse(&self, entries: impl Iterator<Item = (Entry, BatchedEntry)>) {
        for (entry, batched) in entries {
            self.log.borrow_mut().settle(&entry, batched.serial);
            self.take_back(u64::from(batched.promised));
            self.unpin_for(&entry, batched.pinned);
            batched.ticket.give_up_one(LaneError::OutOfSpace);
        }
        self.committed.notify();
    }

    /// Whether any waiting entry may be written to this segment.
    fn may_write(&self, id: SegmentId) -> bool {
        let limits = self.limits(id);
        self.log.borrow().pending.iter().any(|pending| limits.allow(pending))
    }

    /// Which entries may go into a segment. Batches go only where replay will look for them: into segments that the
    /// newest checkpoint lists. A checkpoint's own entries may go anywhere. Only checkpoints may use the checkpoints'
    /// share of the room. Hosts may not use cleaning's share, except when cleaning has given up.
    fn limits(&self, id: SegmentId) -> Limits {
        let shares = self.shares();
        let listed = self.checkpointer.lists(id);
        let hosts = if self.cleaner.is_starved() { shares.checkpoint + 1 } else { shares.hosts_wait() };
        Limits { moves: listed && shares.room > shares.checkpoint, hosts: listed && shares.room > hosts }
    }

    fn has_room(&self, id: SegmentId, row: usize) -> bool {
        let segments = self.segments.borrow();
        let segment = segments.get(id);
        segments.is_whole(id) && segment.columns.shape().blocks_in(segments.rows - row) > 0
    }

    /// Seals the open segment: no more batches go into it.
    pub(crate) fn seal(&self, id: SegmentId, row: usize) {
        let mut segments = self.segments.borrow_mut();
        let segment = segments.get_mut(id);
        assert_eq!(segment.state, SegmentState::Open);
        segment.state = SegmentState::Sealed;
        segment.used_rows = row as u32;
        self.log.borrow_mut().place = None;
    }

    /// Opens the next reserved segment. If none is left, only a checkpoint may take a fresh one.
    fn open_next(&self) -> bool {
        let mut segments = self.segments.borrow_mut();
        let mut log = self.log.borrow_mut();
        if let Some(id) = segments.dequeue() {
            assert!(segments.is_whole(id), "what stands on a drive that has gone is set aside no more");
            log.opened.push_back(id);
            segments.get_mut(id).state = SegmentState::Open;
            log.place = Some((id, 0));
            let low = segments.queue().len() <= self.checkpointer.queue_low();
            if low && !log.pending.iter().any(Pending::is_checkpoint) {
                self.want_checkpoint();
            }
            return true;
        }
        if !log.pending.iter().any(Pending::is_checkpoint) {
            return false;
        }
        let Some(id) = segments.allocate() else { return false };
        log.opened.push_back(id);
        segments.get_mut(id).state = SegmentState::Open;
        log.place = Some((id, 0));
        true
    }

    /// Takes as many pending entries as fit and builds a batch of them.
    fn close_batch(&self, id: SegmentId, row: usize) -> Option<Built> {
        let limits = self.limits(id);
        let mut segments = self.segments.borrow_mut();
        let rows_left = (segments.rows - row).min(BATCH_ROWS_MAX);
        let segment = segments.get_mut(id);
        let shape = segment.columns.shape();
        let mut log = self.log.borrow_mut();
        let taken = take(&mut log.pending, shape.blocks_in(rows_left), |pending| limits.allow(pending));
        if taken.is_empty() {
            return None;
        }
        let membership = self.membership.borrow();
        log.newest = log.newest.next();
        let header = BatchHeader {
            pool: membership.pool,
            epoch: membership.epoch,
            lane: self.number,
            segment: id,
            row: row as u16,
            rows: 1,
            sequence: log.newest,
            durable: log.durable(),
            entries: Vec::with_capacity(taken.len()),
        };
        let built = build(shape, header, taken);
        segment.last = log.newest;
        segment.used_rows = (row + usize::from(built.header.rows)) as u32;
        log.place = Some((id, segment.used_rows as usize));
        assert!(segment.used_rows as usize <= segments.rows, "a batch ends within its segment");
        Some(built)
    }

    fn start_batch(self: &Rc<Self>, built: Built) {
        let Built { header, batched, data, durable, writes } = built;
        let batch = Rc::new(Batch {
            header: RefCell::new(header),
            batched: RefCell::new(batched),
            data: RefCell::new(data),
            durable: Cell::new(durable),
            written: Cell::new(false),
        });
        self.log.borrow_mut().in_flight.push_back(batch.clone());
        self.counters.borrow_mut().batches += 1;
        self.spawn(self.clone().write_batch(batch, writes));
    }

    /// Commits every batch whose turn it is.
    pub(crate) fn advance(self: &Rc<Self>) {
        loop {
            let batch = {
                let mut log = self.log.borrow_mut();
                let Some(front) = log.in_flight.front() else { break };
                if !front.written.get() {
                    break;
                }
                if front.durable.get() && log.has_volatile() {
                    // batches acknowledged before this one must not be lost if this one survives
                    if !std::mem::replace(&mut log.flushing, true) {
                        self.spawn(self.clone().flush_then_advance());
                    }
                    break;
                }
                log.in_flight.pop_front().expect("there is a front")
            };
            self.commit(&batch);
        }
        self.committed.notify();
        self.log_work.notify();
    }

    async fn flush_then_advance(self: Rc<Self>) {
        let flushed = self.flush_drives().await;
        self.log.borrow_mut().flushing = false;
        match flushed {
            Ok(()) => self.advance(),
            Err(_) => self.fail(),
        }
    }

    /// Makes everything that is committed survive power loss.
    pub(crate) async fn flush_drives(&self) -> Result<(), LaneError> {
        let committed = self.log.borrow().committed;
        let drives = self.online_drives();
        let results = join_all(drives.iter().map(|&(_, handle)| self.io.drive_flush(handle))).await;
        for ((drive, _), result) in drives.into_iter().zip(results) {
            let Err(error) = result else { continue };
            Decision::FlushFailed.taken();
            self.counters.borrow_mut().failed_write(drive, error);
            if !self.report_failed_drive(drive, error).await {
                self.fail();
                return Err(LaneError::Unavailable);
            }
            // it has lost what it had not flushed: every segment that may be affected is rewritten
            self.mark_incomplete(drive);
            self.want_repairs();
        }
        // drives that came back have flushed nothing of what they lost
        if self.has_ended() {
            return Err(LaneError::Unavailable);
        }
        let mut log = self.log.borrow_mut();
        log.flushed = log.flushed.max(committed);
        Ok(())
    }

    pub(crate) fn online_drives(&self) -> Vec<(u8, env::DriveHandle)> {
        let membership = self.membership.borrow();
        (0..membership.members.len() as u8)
            .filter_map(|drive| Some((drive, membership.handle(drive)?)))
            .collect()
    }

    fn mark_incomplete(&self, drive: u8) {
        for segment in self.segments.borrow_mut().iter_mut() {
            if segment.used_rows > 0 {
                segment.lacks_on(drive);
            }
        }
    }

    /// Commits a batch: it is on the drives, and so are all before it.
    fn commit(&self, batch: &Batch) {
        let (header, batched) = (batch.header.borrow(), batch.batched.borrow());
        let sequence = header.sequence;
        {
            let mut log = self.log.borrow_mut();
            assert_eq!(log.committed.next(), sequence, "batches are committed in order");
            log.committed = sequence;
            if header.entries.iter().any(|entry| !entry.is_checkpoint()) {
                log.changed = sequence;
            }
            if !batch.durable.get() {
                log.volatile = sequence;
            }
        }
        if self.life.resume() {
            self.health.forget_full(self.io.now());
        }
        let mut slot = 0;
        for (entry, batched) in header.entries.iter().zip(batched.iter()) {
            let placed = entry.crc().map(|crc| {
                slot += 1;
                crate::format::page::MapEntry { position: header.position(slot - 1), crc }
            });
            self.apply(entry, placed, sequence);
            self.finish_batched(entry, batched, placed);
            if entry.may_free() {
                self.relieve();
            }
        }
        if self.wants_flush() {
            self.want_checkpoint();
        }
    }

    fn finish_batched(
        &self,
        entry: &Entry,
        batched: &BatchedEntry,
        placed: Option<crate::format::page::MapEntry>,
    ) {
        self.log.borrow_mut().settle(entry, batched.serial);
        self.take_back(u64::from(batched.promised));
        self.unpin_for(entry, batched.pinned);
        if let (Some(tag), Some(placed)) = (batched.tag, placed) {
            batched.ticket.placed.borrow_mut().push((tag, placed));
        }
        batched.ticket.complete_one();
    }
}

/// Which entries may go into the open segment now, besides a checkpoint's own.
struct Limits {
    moves: bool,
    hosts: bool,
}

impl Limits {
    fn allow(&self, pending: &Pending) -> bool {
        match pending.entry {
            Entry::Page { .. } | Entry::Table { .. } => true,
            Entry::Move { .. }
            | Entry::Merge { .. }
            | Entry::Merged { .. }
            | Entry::Layer { layer: FORWARDS, .. } => self.moves,
            Entry::Data { .. }
            | Entry::Unmap { .. }
            | Entry::Refer { .. }
            | Entry::Layer { .. }
            | Entry::Drop { .. } => self.hosts,
        }
    }
}

/// Takes entries off the queue, in order, as long as they fit one batch; entries that may not be written now stay.
fn take(
    pending: &mut std::collections::VecDeque<Pending>,
    blocks_max: usize,
    may_go: impl Fn(&Pending) -> bool,
) -> Vec<Pending> {
    let mut taken = Vec::new();
    let mut blocks = 0;
    let mut index = 0;
    while index < pending.len() && taken.len() < ENTRIES_MAX {
        if !may_go(&pending[index]) {
            index += 1;
            continue;
        }
        if pending[index].source.is_some() {
            if blocks == blocks_max {
                break;
            }
            blocks += 1;
        }
        taken.push(pending.remove(index).expect("within the queue"));
    }
    taken
}
