//! Reads map pages into memory.

use base::LayerId;
use smallvec::{SmallVec, smallvec};

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::page::{MapEntry, PAGE_ENTRIES, Page, PageKey};
use crate::geometry::position::{Position, SegmentId};
use crate::lane::Lane;
use crate::map::tree::{Found, Map, leaf};
use crate::reading::cells::Unreadable;

/// Pages that a walk through the map looks at before other tasks run: about ten microseconds.
const PAGES_OF_A_TURN: u32 = 32;

/// Segments whose chunks are not reused as long as this lives.
pub(crate) struct SegmentPins<'a> {
    lane: &'a Lane,
    /// Most requests touch one or two.
    segments: SmallVec<[SegmentId; 4]>,
}

impl<'a> SegmentPins<'a> {
    pub fn new(lane: &'a Lane) -> SegmentPins<'a> {
        SegmentPins { lane, segments: SmallVec::new() }
    }

    pub fn pin(&mut self, segment: SegmentId) {
        if !self.segments.contains(&segment) {
            self.lane.segments.borrow_mut().pin(segment);
            self.segments.push(segment);
        }
    }
}

impl Drop for SegmentPins<'_> {
    fn drop(&mut self) {
        let mut segments = self.lane.segments.borrow_mut();
        let freed = self.segments.iter().filter(|&&segment| segments.unpin(segment)).count();
        if freed > 0 {
            self.lane.space.notify();
            self.lane.background.notify();
        }
    }
}

impl Lane {
    /// Reads one page (the requested one or one above it), as [`crate::map::tree::Map::find`] requires.
    pub(crate) async fn load_page(&self, key: PageKey, entry: MapEntry) -> Result<(), LaneError> {
        let unreadable = LaneError::Unreadable { block: key.index };
        let mut pins = SegmentPins::new(self);
        let columns = {
            let mut segments = self.segments.borrow_mut();
            let found = segments.find(entry.position.segment()).map(|segment| segment.columns.clone());
            // a count was too low, and the segment is gone with the page
            segments.doubted |= found.is_none();
            found.ok_or(unreadable)?
        };
        pins.pin(entry.position.segment());
        let page = match self.read_entry(&columns, entry).await {
            Ok(buffer) => Page::parse(&buffer, key).ok(),
            Err(Unreadable) => None,
        };
        // an outdated page may name segments that have been freed
        let believed = |page: &Page| self.has_segments_of(page) || !self.map.borrow_mut().wants(key, entry);
        let page = page.filter(believed);
        let Some(page) = page else {
            self.note_loss(entry.position.segment());
            return Err(unreadable);
        };
        self.map.borrow_mut().insert_loaded(key, entry, page);
        Ok(())
    }

    /// Whether all segments that a page names exist: a page that names others is not used, whatever its checksum.
    fn has_segments_of(&self, page: &Page) -> bool {
        let segments = self.segments.borrow();
        let mut last = None;
        let stored = (0..PAGE_ENTRIES).map(|index| page.entry(index).position).filter(|at| at.is_stored());
        stored.map(Position::segment).all(|id| {
            let known = last == Some(id) || segments.may_be_named(id, page.key().level == 1);
            last = Some(id);
            known
        })
    }

    /// Called between two pages of a walk: lets other tasks run from time to time, even if every page is in memory.
    pub(crate) async fn give_way(&self) {
        let walked = (self.walked.get() + 1) % PAGES_OF_A_TURN;
        self.walked.set(walked);
        if walked == 0 {
            self.io.next_turn().await;
        }
    }

    /// Loads a page into the cache; `false` if it does not exist.
    pub(crate) async fn ensure_page(&self, key: PageKey) -> Result<bool, LaneError> {
        self.load_until_found(key, Map::find).await
    }

    /// Like [`Lane::ensure_page`], for a page that is to be changed: loads the pages above it, too.
    pub(crate) async fn ensure_for_change(&self, key: PageKey) -> Result<bool, LaneError> {
        self.load_until_found(key, Map::find_for_change).await
    }

    async fn load_until_found(
        &self,
        key: PageKey,
        find: fn(&mut Map, PageKey) -> Found,
    ) -> Result<bool, LaneError> {
        loop {
            let found = find(&mut self.map.borrow_mut(), key);
            match found {
                Found::Cached(_) => return Ok(true),
                Found::Absent => return Ok(false),
                Found::Load(key, entry) => self.load_page(key, entry).await?,
            }
        }
    }

    /// Loads a page into the cache and pins it `pins` times. A page that does not exist is created empty.
    pub(crate) async fn pin_page(&self, key: PageKey, pins: u32) -> Result<(), LaneError> {
        let exists = self.ensure_for_change(key).await?;
        let mut map = self.map.borrow_mut();
        if !map.layers.contains_key(&key.layer) {
            return Err(LaneError::NoSuchLayer);
        }
        if !exists {
            map.create(key);
        }
        map.pin(key, pins);
        Ok(())
    }

    /// The position and checksum of each of `blocks` blocks, from the layer and those below it. The segments of the
    /// positions are pinned in the same step.
    pub(crate) async fn resolve(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
        pins: &mut SegmentPins<'_>,
    ) -> Result<Entries, LaneError> {
        loop {
            match self.try_resolve(layer, block, blocks)? {
                Resolved::Entries(entries) => {
                    for (index, entry) in
                        entries.iter().enumerate().filter(|(_, entry)| entry.position.is_stored())
                    {
                        let segment = entry.position.segment();
                        if self.segments.borrow().find(segment).is_none() {
                            // a count was too low, and the segment is gone with the requested block
                            self.segments.borrow_mut().doubted = true;
                            return Err(LaneError::Unreadable { block: block + index as u64 });
                        }
                        pins.pin(segment);
                    }
                    return Ok(entries);
                }
                Resolved::Load(key, entry) => self.load_page(key, entry).await?,
                Resolved::Base(key) => self.build_base(key).await?,
            }
        }
    }

