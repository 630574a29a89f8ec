//! Compares the counts of segments with the map, and corrects them.

use super::Segments;
use crate::geometry::position::SegmentId;
use crate::map::recounted::Recount;

impl Segments {
    /// Takes in what was counted anew, and gives how many counts were wrong. What nothing could be moved of may have been empty.
    pub fn mend_live(&mut self, recount: &Recount) -> u64 {
        let mut mended = 0;
        for (&id, segment) in &mut self.segments {
            if let Some(live) = recount.live(id, segment.live) {
                (segment.live, segment.stuck, mended) = (live, false, mended + 1);
                segment.lost &= live > 0;
            }
        }
        self.live = self.segments.values().map(|segment| u64::from(segment.live)).sum();
        self.gone = recount.live_beside(&self.segments);
        self.doubted = false;
        mended
    }

    /// Whether what a page of the map names may be kept: pages name no segment that has yet to be made, and those above
    /// others none that has gone. A block whose segment has gone is unreadable by itself.
    pub fn may_be_named(&self, id: SegmentId, by_leaf: bool) -> bool {
        self.find(id).is_some() || by_leaf && id.0 < self.next
    }
}
