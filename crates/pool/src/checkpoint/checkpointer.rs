//! The newest checkpoint of a lane, and whether another one is wanted or being written. `writer.rs` writes checkpoints.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use base::Sequence;
use env::DriveHandle;
use task::{Io, Semaphore, SemaphorePermit};

use crate::geometry::position::SegmentId;

/// The newest checkpoint that is on the drives.
#[derive(Default)]
struct Newest {
    generation: u64,
    sequence: Sequence,
    /// Segments in which replay will look for batches.
    listed: BTreeSet<SegmentId>,
    /// Reserved segments when it was written.
    queue: usize,
    /// What was committed, and what was free, when it was written: where nothing has changed since, another
    /// checkpoint would change nothing.
    finished: Sequence,
    free: usize,
    /// Which of its two slots has a drive's newest root. The next goes to the other, whatever generation that is: a
    /// drive may have missed the one before, and a write that is cut off must leave it the newest that it has.
    slots: BTreeMap<DriveHandle, usize>,
}

/// The state of a lane's checkpoints.
pub(crate) struct Checkpointer {
    newest: RefCell<Newest>,
    wanted: Cell<bool>,
    writing: Semaphore,
}

impl Checkpointer {
    pub fn new(io: &Io) -> Checkpointer {
        Checkpointer { newest: RefCell::default(), wanted: Cell::new(false), writing: Semaphore::new(io, 1) }
    }

    pub fn want(&self) {
        self.wanted.set(true);
    }

    /// Whether one was wanted; it is not any more.
    pub fn take_wanted(&self) -> bool {
        self.wanted.replace(false)
    }

    /// One checkpoint is written at a time: waits for its turn, which lasts until the result is dropped.
    pub async fn turn(&self) -> SemaphorePermit {
        self.writing.acquire(1).await
    }

    /// Whether one is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.try_acquire(1).is_none()
    }

    pub fn generation(&self) -> u64 {
        self.newest.borrow().generation
    }

    /// A root of this generation was found, or written without a checkpoint.
    pub fn set_generation(&self, generation: u64) {
        self.newest.borrow_mut().generation = generation;
    }

    /// Everything up to this batch is in the newest checkpoint.
    pub fn sequence(&self) -> Sequence {
        self.newest.borrow().sequence
    }

    /// Whether replay will look for batches in this segment.
    pub fn lists(&self, id: SegmentId) -> bool {
        self.newest.borrow().listed.contains(&id)
    }

    /// Reserved segments at which the next checkpoint is due.
    pub fn queue_low(&self) -> usize {
        self.newest.borrow().queue / 2
    }

    /// Whether something was committed, or freed, since the newest was written.
    pub fn is_outdated(&self, committed: Sequence, free: usize) -> bool {
        let newest = self.newest.borrow();
        committed > newest.finished || free > newest.free
    }

    /// Which of a drive's two slots has its newest root.
    pub fn slot(&self, drive: DriveHandle) -> Option<usize> {
        self.newest.borrow().slots.get(&drive).copied()
    }

    /// The slot of a drive that the next root goes to.
    pub fn next_slot(&self, drive: DriveHandle) -> usize {
        self.slot(drive).map_or(0, |newest| 1 - newest)
    }

    pub fn set_slot(&self, drive: DriveHandle, slot: usize) {
        self.newest.borrow_mut().slots.insert(drive, slot);
    }

    /// A checkpoint is on the drives: it holds everything up to `sequence`, and lists these segments.
    pub fn note_written(&self, sequence: Sequence, listed: BTreeSet<SegmentId>) {
        let mut newest = self.newest.borrow_mut();
        newest.generation += 1;
        newest.sequence = sequence;
        newest.listed = listed;
    }

    /// It has taken effect: so many segments are reserved and free now, and this is committed.
    pub fn note_effect(&self, queue: usize, free: usize, committed: Sequence) {
        let mut newest = self.newest.borrow_mut();
        newest.queue = queue;
        newest.free = free;
        newest.finished = committed;
    }
}
