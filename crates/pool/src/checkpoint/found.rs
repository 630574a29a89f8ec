//! What a start finds on the drives: which batches are whole, and which drives hold an older state than they should.

use base::{AlignedBuffer, Sequence};

use crate::decision::Decision;
use crate::format::header::BatchHeader;
use crate::format::root::Root;
use crate::lane::Lane;
use crate::reading::verify::{BatchCheck, Expect};
use crate::space::lacking::Lacking;

/// Batches that are read at the same time.
pub(crate) const CHECKED_AT_ONCE: usize = 8;

/// What the drives hold of a batch whose header was found.
pub(crate) enum FoundBatch {
    /// The batch counts, although these columns lack some of its data.
    Lacks(Lacking),
    /// The batch counts when it has been completed from this data.
    Repairable(AlignedBuffer),
    /// The batch does not count.
    Torn,
}

impl Lane {
    /// Reads a batch. A batch that is known to have been durable counts whatever it lacks. It may lack more than any
    /// checkpoint records: a drive may have refused it just before the end, or missed it while it was away.
    pub(crate) async fn check_found(&self, header: &BatchHeader, durable: Sequence) -> FoundBatch {
        let columns = self.segments.borrow().get(header.segment).columns.clone();
        if header.sequence > durable {
            return match self.check_batch(&columns, header, Expect::Everything).await {
                BatchCheck::Whole => {
                    Decision::BatchWhole.taken();
                    FoundBatch::Lacks(Lacking::NOTHING)
                }
                BatchCheck::Repairable(data, _) => FoundBatch::Repairable(data),
                BatchCheck::Torn(_) => FoundBatch::Torn,
            };
        }
        Decision::BatchDurable.taken();
        FoundBatch::Lacks(match self.check_batch(&columns, header, Expect::WhatIsThere).await {
            BatchCheck::Whole => Lacking::NOTHING,
            BatchCheck::Repairable(_, lacking) => {
                Decision::BatchDurableLacks.taken();
                lacking
            }
            BatchCheck::Torn(_) => Lacking::SOMEWHERE,
        })
    }

    /// Completes a batch in place. Returns what it lacks afterwards.
    pub(crate) async fn complete_found(&self, header: &BatchHeader, data: AlignedBuffer) -> Lacking {
        let columns = self.segments.borrow().get(header.segment).columns.clone();
        self.counters.borrow_mut().completed += 1;
        let lacking = self.complete_batch(&columns, header, data).await;
        match lacking.is_nothing() {
            true => Decision::BatchCompleted.taken(),
            false => Decision::BatchIncomplete.taken(),
        }
        lacking
    }

    /// Finds drives that hold an older state than they should, as their own newest roots show: they may lack everything
    /// written since. Until a checkpoint records this, the next start has to find it out again.
    pub(crate) fn note_outdated(&self, root: &Root, known: &[(u8, Sequence)]) -> Vec<u8> {
        // a verdict is no checkpoint: the start that wrote it was interrupted
        let settled = if root.end == Root::NO_END { root.epoch.0 } else { root.epoch.0.saturating_sub(1) };
        let membership = self.membership.borrow();
        let mut segments = self.segments.borrow_mut();
        let mut outdated = Vec::new();
        for &(drive, sequence) in known.iter().filter(|(_, sequence)| *sequence < root.sequence) {
            if membership.members[usize::from(drive)].since.0 <= settled {
                // the newest root had not reached this drive when the last process ended
                continue;
            }
            Decision::DriveOutdated.taken();
            let written =
                segments.iter_mut().filter(|segment| segment.last > sequence && segment.used_rows > 0);
            written.for_each(|segment| segment.lacks_on(drive));
            outdated.push(drive);
        }
        outdated
    }
}
