//! The log's state: entries that wait to be written, batches in flight, and the order of commits.
//!
//! ```text
//!  append ─► pending ─► close (build) ─► in flight, written in any order ─► committed strictly in order
//! ```
//!
//! An entry is *on its way* from its append until its commit.
//!
//! Because commits are in order, a crash leaves a prefix: recovery replays batches up to the first one that is not
//! whole. A batch is acknowledged when it and all batches before it are on the drives, and durable. A batch with only
//! write-back data need not be durable.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use base::{BLOCK_BYTES, HashMap, LayerId, Sequence};
use block::Payload;
use bytes::Bytes;
use task::{Io, Notify};

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::{BatchHeader, Entry};
use crate::format::page::{MapEntry, PageKey};
use crate::geometry::position::SegmentId;

/// Batches in flight at once, per lane.
pub(crate) const IN_FLIGHT_MAX: usize = 8;
/// Maximum number of waiting entries; beyond it, appenders wait.
pub(crate) const PENDING_MAX: usize = 2048;

/// Where a pending block's bytes are.
pub(crate) enum Source {
    /// 4 KiB of a host's payload, from this offset.
    Payload(Rc<Payload>, usize),
    Block(Bytes),
}

/// The blocks of a host's payload. Most payloads are a single piece, which needs no allocation to be shared.
pub(crate) enum Blocks {
    One(Bytes),
    Many(Rc<Payload>),
}

impl From<Payload> for Blocks {
    fn from(payload: Payload) -> Blocks {
        match payload.pieces() {
            [piece] => Blocks::One(piece.clone()),
            _ => Blocks::Many(Rc::new(payload)),
        }
    }
}

impl Blocks {
    pub fn source(&self, index: usize) -> Source {
        let offset_bytes = index * BLOCK_BYTES;
        match self {
            Blocks::One(piece) => Source::Block(piece.slice(offset_bytes..offset_bytes + BLOCK_BYTES)),
            Blocks::Many(payload) => Source::Payload(payload.clone(), offset_bytes),
        }
    }
}

/// Tickets of hosts' writes; the memory of tickets that nobody holds any more is reused.
pub(crate) struct Tickets {
    io: Io,
    kept: RefCell<VecDeque<Rc<Ticket>>>,
}

impl Tickets {
    const KEPT_MAX: usize = 512;

    pub fn new(io: &Io) -> Tickets {
        Tickets { io: io.clone(), kept: RefCell::default() }
    }

    pub fn take(&self) -> Rc<Ticket> {
        let mut kept = self.kept.borrow_mut();
        let mut oldest = kept.pop_front();
        let ticket = match oldest.as_mut().and_then(Rc::get_mut) {
            Some(free) => {
                (free.outstanding, free.failed) = (Cell::new(0), Cell::new(None));
                free.given_up = Cell::new(None);
                oldest.expect("it was there a moment ago")
            }
            None => {
                kept.extend(oldest);
                Ticket::new(&self.io)
            }
        };
        if kept.len() < Tickets::KEPT_MAX {
            kept.push_back(ticket.clone());
        }
        ticket
    }
}

/// Waits for some entries to be committed.
pub(crate) struct Ticket {
    outstanding: Cell<usize>,
    failed: Cell<Option<LaneError>>,
    /// Why some entries will not be committed.
    given_up: Cell<Option<LaneError>>,
    /// The map entries of appended entries, by the tag given when they were appended; only for tagged ones.
    pub placed: RefCell<Vec<(usize, MapEntry)>>,
    notify: Notify,
}

impl Ticket {
    pub fn new(io: &Io) -> Rc<Ticket> {
        Rc::new(Ticket {
            outstanding: Cell::new(0),
            failed: Cell::new(None),
            given_up: Cell::new(None),
            placed: RefCell::new(Vec::new()),
            notify: Notify::new(io),
        })
    }

    pub fn add(&self) {
        self.outstanding.set(self.outstanding.get() + 1);
    }

    pub fn complete_one(&self) {
        self.outstanding.set(self.outstanding.get() - 1);
        if self.outstanding.get() == 0 {
            self.notify.notify();
        }
    }

