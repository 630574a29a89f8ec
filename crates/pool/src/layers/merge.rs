//! Merges a layer that nobody needs any more with the only layer directly above it. No block is moved. Map entries move
//! from layer to layer, one leaf page at a time, and each page is one entry of the log.
//!
//! ```text
//!        up: `from` is below                 down: `from` is above, and has layers above it
//!
//!   into  | a . . b |    | a e . b |      from  | a . . b |    | . . . . |  forgotten
//!           |         ►                            |         ►
//!   from  | c e . . |    | . . . . |      into  | c e . . |    | a e . b |  takes the name of `from`
//!           c is freed                             c is freed
//! ```
//!
//! If both layers are frozen, the layer with fewer blocks is merged into the other one. So deleting the oldest of many
//! snapshots costs what changed between two snapshots, not what the volume holds. A reader sees the same bytes at every
//! step. Headers in the log continue to name the layer for which a block was written. The layer of *forwards* records
//! into which layer a merged layer went.

use std::rc::Rc;

use base::{LayerId, Sequence};

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey, stored};
use crate::geometry::position::Position;
use crate::lane::Lane;
use crate::layers::names::FORWARDS;
use crate::log::queue::{Pending, Ticket};
use crate::map::tree::leaf;

/// Leaf pages that are merged together.
const SLICE_PAGES: u64 = 16;

/// Two layers, one of which is merged into the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Merge {
    from: LayerId,
    into: LayerId,
}

/// The page, and the entry in it, that records where a merged layer went.
pub(crate) fn forward(layer: LayerId) -> (PageKey, usize) {
    leaf(FORWARDS, u64::from(layer.0))
}

fn leaf_at(layer: LayerId, index: u64) -> PageKey {
    PageKey { layer, level: 1, index }
}

impl Merge {
    pub fn layers(self) -> [LayerId; 2] {
        [self.from, self.into]
    }
}

impl Lane {
    /// A merge that has begun comes first: until it ends, blocks of one layer are in two layers.
    pub(crate) fn unfinished_merge(&self) -> Option<Merge> {
        let map = self.map.borrow();
        let able = map.upkeep.iter().filter(|id| !map.layer(**id).stuck);
        able.copied().find_map(|from| map.layer(from).merging.map(|into| Merge { from, into }))
    }

    pub(crate) fn next_merge(&self) -> Option<Merge> {
        let map = self.map.borrow();
        map.upkeep.iter().find_map(|&below| {
            let layer = map.layer(below);
            if !layer.dropping || layer.children != 1 {
                return None;
            }
            let above = map.only_child(below)?;
            let child = map.layer(above);
            if layer.stuck || child.stuck {
                return None;
            }
            let down = child.children > 0 && child.mapped < layer.mapped && child.height <= layer.height;
            Some(if down { Merge { from: above, into: below } } else { Merge { from: below, into: above } })
        })
    }

    /// Whether layers are being dropped or merged, or should be. Layers with a lost map page do not count.
    pub fn upkeep_is_due(&self) -> bool {
        self.unfinished_merge().is_some() || self.dropping_layer().is_some() || self.next_merge().is_some()
    }

    /// Merges some pages. After the last pages the layer is gone. `false` if there is no space for it.
    pub(crate) async fn merge_some(self: &Rc<Self>, merge: Merge) -> Result<bool, LaneError> {
        let mut next = match self.merger.next_page(merge.from) {
            Some(next) => next,
            None => {
                if self.map.borrow().layer(merge.from).merging.is_some() {
                    Decision::MergeResumed.taken();
                }
                // unless `from` is written in between, its tree in the log contains all of its pages from now on
                self.write_checkpoint().await?;
                0
            }
        };
        if !self.make_ready(0, 2 * SLICE_PAGES as usize).await? {
            return Ok(false);
        }
        let ticket = Ticket::new(&self.io);
        let appended = self.append_merges(merge, &mut next, &ticket).await;
        // the next step is decided only when all entries on their way are committed or abandoned
        ticket.wait().await?;
        let found = appended?;
        if self.unfinished_merge() != Some(merge) {
            // another layer was above it for a moment: the next step is decided anew
            self.merger.forget();
            return Ok(true);
        }
        self.merger.advance(merge.from, next);
        if found.is_none() {
            self.finish_merge(merge).await?;
            self.merger.forget();
            self.want_checkpoint();
        }
        Ok(true)
    }