    /// Like [`Lane::resolve`], from the cache alone.
    pub(crate) fn try_resolve(&self, layer: LayerId, block: u64, blocks: u64) -> Result<Resolved, LaneError> {
        let mut map = self.map.borrow_mut();
        let layer = map.named(layer);
        let parent = map.layers.get(&layer).ok_or(LaneError::NoSuchLayer)?.parent;
        let mut entries: Entries = smallvec![MapEntry::ABSENT; blocks as usize];
        let mut at = 0;
        while at < blocks {
            let count = crate::map::tree::within_leaf(block + at, blocks - at);
            let (key, first) = leaf(layer, block + at);
            let entries = &mut entries[at as usize..(at + count) as usize];
            match map.find(key) {
                Found::Load(key, entry) => return Ok(Resolved::Load(key, entry)),
                Found::Absent => {}
                Found::Cached(page) => {
                    entries
                        .iter_mut()
                        .enumerate()
                        .for_each(|(index, entry)| *entry = page.entry(first + index));
                }
            }
            if let Some(parent) = parent {
                let base = PageKey { layer: parent, ..key };
                if !self.fill_from_base(&mut map, base, first, entries) {
                    return Ok(Resolved::Base(base));
                }
            }
            at += count;
        }
        Ok(Resolved::Entries(entries))
    }

    /// Fills absent entries from the base. `false` if the base has to be built first.
    fn fill_from_base(&self, map: &mut Map, base: PageKey, first: usize, entries: &mut [MapEntry]) -> bool {
        let is_absent = |entry: &MapEntry| entry.position == Position::ABSENT;
        if !entries.iter().any(is_absent) {
            return true;
        }
        let Some(below) = map.bases.find(base) else { return false };
        let segments = self.segments.borrow();
        for (index, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| is_absent(entry)) {
            *entry = below[first + index];
            // moved since, and the old segment is gone: a position names the same bytes as long as its segment exists
            let is_stored = entry.position.is_stored() && entry.position != Position::LOST;
            if is_stored && segments.find(entry.position.segment()).is_none() {
                Decision::BaseOutdated.taken();
                map.bases.forget(base);
                return false;
            }
        }
        true
    }

    /// Builds the base of a leaf page from a layer and those below it.
    pub(crate) async fn build_base(&self, key: PageKey) -> Result<(), LaneError> {
        let watch = self.map.borrow_mut().bases.watch(Some(key.index));
        let mut entries = [MapEntry::ABSENT; PAGE_ENTRIES];
        let mut next = Some(key.layer);
        while let Some(layer) = next {
            self.give_way().await;
            let exists = self.ensure_page(PageKey { layer, ..key }).await?;
            let map = self.map.borrow();
            let Some(found) = map.layers.get(&layer) else {
                return if watch.is_disturbed() { Ok(()) } else { Err(LaneError::NoSuchLayer) };
            };
            if exists {
                let page = map.cached(PageKey { layer, ..key }).expect("it was there just now");
                self.fill_from_page(page, &mut entries);
            }
            next = found.parent.filter(|_| entries.iter().any(|entry| entry.position == Position::ABSENT));
        }
        // moved blocks may be gone and merged entries may have been missed: the caller tries again
        let is_outdated =
            entries.iter().any(|entry| entry.position != Position::LOST && self.has_no_segment(entry));
        match watch.is_disturbed() || is_outdated {
            true => Decision::BaseOvertaken.taken(),
            false => self.map.borrow_mut().bases.insert(key, entries),
        }
        Ok(())
    }

    /// Fills absent entries from a page. If the page names a position in a segment that is gone, the block is lost
    /// until it is overwritten.
    fn fill_from_page(&self, page: &Page, entries: &mut [MapEntry]) {
        let absent = entries.iter_mut().enumerate().filter(|(_, entry)| entry.position == Position::ABSENT);
        for (index, entry) in absent {
            *entry = page.entry(index);
            if self.has_no_segment(entry) {
                entry.position = Position::LOST;
            }
        }
    }

    fn has_no_segment(&self, entry: &MapEntry) -> bool {
        entry.position.is_stored() && self.segments.borrow().find(entry.position.segment()).is_none()
    }

    /// Whether a block that could not be read at the expected position has another one now. Positions in a base are
    /// good only as long as the blocks there can be read, and nobody repairs the old place of a block that has moved.
    pub(crate) async fn is_elsewhere(
        &self,
        layer: LayerId,
        block: u64,
        entry: MapEntry,
    ) -> Result<bool, LaneError> {
        self.forget_base(layer, block);
        let mut pins = SegmentPins::new(self);
        let elsewhere = self.resolve(layer, block, 1, &mut pins).await?[0] != entry;
        if elsewhere {
            Decision::BaseUnreadable.taken();
        }
        Ok(elsewhere)
    }

    /// Discards the base of a block, so that it is built anew.
    pub(crate) fn forget_base(&self, layer: LayerId, block: u64) {
        let mut map = self.map.borrow_mut();
        let layer = map.named(layer);
        if let Some(parent) = map.layers.get(&layer).and_then(|layer| layer.parent) {
            map.bases.forget(leaf(parent, block).0);
        }
    }
}

/// Map entries of a range: most requests have few.
pub(crate) type Entries = SmallVec<[MapEntry; 4]>;

pub(crate) enum Resolved {
    Entries(Entries),
    /// This page has to be read first.
    Load(PageKey, MapEntry),
    /// The base of this page has to be built first.
    Base(PageKey),
}