    /// An entry will not be committed. The waiting task is notified only when the other entries are committed or
    /// abandoned, too: nothing of its request takes effect after the answer.
    pub fn give_up_one(&self, error: LaneError) {
        self.given_up.set(Some(error));
        self.complete_one();
    }

    /// The outcome is unknown: the waiting task is notified at once.
    pub fn fail(&self, error: LaneError) {
        if self.failed.get().is_none() {
            self.failed.set(Some(error));
            self.notify.notify();
        }
    }

    /// Ends when every entry is committed or abandoned, or one has failed.
    pub async fn wait(&self) -> Result<(), LaneError> {
        loop {
            if let Some(error) = self.failed.get() {
                return Err(error);
            }
            if self.outstanding.get() == 0 {
                return self.given_up.get().map_or(Ok(()), Err);
            }
            self.notify.wait().await;
        }
    }

    /// Ends a request that appends one entry after the other. `appended` is the error that kept it from appending all
    /// of them. It is returned only when those before it are committed or abandoned: nothing of a request takes effect
    /// after its answer.
    pub async fn end(&self, appended: Result<(), LaneError>) -> Result<(), LaneError> {
        if appended.is_err() && self.outstanding.get() > 0 {
            Decision::RefusedInPart.taken();
        }
        self.wait().await.and(appended)
    }
}

/// An entry on its way to a batch.
pub(crate) struct Pending {
    pub entry: Entry,
    pub source: Option<Source>,
    /// Must survive power loss before it is acknowledged.
    pub durable: bool,
    pub ticket: Rc<Ticket>,
    /// Identifies the entry among those of its ticket, for entries whose position is wanted.
    pub tag: Option<usize>,
    /// The leaf page that this entry keeps in memory.
    pub pinned: Option<PageKey>,
    /// Promised blocks, returned at the commit.
    pub promised: u32,
    pub serial: u64,
}

impl Pending {
    /// An entry without data, which must survive power loss.
    pub fn bare(entry: Entry, pinned: Option<PageKey>, ticket: &Rc<Ticket>) -> Pending {
        Pending {
            entry,
            source: None,
            durable: true,
            ticket: ticket.clone(),
            tag: None,
            pinned,
            promised: 0,
            serial: 0,
        }
    }

    pub fn is_checkpoint(&self) -> bool {
        self.entry.is_checkpoint()
    }

    /// The remainder without the data.
    pub fn into_batched(self) -> (Entry, BatchedEntry) {
        let Pending { entry, ticket, tag, pinned, promised, serial, .. } = self;
        (entry, BatchedEntry { ticket, tag, pinned, promised, serial })
    }
}

/// The remainder of a pending entry after its batch is built.
pub(crate) struct BatchedEntry {
    pub ticket: Rc<Ticket>,
    pub tag: Option<usize>,
    pub pinned: Option<PageKey>,
    pub promised: u32,
    pub serial: u64,
}

/// A batch on its way to the drives. Its content changes only if there is no space for it.
pub(crate) struct Batch {
    pub header: RefCell<BatchHeader>,
    /// One per entry of the header, in order.
    pub batched: RefCell<Vec<BatchedEntry>>,
    /// Data blocks of the entries, in order.
    pub data: RefCell<Bytes>,
    pub durable: Cell<bool>,
    pub written: Cell<bool>,
}

/// A range that is about to be unmapped, or to refer to another layer.
struct PendingRange {
    layer: LayerId,
    blocks: std::ops::Range<u64>,
    /// The layer that the range will refer to.
    to: Option<LayerId>,
    serial: u64,
}

/// The state of the log; see the header of this file.
#[derive(Default)]
pub(crate) struct Log {
    pub pending: VecDeque<Pending>,
    pub in_flight: VecDeque<Rc<Batch>>,
    /// The open segment and its next row.
    pub place: Option<(SegmentId, usize)>,
    /// Segments in the order in which they were opened, since the last checkpoint's cut.
    pub opened: VecDeque<SegmentId>,
    /// The newest batch that was given a place.
    pub newest: Sequence,
    pub committed: Sequence,
    /// The newest committed batch that holds more than a checkpoint's own entries.
    pub changed: Sequence,
    /// The newest committed batch that was not written durably.
    pub volatile: Sequence,
    /// Everything up to this batch has been flushed.
    pub flushed: Sequence,
    pub flushing: bool,
    serials: u64,
    writes: HashMap<(LayerId, u64), u64>,
    ranges: Vec<PendingRange>,
}

