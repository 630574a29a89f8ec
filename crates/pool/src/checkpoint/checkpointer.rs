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
    /// Number of reserved segments when the checkpoint was written.
    queue: usize,
    /// What was committed and what was free when the checkpoint was written. If nothing has changed since, another
    /// checkpoint would change nothing.
    finished: Sequence,
    free: usize,
    /// Which of its two slots holds a drive's newest root. The next root goes to the other slot, whatever its
    /// generation: the drive may have missed the previous root, and an interrupted write must leave the drive's newest
    /// root intact.
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

    /// Returns whether a checkpoint was wanted, and clears the request.
    pub fn take_wanted(&self) -> bool {
        self.wanted.replace(false)
    }

    /// Waits for the turn to write a checkpoint; one is written at a time. The turn ends when the result is dropped.
    pub async fn turn(&self) -> SemaphorePermit {
        self.writing.acquire(1).await
    }

    /// Whether a checkpoint is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.try_acquire(1).is_none()
    }

    pub fn generation(&self) -> u64 {
        self.newest.borrow().generation
    }

    /// A root of this generation was found, or was written without a checkpoint.
    pub fn set_generation(&self, generation: u64) {
        self.newest.borrow_mut().generation = generation;
    }

    /// The newest checkpoint holds everything up to this batch.
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

    /// Whether something was committed or freed since the newest checkpoint was written.
    pub fn is_outdated(&self, committed: Sequence, free: usize) -> bool {
        let newest = self.newest.borrow();
        committed > newest.finished || free > newest.free
    }

    /// Which of a drive's two slots has its newest root.
    pub fn slot(&self, drive: DriveHandle) -> Option<usize> {
        self.newest.borrow().slots.get(&drive).copied()
    }

    /// The slot of a drive for the next root.
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

    /// The checkpoint has taken effect: records how many segments are reserved and free now, and what is committed.
    pub fn note_effect(&self, queue: usize, free: usize, committed: Sequence) {
        let mut newest = self.newest.borrow_mut();
        newest.queue = queue;
        newest.free = free;
        newest.finished = committed;
    }
}
