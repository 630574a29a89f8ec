//! How a committed (or replayed) entry changes the map and the segments' counts.

use base::Sequence;

use crate::decision::Decision;
use crate::format::header::Entry;
use crate::format::page::{MapEntry, PageKey, stored};
use crate::geometry::position::Position;
use crate::lane::Lane;
use crate::map::tree::{Map, leaf};

impl Lane {
    /// Applies an entry. The leaf pages that it changes are cached: the appender has pinned them, or replay has loaded
    /// them.
    pub(crate) fn apply(&self, entry: &Entry, placed: Option<MapEntry>, sequence: Sequence) {
        if let Entry::Data { layer, .. } | Entry::Unmap { layer, .. } | Entry::Refer { layer, .. } = *entry {
            self.map.borrow_mut().note_written(layer, sequence);
        }
        match *entry {
            Entry::Data { layer, block, .. } => {
                self.set_block(layer, block, placed.expect("data has a place"), sequence);
            }
            Entry::Move { layer, block, from, .. } => {
                if self.points_at(layer, block, from) {
                    self.set_block(layer, block, placed.expect("data has a place"), sequence);
                } else {
                    Decision::MoveStale.taken();
                    self.counters.borrow_mut().moves_stale += 1;
                }
            }
            Entry::Unmap { layer, block, blocks } => {
                for block in block..block + u64::from(blocks) {
                    self.clear_block(layer, block, sequence);
                }
            }
            Entry::Page { .. } | Entry::Table { .. } => {}
            Entry::Layer { layer, parent, height } => {
                let mut map = self.map.borrow_mut();
                let parent = parent.map(|parent| map.named(parent));
                map.add_layer(layer, parent, height);
            }
            Entry::Drop { layer } => {
                let mut map = self.map.borrow_mut();
                let id = map.named(layer);
                map.release(id);
                self.background.notify();
            }
            Entry::Merge { from, into, index } => self.apply_merge(from, into, index, sequence),
            Entry::Merged { from, into } => self.apply_merged(from, into, sequence),
            Entry::Refer { layer, block, blocks, to } => {
                for at in 0..u64::from(blocks) {
                    self.set_block(layer, block + at, MapEntry::referring(to.plus(at)), sequence);
                }
            }
        }
    }

    /// Whether a block's map entry still names this position. False if the layer is gone.
    pub(crate) fn points_at(&self, layer: base::LayerId, block: u64, position: Position) -> bool {
        let (key, index) = leaf(layer, block);
        self.map.borrow().cached(key).is_some_and(|page| page.entry(index).position == position)
    }

    fn set_block(&self, layer: base::LayerId, block: u64, entry: MapEntry, sequence: Sequence) {
        let mut map = self.map.borrow_mut();
        if !map.layers.contains_key(&layer) {
            return;
        }
        let (key, index) = leaf(layer, block);
        self.change_entry(&mut map, key, index, entry, sequence);
    }

    /// Changes an entry of a leaf page, and updates the counts.
    pub(crate) fn change_entry(
        &self,
        map: &mut Map,
        key: PageKey,
        index: usize,
        entry: MapEntry,
        sequence: Sequence,
    ) {
        let old = map.set(key, index, entry, sequence.0);
        let mut segments = self.segments.borrow_mut();
        let (was, is) = (stored(old), stored(entry));
        is.into_iter().for_each(|position| segments.add_live(position.segment()));
        was.into_iter().for_each(|position| segments.remove_live(position.segment()));
        if was.is_some() != is.is_some() {
            map.count_mapped(key.layer, is.is_some());
        }
        map.references.come(entry);
        map.references.go(old);
    }

    pub(crate) fn clear_block(&self, layer: base::LayerId, block: u64, sequence: Sequence) {
        let mut map = self.map.borrow_mut();
        let Some(parent) = map.layers.get(&layer).map(|layer| layer.parent) else { return };
        let (key, index) = leaf(layer, block);
        let cleared = if parent.is_some() { MapEntry::ZERO } else { MapEntry::ABSENT };
        let Some(page) = map.cached(key) else {
            // the appender has pinned it, or replay has loaded it
            assert!(parent.is_none(), "a page is cached before a hole is put into it");
            return;
        };
        if page.entry(index) == cleared {
            return;
        }
        self.change_entry(&mut map, key, index, cleared, sequence);
    }
}
