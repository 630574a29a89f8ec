//! The counts of a recount: they cover the part of the map that the walk has passed, and are updated as the map
//! changes. `integrity/recount.rs` does the walk.

use std::collections::BTreeMap;

use base::LayerId;

use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey, stored};
use crate::geometry::position::SegmentId;

const PAGE: u64 = PAGE_ENTRIES as u64;

/// What the map names, in the part that the walk has passed.
#[derive(Default)]
pub(crate) struct Recount {
    /// The next leaf page: its layer, and its index.
    pub cursor: (u64, u64),
    live: BTreeMap<SegmentId, i64>,
    mapped: BTreeMap<LayerId, i64>,
    references: BTreeMap<LayerId, i64>,
    /// A page could not be read.
    pub is_partial: bool,
}

/// Leaf pages below one page.
pub(crate) fn leaves(level: u8) -> u64 {
    PAGE.pow(u32::from(level) - 1)
}

impl Recount {
    fn has_passed(&self, layer: LayerId, leaf: u64) -> bool {
        (u64::from(layer.0), leaf) < self.cursor
    }

    pub fn count_place(&mut self, entry: MapEntry, by: i64) {
        if let Some(position) = stored(entry) {
            *self.live.entry(position.segment()).or_default() += by;
        }
    }

    pub fn count_block(&mut self, layer: LayerId, entry: MapEntry, by: i64) {
        self.count_place(entry, by);
        if stored(entry).is_some() {
            *self.mapped.entry(layer).or_default() += by;
        }
        if let Some(to) = entry.reference() {
            *self.references.entry(to.layer).or_default() += by;
        }
    }

    /// An entry of a page has changed.
    pub fn on_change(&mut self, key: PageKey, slot: usize, old: MapEntry, new: MapEntry) {
        if key.level == 1 {
            if self.has_passed(key.layer, key.index) {
                self.count_block(key.layer, old, -1);
                self.count_block(key.layer, new, 1);
            }
            return;
        }
        let below = key.index * PAGE + slot as u64;
        self.on_place_change(key.layer, below * leaves(key.level - 1), old, new);
    }

    /// The page that begins with this leaf page has moved.
    pub fn on_place_change(&mut self, layer: LayerId, leaf: u64, old: MapEntry, new: MapEntry) {
        if self.has_passed(layer, leaf) {
            self.count_place(old, -1);
            self.count_place(new, 1);
        }
    }

    /// The correct count, if it differs.
    fn differs(&self, counted: Option<&i64>, kept: u64) -> Option<u64> {
        let counted = u64::try_from(counted.copied().unwrap_or(0)).unwrap_or(0);
        let right = if self.is_partial { counted.max(kept) } else { counted };
        (right != kept).then_some(right)
    }

    pub fn live(&self, id: SegmentId, kept: u32) -> Option<u32> {
        self.differs(self.live.get(&id), u64::from(kept)).map(|live| u32::try_from(live).unwrap_or(u32::MAX))
    }

    /// Blocks in segments that do not exist.
    pub fn live_beside<T>(&self, segments: &BTreeMap<SegmentId, T>) -> u64 {
        let gone = self.live.iter().filter(|(id, _)| !segments.contains_key(id));
        gone.map(|(_, &live)| u64::try_from(live).unwrap_or(0)).sum()
    }

    pub fn mapped(&self, layer: LayerId, kept: u64) -> Option<u64> {
        self.differs(self.mapped.get(&layer), kept)
    }

    pub fn references(&self, kept: &BTreeMap<LayerId, u64>) -> BTreeMap<LayerId, u64> {
        let names = self.references.keys().chain(kept.keys()).copied();
        let right = |name: LayerId| {
            let kept = kept.get(&name).copied().unwrap_or(0);
            (name, self.differs(self.references.get(&name), kept).unwrap_or(kept))
        };
        names.map(right).filter(|&(_, entries)| entries > 0).collect()
    }
}