    /// Appends one slice, from the leaf page `next` on; `None` when the end has been reached. The first slice is one
    /// page, until the log says that the layers are being merged: of several pages, the first could be refused and the
    /// others not.
    async fn append_merges(
        &self,
        merge: Merge,
        next: &mut u64,
        ticket: &Rc<Ticket>,
    ) -> Result<Option<u64>, LaneError> {
        let mut found = None;
        let pages = if self.unfinished_merge() == Some(merge) { SLICE_PAGES } else { 1 };
        for _ in 0..pages {
            found = self.next_leaf(merge.from, *next).await?;
            // the first entry says that the layers are being merged, whether there is anything to merge or not
            let Some(index) = found.or((*next == 0).then_some(0)) else { break };
            self.append_merge(merge, index, ticket).await?;
            *next = index + 1;
        }
        Ok(found)
    }

    async fn append_merge(&self, merge: Merge, index: u64, ticket: &Rc<Ticket>) -> Result<(), LaneError> {
        let Merge { from, into } = merge;
        self.log_room().await?;
        self.pin_page(leaf_at(from, index), 1).await?;
        if let Err(error) = self.pin_page(leaf_at(into, index), 1).await {
            self.map.borrow_mut().unpin(leaf_at(from, index));
            return Err(error);
        }
        if self.unfinished_merge() != Some(merge) && !self.tree_is_whole(from) {
            // the layer could be written for a while: the next step is decided anew
            Decision::MergeOvertaken.taken();
            let mut map = self.map.borrow_mut();
            map.unpin(leaf_at(from, index));
            map.unpin(leaf_at(into, index));
            return Ok(());
        }
        let entry = Entry::Merge { from, into, index };
        self.append(Pending::bare(entry, Some(leaf_at(from, index)), ticket));
        self.counters.borrow_mut().pages_merged += 1;
        Ok(())
    }

    /// Whether a layer's tree in the log contains all of its leaf pages: nothing was written to it since the newest
    /// checkpoint and, because another layer is above it, no entry is on its way.
    fn tree_is_whole(&self, layer: LayerId) -> bool {
        let map = self.map.borrow();
        let written = map.layers.get(&layer).map(|layer| layer.written);
        written.is_some_and(|written| written <= self.checkpointer.sequence())
    }

    async fn finish_merge(&self, merge: Merge) -> Result<(), LaneError> {
        let Merge { from, into } = merge;
        self.create_layer(FORWARDS, None, 1 << 32).await?;
        self.log_room().await?;
        let (key, _) = forward(from);
        self.pin_page(key, 1).await?;
        let ticket = Ticket::new(&self.io);
        self.append(Pending::bare(Entry::Merged { from, into }, Some(key), &ticket));
        ticket.wait().await
    }