impl Log {
    pub fn append(&mut self, mut pending: Pending) {
        self.serials += 1;
        pending.serial = self.serials;
        match pending.entry {
            Entry::Data { layer, block, .. } => {
                self.writes.insert((layer, block), self.serials);
            }
            Entry::Unmap { layer, block, blocks } => self.append_range(layer, block, blocks, None),
            Entry::Refer { layer, block, blocks, to } => {
                self.append_range(layer, block, blocks, Some(to.layer));
            }
            Entry::Move { .. }
            | Entry::Page { .. }
            | Entry::Table { .. }
            | Entry::Layer { .. }
            | Entry::Drop { .. }
            | Entry::Merge { .. }
            | Entry::Merged { .. } => {}
        }
        pending.ticket.add();
        self.pending.push_back(pending);
    }

    fn append_range(&mut self, layer: LayerId, block: u64, blocks: u32, to: Option<LayerId>) {
        let blocks = block..block + u64::from(blocks);
        self.ranges.push(PendingRange { layer, blocks, to, serial: self.serials });
    }

    /// Layers to which entries on their way refer.
    pub fn referred(&self) -> impl Iterator<Item = LayerId> + '_ {
        self.ranges.iter().filter_map(|range| range.to)
    }

    /// Records that an entry is no longer on its way.
    pub fn settle(&mut self, entry: &Entry, serial: u64) {
        match *entry {
            Entry::Data { layer, block, .. } if self.writes.get(&(layer, block)) == Some(&serial) => {
                self.writes.remove(&(layer, block));
            }
            Entry::Unmap { .. } | Entry::Refer { .. } => {
                self.ranges.retain(|range| range.serial != serial);
            }
            _ => {}
        }
    }

    /// Whether a write or unmap of this block is on its way.
    pub fn is_pending(&self, layer: LayerId, block: u64) -> bool {
        self.is_pending_write(layer, block)
            || self.ranges.iter().any(|range| range.layer == layer && range.blocks.contains(&block))
    }

    /// Whether data for this block is on its way.
    pub fn is_pending_write(&self, layer: LayerId, block: u64) -> bool {
        self.writes.contains_key(&(layer, block))
    }

    /// Whether some committed batch would not survive a power loss yet.
    pub fn has_volatile(&self) -> bool {
        self.volatile > self.flushed
    }

    /// Continues after the last replayed batch.
    pub fn resume_after(&mut self, last: Sequence) {
        assert!(self.is_idle());
        self.newest = last;
        self.committed = last;
        self.changed = last;
    }

    /// Everything up to this batch survives power loss.
    pub fn durable(&self) -> Sequence {
        if self.has_volatile() { self.flushed } else { self.committed }
    }

    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.in_flight.is_empty()
    }

    /// Notifies all waiting tasks that their entries will not be committed.
    pub fn abandon(&mut self) {
        for pending in self.pending.drain(..) {
            pending.ticket.fail(LaneError::Unavailable);
        }
        for batch in self.in_flight.drain(..) {
            for batched in batch.batched.borrow().iter() {
                batched.ticket.fail(LaneError::Unavailable);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use task::Executor;

    use super::*;

    #[test]
    fn a_ticket_that_is_used_again_knows_nothing_of_before_and_one_that_is_held_stays() {
        let executor = Executor::new();
        let tickets = Tickets::new(executor.io());
        let held = tickets.take();
        held.add();
        let failed = tickets.take();
        failed.add();
        failed.fail(LaneError::OutOfSpace);
        let memory = Rc::as_ptr(&failed);
        drop(failed);
        // the oldest ticket is looked at first, and is still held
        let taken = [tickets.take(), tickets.take()];
        let again = taken.iter().find(|ticket| Rc::as_ptr(ticket) == memory).expect("it was free");
        assert_eq!((again.outstanding.get(), again.failed.get()), (0, None));
        assert!(taken.iter().all(|ticket| !Rc::ptr_eq(ticket, &held)));
        assert_eq!(held.outstanding.get(), 1);
    }
}
