//! Damage beyond repair: live blocks that can neither be read nor rebuilt, whether a host, a scrub or cleaning has
//! found them.
//!
//! Loss is recorded by segment. A segment with a loss counts as incomplete, so cleaning moves all blocks that can be
//! read. With the remaining blocks the segment is *stuck*. The mark is removed when none of the lost blocks is live any
//! more, when a scrub finds no loss in the segment, or when cleaning can move the blocks. Cleaning tries again after a
//! start and when a drive has come back.

use crate::cleaning::round::Round;
use crate::decision::Decision;
use crate::format::header::{BatchHeader, Entry};
use crate::geometry::position::SegmentId;
use crate::lane::Lane;
use crate::space::lacking::Lacking;
use crate::space::segments::Segments;

impl Lane {
    /// Records that a live block of this segment can neither be read nor rebuilt.
    pub(crate) fn note_loss(&self, id: SegmentId) {
        let known = {
            let mut segments = self.segments.borrow_mut();
            let segment = segments.get_mut(id);
            segment.lacking.add_all(Lacking::SOMEWHERE);
            std::mem::replace(&mut segment.lost, true)
        };
        if known {
            return;
        }
        Decision::LossMet.taken();
        self.want_repairs();
    }

    /// Marks a segment whose live blocks cleaning cannot move: from now on cleaning leaves it alone.
    pub(crate) fn leave(&self, id: SegmentId) {
        self.segments.borrow_mut().get_mut(id).stuck = true;
        self.note_loss(id);
    }

    /// No loss is known in this segment any more: cleaning tries again to move what it could not move.
    pub(crate) fn forget_loss(&self, id: SegmentId) {
        let was_stuck = {
            let mut segments = self.segments.borrow_mut();
            let segment = segments.get_mut(id);
            segment.lost = false;
            std::mem::take(&mut segment.stuck)
        };
        if was_stuck {
            self.want_repairs();
        }
    }

    /// A drive has come back: lost blocks may be readable with it.
    pub(crate) fn try_what_is_lost_again(&self) {
        self.segments.borrow_mut().iter_mut().for_each(|segment| segment.stuck = false);
    }

    /// Whether any of these lost slots of a batch is in use.
    pub(crate) async fn is_missed(&self, header: &BatchHeader, lost: &[usize]) -> bool {
        for (slot, entry) in header.data().filter(|(slot, _)| lost.contains(slot)) {
            let position = header.position(slot);
            // if the page that would tell is itself lost, this has been recorded
            let Ok(page) = self.survey_entry(entry, position, &mut Round::new(self)).await else { continue };
            // a page that is in memory only has to be written anew
            let in_memory =
                |key| matches!(entry, Entry::Page { .. }) && self.map.borrow().cached(key).is_some();
            if page.is_some_and(|key| !in_memory(key)) {
                return true;
            }
        }
        false
    }
}

/// Live blocks that are known to be lost: those that cleaning had to leave. A lossy segment that cleaning has not
/// processed yet counts as one block.
pub(crate) fn lost_blocks(segments: &Segments) -> u64 {
    let lost = segments.iter().filter(|(_, segment)| segment.live > 0 && (segment.lost || segment.stuck));
    lost.map(|(_, segment)| if segment.stuck { u64::from(segment.live) } else { 1 }).sum::<u64>()
        + segments.gone
}