    /// The first leaf page, at or after `from`, of a layer's tree in the log.
    pub(crate) async fn next_leaf(&self, layer: LayerId, from: u64) -> Result<Option<u64>, LaneError> {
        self.give_way().await;
        let mut at = from;
        'from_the_root: loop {
            let height = self.map.borrow().layers.get(&layer).ok_or(LaneError::NoSuchLayer)?.height;
            let width = |level: u8| (PAGE_ENTRIES as u64).pow(u32::from(level));
            if at >= width(height - 1) {
                return Ok(None);
            }
            let mut level = height;
            while level > 1 {
                let key = PageKey { layer, level, index: at / width(level - 1) };
                let beyond = (key.index + 1) * width(level - 1);
                if !self.ensure_page(key).await? {
                    at = beyond;
                    continue 'from_the_root;
                }
                let map = self.map.borrow();
                let page = map.cached(key).expect("it was there just now");
                let first = (at / width(level - 2)) % PAGE_ENTRIES as u64;
                let there = |&index: &u64| page.entry(index as usize).position.is_stored();
                let Some(index) = (first..PAGE_ENTRIES as u64).find(there) else {
                    at = beyond;
                    continue 'from_the_root;
                };
                if index > first {
                    at = (key.index * PAGE_ENTRIES as u64 + index) * width(level - 2);
                }
                level -= 1;
            }
            return Ok(Some(at));
        }
    }

    /// Moves a leaf page's entries to the other layer. If both layers have an entry for a block, the upper one's
    /// counts.
    pub(crate) fn apply_merge(&self, from: LayerId, into: LayerId, index: u64, sequence: Sequence) {
        let mut map = self.map.borrow_mut();
        if !map.may_merge(from, into) {
            return;
        }
        let up = map.layer(into).parent == Some(from);
        let bottom = map.layer(if up { from } else { into }).parent.is_none();
        map.layer_mut(from).merging = Some(into);
        map.upkeep.insert(from);
        map.bases.disturb(Some(index));
        let (source, target) = (leaf_at(from, index), leaf_at(into, index));
        for slot in 0..PAGE_ENTRIES {
            let entry = map.cached(source).expect("pinned").entry(slot);
            if entry == MapEntry::ABSENT {
                continue;
            }
            let there = map.cached(target).expect("pinned").entry(slot);
            let (result, freed) = merged(entry, there, up, bottom);
            map.set(source, slot, MapEntry::ABSENT, sequence.0);
            if result != there {
                map.set(target, slot, result, sequence.0);
            }
            map.references.go(freed);
            if let Some(freed) = stored(freed) {
                self.segments.borrow_mut().remove_live(freed.segment());
            }
            if stored(entry).is_some() {
                map.count_mapped(from, false);
            }
            if stored(there).is_some() != stored(result).is_some() {
                map.count_mapped(into, stored(result).is_some());
            }
        }
    }

    /// Nothing is left in `from`: layers above it are now above `into`, or `into` takes its place.
    pub(crate) fn apply_merged(&self, from: LayerId, into: LayerId, sequence: Sequence) {
        let mut map = self.map.borrow_mut();
        // a batch from a drive may contain anything
        let is_known = map.layers.get(&from).is_some_and(|layer| layer.merging == Some(into));
        if !is_known || !map.layers.contains_key(&into) || !map.layers.contains_key(&FORWARDS) {
            return;
        }
        let gone = map.layer(from).clone();
        if map.layer(into).parent == Some(from) {
            Decision::MergedUp.taken();
            map.layer_mut(into).parent = gone.parent;
            map.rename(from, from);
        } else {
            Decision::MergedDown.taken();
            for layer in map.layers.values_mut().filter(|layer| layer.parent == Some(from)) {
                layer.parent = Some(into);
            }
            map.rename(from, from);
            map.rename(into, gone.name);
            let heir = map.layer_mut(into);
            (heir.children, heir.dropping, heir.frozen) = (gone.children, gone.dropping, gone.frozen);
            match gone.dropping {
                true => map.upkeep.insert(into),
                false => map.upkeep.remove(&into),
            };
        }
        let layer = map.layer_mut(from);
        (layer.parent, layer.children, layer.dropping, layer.merging) = (None, 0, true, None);
        map.upkeep.insert(from);
        // the layer above it may have been dropped meanwhile
        map.leave(into);
        map.bases.disturb(None);
        map.bases.forget_layer(from);
        let (key, slot) = forward(from);
        map.set(key, slot, MapEntry { position: Position::FORWARD, crc: into.0 }, sequence.0);
        self.background.notify();
    }

    /// The layer whose map names a block's position: the layer in the header, or the one into which it was merged.
    pub(crate) async fn owner(
        &self,
        mut layer: LayerId,
        block: u64,
        place: Position,
    ) -> Result<Option<LayerId>, LaneError> {
        // forwards that lead in a circle return to where they were after 1, 2, 4... steps
        let (mut steps, mut mark) = (0_u64, layer);
        loop {
            if self.ensure_page(leaf(layer, block).0).await? && self.points_at(layer, block, place) {
                return Ok(Some(layer));
            }
            let known = self.map.borrow().layers.get(&layer).map(|layer| (layer.merging, layer.dropping));
            layer = match known {
                Some((Some(into), _)) => into,
                Some((None, false)) => return Ok(None),
                _ => match self.forwarded(layer).await? {
                    Some(into) => {
                        Decision::ForwardFollowed.taken();
                        into
                    }
                    None => return Ok(None),
                },
            };
            steps += 1;
            if layer == mark {
                return Ok(None);
            }
            if steps.is_power_of_two() {
                mark = layer;
            }
        }
    }

    async fn forwarded(&self, layer: LayerId) -> Result<Option<LayerId>, LaneError> {
        let (key, slot) = forward(layer);
        if !self.map.borrow().layers.contains_key(&FORWARDS) || !self.ensure_page(key).await? {
            return Ok(None);
        }
        let map = self.map.borrow();
        let entry = map.cached(key).expect("it was there just now").entry(slot);
        Ok((entry.position == Position::FORWARD).then_some(LayerId(entry.crc)))
    }

    /// Unpins the pages of an entry that was applied or abandoned.
    pub(crate) fn unpin_for(&self, entry: &Entry, pinned: Option<PageKey>) {
        let mut map = self.map.borrow_mut();
        if let Some(key) = pinned {
            map.unpin(key);
        }
        if let Entry::Merge { into, index, .. } = *entry {
            map.unpin(leaf_at(into, index));
        }
    }
}

