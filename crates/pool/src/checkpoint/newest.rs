//! What is known of the newest checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use base::Sequence;
use env::DriveHandle;

use crate::geometry::position::SegmentId;

/// The newest checkpoint that is on the drives.
#[derive(Default)]
pub(crate) struct Newest {
    pub generation: u64,
    pub sequence: Sequence,
    pub listed: BTreeSet<SegmentId>,
    /// Reserved segments when it was written.
    pub queue: usize,
    /// What was committed, and what was free, when it was written: where nothing has changed since, another
    /// checkpoint would change nothing.
    pub finished: Sequence,
    pub free: usize,
    /// Which of its two slots has a drive's newest root. The next goes to the other, whatever generation that is: a
    /// drive may have missed the one before, and a write that is cut off must leave it the newest that it has.
    pub slots: BTreeMap<DriveHandle, usize>,
}

impl Newest {
    /// Whether replay will look for batches in this segment.
    pub fn lists(&self, id: SegmentId) -> bool {
        self.listed.contains(&id)
    }

    /// Reserved segments at which the next checkpoint is due.
    pub fn queue_low(&self) -> usize {
        self.queue / 2
    }
}
