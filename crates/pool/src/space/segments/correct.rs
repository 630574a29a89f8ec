//! Compares the counts of segments with the map, and corrects them.

use super::Segments;
use crate::geometry::position::SegmentId;
use crate::map::recounted::Recount;

impl Segments {
    /// Adopts the new counts, and returns how many counts were wrong. A segment that cleaning could not move may have
    /// been empty.
    pub fn correct_live(&mut self, recount: &Recount) -> u64 {
        let mut corrected = 0;
        for (&id, segment) in &mut self.segments {
            if let Some(live) = recount.live(id, segment.live) {
                (segment.live, segment.stuck, corrected) = (live, false, corrected + 1);
                segment.lost &= live > 0;
            }
        }
        self.live = self.segments.values().map(|segment| u64::from(segment.live)).sum();
        self.gone = recount.live_beside(&self.segments);
        self.doubted = false;
        corrected
    }

    /// Whether the map may name this segment. A leaf page may name a segment that is gone, but not one that has yet to
    /// be made; a page above the leaves may only name segments that exist. A block whose segment is gone is unreadable.
    pub fn may_be_named(&self, id: SegmentId, by_leaf: bool) -> bool {
        self.find(id).is_some() || by_leaf && id.0 < self.next
    }
}
