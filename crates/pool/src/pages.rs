//! Bringing map pages into memory.

use base::LayerId;

use crate::cells::Unreadable;
use crate::format::page::{MapEntry, Page, PageKey};
use crate::lane::{Lane, LaneError};
use crate::map::Found;
use crate::position::{Position, SegmentId};

/// Segments whose chunks stay in place while this lives.
pub(crate) struct SegmentPins<'a> {
    lane: &'a Lane,
    segments: Vec<SegmentId>,
}

impl<'a> SegmentPins<'a> {
    pub fn new(lane: &'a Lane) -> SegmentPins<'a> {
        SegmentPins { lane, segments: Vec::new() }
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
    /// Reads one page (the one asked for or one above it) that [`crate::map::Map::find`] wants.
    pub(crate) async fn load_page(&self, key: PageKey, entry: MapEntry) -> Result<(), LaneError> {
        let unreadable = LaneError::Unreadable { block: key.index };
        let mut pins = SegmentPins::new(self);
        let columns = {
            let segments = self.segments.borrow();
            segments.find(entry.position.segment()).ok_or(unreadable)?.columns.clone()
        };
        pins.pin(entry.position.segment());
        let buffer = self.read_entry(&columns, entry).await.map_err(|Unreadable| unreadable)?;
        let page = Page::parse(&buffer, key).map_err(|_| unreadable)?;
        self.map.borrow_mut().insert_loaded(key, entry, page);
        Ok(())
    }

    /// Has a page in the cache, or knows that it does not exist (`false`).
    pub(crate) async fn ensure_page(&self, key: PageKey) -> Result<bool, LaneError> {
        loop {
            let found = self.map.borrow_mut().find(key);
            match found {
                Found::Cached(_) => return Ok(true),
                Found::Absent => return Ok(false),
                Found::Load(key, entry) => self.load_page(key, entry).await?,
            }
        }
    }

    /// As [`Lane::ensure_page`], for a page that is to be changed: those above it are there, too.
    pub(crate) async fn ensure_for_change(&self, key: PageKey) -> Result<bool, LaneError> {
        loop {
            let found = self.map.borrow_mut().find_for_change(key);
            match found {
                Found::Cached(_) => return Ok(true),
                Found::Absent => return Ok(false),
                Found::Load(key, entry) => self.load_page(key, entry).await?,
            }
        }
    }

    /// Has a page in the cache, pinned `pins` times, empty where it did not exist.
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

    /// The position and checksum of each of `blocks` blocks, as the layer and those below it say; positions'
    /// segments are pinned in the same step.
    pub(crate) async fn resolve(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
        pins: &mut SegmentPins<'_>,
    ) -> Result<Vec<MapEntry>, LaneError> {
        loop {
            match self.try_resolve(layer, block, blocks)? {
                Resolved::Entries(entries) => {
                    for entry in entries.iter().filter(|entry| entry.position.is_stored()) {
                        pins.pin(entry.position.segment());
                    }
                    return Ok(entries);
                }
                Resolved::Load(key, entry) => self.load_page(key, entry).await?,
            }
        }
    }

    /// As [`Lane::resolve`], from the cache alone.
    pub(crate) fn try_resolve(&self, layer: LayerId, block: u64, blocks: u64) -> Result<Resolved, LaneError> {
        let mut map = self.map.borrow_mut();
        let mut entries = vec![MapEntry::ABSENT; blocks as usize];
        let mut next = Some(layer);
        while let Some(layer) = next {
            let parent = map.layers.get(&layer).ok_or(LaneError::NoSuchLayer)?.parent;
            let mut at = 0;
            while at < blocks {
                let count = crate::apply::within_leaf(block + at, blocks - at);
                let key = PageKey::of_block(layer, block + at);
                match map.find(key) {
                    Found::Load(key, entry) => return Ok(Resolved::Load(key, entry)),
                    Found::Absent => {}
                    Found::Cached(page) => {
                        let first = ((block + at) % crate::format::page::PAGE_ENTRIES as u64) as usize;
                        for index in 0..count as usize {
                            let entry = &mut entries[at as usize + index];
                            if entry.position == Position::ABSENT {
                                *entry = page.entry(first + index);
                            }
                        }
                    }
                }
                at += count;
            }
            next = parent.filter(|_| entries.iter().any(|entry| entry.position == Position::ABSENT));
        }
        Ok(Resolved::Entries(entries))
    }
}

pub(crate) enum Resolved {
    Entries(Vec<MapEntry>),
    /// This page is needed first.
    Load(PageKey, MapEntry),
}