/// The survivor's new entry for a block, and the entry that is freed. `entry` is the other layer's, `there` its own.
/// `up`: the survivor is the upper layer; `bottom`: no layer is below the two.
fn merged(entry: MapEntry, there: MapEntry, up: bool, bottom: bool) -> (MapEntry, MapEntry) {
    let keeps = up && there != MapEntry::ABSENT;
    let (result, freed) = if keeps { (there, entry) } else { (entry, there) };
    // a hole with nothing below it hides nothing
    (if bottom && result == MapEntry::ZERO { MapEntry::ABSENT } else { result }, freed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::position::SegmentId;
    use crate::geometry::reference::Reference;

    fn at(segment: u32) -> MapEntry {
        MapEntry { position: Position::new(SegmentId(segment), 0, 1, 0), crc: segment }
    }

    /// What a read finds for a block: the upper layer's entry, then the lower's, then that of the layers below both.
    fn seen(upper: MapEntry, lower: MapEntry, below: MapEntry) -> MapEntry {
        let first = [upper, lower, below].into_iter().find(|entry| *entry != MapEntry::ABSENT);
        first.filter(|entry| *entry != MapEntry::ZERO).unwrap_or(MapEntry::ABSENT)
    }

    #[test]
    fn whatever_is_merged_reads_the_same_and_gives_back_what_was_hidden() {
        let reference = |block| MapEntry::referring(Reference { layer: LayerId(9), block });
        let words = |place| [MapEntry::ABSENT, MapEntry::ZERO, at(place), reference(u64::from(place))];
        for (upper, lower) in words(1).into_iter().flat_map(|one| words(2).map(|other| (one, other))) {
            for (up, below) in [true, false].into_iter().flat_map(|up| words(3).map(|below| (up, below))) {
                let (entry, there) = if up { (lower, upper) } else { (upper, lower) };
                let bottom = below == MapEntry::ABSENT;
                // if there is nothing to move, nothing is done
                if entry == MapEntry::ABSENT {
                    continue;
                }
                let (result, freed) = merged(entry, there, up, bottom);
                let (before, after) = (seen(upper, lower, below), seen(result, MapEntry::ABSENT, below));
                assert_eq!(after, before, "{upper:?} over {lower:?} over {below:?}, up: {up}");
                let stored_count = |entries: [MapEntry; 2]| entries.into_iter().filter_map(stored).count();
                let kept = stored_count([result, freed]);
                assert_eq!(kept, stored_count([upper, lower]), "a block is neither lost nor doubled");
                let hidden = upper != MapEntry::ABSENT && stored(lower).is_some();
                assert_eq!(stored(freed).is_some(), hidden);
                let references =
                    |entries: [MapEntry; 2]| entries.into_iter().filter_map(MapEntry::reference).count();
                assert_eq!(references([result, freed]), references([upper, lower]));
            }
        }
    }

    #[test]
    fn forwards_have_a_place_each() {
        assert_eq!(forward(LayerId(0)), (PageKey { layer: FORWARDS, level: 1, index: 0 }, 0));
        assert_eq!(forward(LayerId(513)), (PageKey { layer: FORWARDS, level: 1, index: 2 }, 1));
        assert_ne!(MapEntry { position: Position::FORWARD, crc: 1 }, MapEntry::ABSENT);
        assert_eq!(stored(MapEntry { position: Position::FORWARD, crc: 1 }), None);
    }
}
