//! The map of a lane in memory: its layers, and the cached pages of their maps.
//!
//! Only bookkeeping: `pages.rs` reads pages from the log, `checkpoint/writer.rs` writes them. What always holds: a page
//! that is not cached is exactly what its parent's entry (or the layer's root) names; dirty, flushing and pinned pages
//! are never evicted; pages above level 1 change only in checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use base::{BLOCK_BYTES, HashMap, LayerId};

use crate::format::page::{LEVEL_MAX, MapEntry, PAGE_ENTRIES, Page, PageKey};
use crate::layers::bases::Bases;
use crate::layers::layer::Layer;
use crate::layers::references::References;
use crate::map::exposure::Exposure;
use crate::map::recounted::Recount;
use crate::map::ring::Ring;

pub(crate) struct CachedPage {
    pub page: Rc<Page>,
    /// A checkpoint is writing the page.
    pub flushing: bool,
    pins: u32,
    /// Used since the clock's hand last passed.
    used: bool,
    place: usize,
}

/// Where a page is.
pub(crate) enum Found {
    Cached(Rc<Page>),
    /// It does not exist: all its entries are absent.
    Absent,
    /// This page (the requested one, or one above it) must be read first.
    Load(PageKey, MapEntry),
}

/// What a layer's own map says of blocks from a given block on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Silence {
    /// It has no entries before this block.
    Until(u64),
    /// There is a leaf page for the block.
    Speaks,
    /// This page must be read first.
    Load(PageKey, MapEntry),
}

pub(crate) struct Map {
    pub layers: BTreeMap<LayerId, Layer>,
    /// Layers whose name differs from their id, by name.
    pub names: BTreeMap<LayerId, LayerId>,
    pub bases: Bases,
    /// How many entries refer to each layer.
    pub references: References,
    /// The running recount.
    pub recount: Option<Recount>,
    /// A count of mapped blocks has turned out to be wrong.
    pub doubted: bool,
    /// Layers that are dropped or being merged.
    pub upkeep: BTreeSet<LayerId>,
    pages: HashMap<PageKey, CachedPage>,
    ring: Ring<PageKey>,
    /// The keys of `pages`, sorted: the pages of one layer are together.
    keys: BTreeSet<PageKey>,
    /// How many of the pages a checkpoint is writing.
    pages_flushing: usize,
    dirty: [BTreeSet<PageKey>; LEVEL_MAX as usize + 1],
    /// Leaf pages that entries on their way keep in memory, because they will become dirty.
    pinned: BTreeSet<PageKey>,
    /// What the next checkpoint has to write, including the pages above; never less than the exact set.
    exposed: Exposure,
    /// What the running checkpoint had to write when it began.
    flushing: Exposure,
    /// Blocks with a position, of all layers.
    pub mapped: u64,
    budget_bytes: usize,
    budget_pages: usize,
    pub hits: u64,
    pub misses: u64,
}

/// The number of clean pages kept regardless of the budget: those that running reads need at once.
const CLEAN_MIN: usize = 32;
/// The memory of a cached page, including its index entries and the allocator's rounding.
const PAGE_BYTES: usize = BLOCK_BYTES + BLOCK_BYTES / 4 + 256;
/// Places of the ring that are probed for each new page; this bounds the time of an eviction.
const TURNS_MAX: usize = 64;

/// How many pages of the map, and of [`Bases`], fit into the budget.
fn split(budget_bytes: usize) -> (usize, usize) {
    let pages = budget_bytes / PAGE_BYTES;
    ((pages - pages / 5).max(8), pages / 5)
}

/// The height of the lowest tree that maps `blocks` blocks.
pub(crate) fn height_for(blocks: u64) -> u8 {
    (1..LEVEL_MAX).find(|&level| (PAGE_ENTRIES as u64).pow(u32::from(level)) >= blocks).unwrap_or(LEVEL_MAX)
}

impl Map {
    pub fn new(budget_bytes: usize) -> Map {
        let (budget_pages, bases) = split(budget_bytes);
        Map {
            layers: BTreeMap::new(),
            names: BTreeMap::new(),
            bases: Bases::new(bases),
            references: References::default(),
            recount: None,
            doubted: false,
            upkeep: BTreeSet::new(),
            pages: HashMap::default(),
            ring: Ring::new(),
            keys: BTreeSet::new(),
            pages_flushing: 0,
            dirty: Default::default(),
            pinned: BTreeSet::new(),
            exposed: Exposure::default(),
            flushing: Exposure::default(),
            mapped: 0,
            budget_bytes,
            budget_pages,
            hits: 0,
            misses: 0,
        }
    }

    /// Whether a layer's tree can name a block.
    pub fn covers(&self, layer: LayerId, block: u64) -> bool {
        let height = u32::from(self.layer(layer).height);
        block < (PAGE_ENTRIES as u64).pow(height)
    }

    pub fn find(&mut self, key: PageKey) -> Found {
        if let Some(cached) = self.pages.get_mut(&key) {
            cached.used = true;
            self.hits += u64::from(key.level == 1);
            return Found::Cached(cached.page.clone());
        }
        let Some(layer) = self.layers.get(&key.layer) else { return Found::Absent };
        let entry = match key.level.cmp(&layer.height) {
            std::cmp::Ordering::Greater => return Found::Absent,
            std::cmp::Ordering::Equal if key.index == 0 => layer.root,
            std::cmp::Ordering::Equal => return Found::Absent,
            std::cmp::Ordering::Less => match self.find(key.parent()) {
                Found::Cached(parent) => parent.entry(key.entry_in_parent()),
                other => return other,
            },
        };
        if entry.position.is_stored() { Found::Load(key, entry) } else { Found::Absent }
    }

    /// The range from `block` on for which a layer's own map has no entries. Looks at one page of each level.
    pub fn silent_until(&mut self, layer: LayerId, block: u64) -> Silence {
        let width = |level: u8| (PAGE_ENTRIES as u64).pow(u32::from(level));
        let Some(height) = self.layers.get(&layer).map(|layer| layer.height) else {
            return Silence::Until(u64::MAX);
        };
        let (mut until, mut level) = (u64::MAX, 1);
        while level <= height {
            let key = PageKey { layer, level, index: block / width(level) };
            match self.find(key) {
                Found::Load(key, entry) => return Silence::Load(key, entry),
                Found::Cached(_) if level == 1 => return Silence::Speaks,
                Found::Cached(page) => {
                    let first = (block / width(level - 1)) as usize % PAGE_ENTRIES;
                    let named = |&index: &usize| page.entry(index).position.is_stored();
                    let end = (first + 1..PAGE_ENTRIES).find(named).unwrap_or(PAGE_ENTRIES);
                    until = (key.index * PAGE_ENTRIES as u64 + end as u64) * width(level - 1);
                    break;
                }
                Found::Absent => level += 1,
            }
        }
        // pages in memory that the pages above do not name yet; none of them has the block itself
        for lower in 1..level.min(height) {
            let first = PageKey { layer, level: lower, index: block / width(lower) };
            let last = PageKey { index: (until - 1) / width(lower), ..first };
            if let Some(key) = self.keys.range(first..=last).next() {
                until = until.min(key.index * width(lower));
            }
        }
        Silence::Until(until)
    }

    /// Like [`Map::find`], for a page that is to be changed: the pages above it are needed, too, so that the checkpoint
    /// that writes it has nothing to read.
    pub fn find_for_change(&mut self, key: PageKey) -> Found {
        let found = self.find(key);
        let height = self.layers.get(&key.layer).map_or(key.level, |layer| layer.height);
        let mut above = key;
        while above.level < height {
            above = above.parent();
            if let load @ Found::Load(..) = self.find(above) {
                return load;
            }
        }
        found
    }

    /// Puts a page that was read into the cache, unless a newer one is there by now.
    pub fn insert_loaded(&mut self, key: PageKey, entry: MapEntry, page: Page) {
        self.misses += u64::from(key.level == 1);
        if self.wants(key, entry) {
            self.insert(key, Rc::new(page));
        }
    }

    /// Whether the page still has to be read from this position.
    pub fn wants(&mut self, key: PageKey, entry: MapEntry) -> bool {
        matches!(self.find(key), Found::Load(wanted, now) if wanted == key && now == entry)
    }

    fn insert(&mut self, key: PageKey, page: Rc<Page>) {
        let place = self.ring.insert(key);
        let replaced =
            self.pages.insert(key, CachedPage { page, flushing: false, pins: 0, used: true, place });
        assert!(replaced.is_none(), "a page is cached once");
        self.keys.insert(key);
        self.evict();
    }

    fn remove(&mut self, key: PageKey) {
        let cached = self.pages.remove(&key).expect("a cached page");
        self.ring.remove(cached.place);
        self.keys.remove(&key);
    }

    /// The cached pages of a layer, at these levels, in order.
    fn of_layer(&self, layer: LayerId, levels: RangeInclusive<u8>) -> impl Iterator<Item = PageKey> {
        let first = PageKey { layer, level: *levels.start(), index: 0 };
        let last = PageKey { layer, level: *levels.end(), index: u64::MAX };
        self.keys.range(first..=last).copied()
    }

    /// Ensures that a page that [`Map::find`] reports as absent can be changed.
    pub fn create(&mut self, key: PageKey) {
        if !self.pages.contains_key(&key) {
            self.insert(key, Rc::new(Page::new(key)));
            // An empty page that nobody has changed yet stays because whoever made it pins it next.
        }
    }

    pub fn cached(&self, key: PageKey) -> Option<&Rc<Page>> {
        self.pages.get(&key).map(|cached| &cached.page)
    }

    pub fn pin(&mut self, key: PageKey, pins: u32) {
        let cached = self.pages.get_mut(&key).expect("a cached page");
        cached.pins += pins;
        if key.level == 1 && pins > 0 && cached.pins == pins {
            self.pinned.insert(key);
            self.expose(key);
        }
    }

    pub fn unpin(&mut self, key: PageKey) {
        let cached = self.pages.get_mut(&key).expect("a pinned page is cached");
        assert!(cached.pins > 0);
        cached.pins -= 1;
        if cached.pins == 0 {
            self.pinned.remove(&key);
        }
    }

    fn expose(&mut self, key: PageKey) {
        if !self.exposed.contains(&key) {
            let height = self.layers.get(&key.layer).map_or(key.level, |layer| layer.height);
            self.exposed.add(key, height);
        }
    }

    fn mark_dirty(&mut self, key: PageKey) {
        if self.dirty[usize::from(key.level)].insert(key) {
            self.expose(key);
        }
    }

    /// Counts again what the next checkpoint has to write.
    fn expose_again(&mut self) {
        self.exposed = Exposure::default();
        let keys: Vec<PageKey> = self.pinned.iter().chain(self.dirty.iter().flatten()).copied().collect();
        keys.into_iter().for_each(|key| self.expose(key));
    }

    /// Changes an entry of a cached page, which becomes dirty. Returns the old entry.
    pub fn set(&mut self, key: PageKey, index: usize, entry: MapEntry, birth: u64) -> MapEntry {
        let cached = self.pages.get_mut(&key).expect("a page is cached before it is changed");
        let old = Rc::make_mut(&mut cached.page).set(index, entry, birth);
        if let Some(recount) = &mut self.recount {
            recount.on_change(key, index, old, entry);
        }
        self.bases.forget(key);
        self.mark_dirty(key);
        old
    }

    /// Sets the position of a layer's root page. Returns the old entry.
    pub fn set_root(&mut self, layer: LayerId, entry: MapEntry) -> MapEntry {
        let old = std::mem::replace(&mut self.layer_mut(layer).root, entry);
        if let Some(recount) = &mut self.recount {
            recount.on_place_change(layer, 0, old, entry);
        }
        old
    }

    /// Whether some count has turned out to be wrong.
    pub fn doubts(&self) -> bool {
        self.doubted || self.references.doubted
    }

    /// Takes the dirty pages of a level to write them, with their present content, whatever happens to them later.
    pub fn begin_flush(&mut self, level: u8) -> Vec<(PageKey, Rc<Page>)> {
        let keys = std::mem::take(&mut self.dirty[usize::from(level)]);
        if level == 1 {
            self.flushing = std::mem::take(&mut self.exposed);
            self.expose_again();
        }
        let flush = |key: PageKey| {
            let cached = self.pages.get_mut(&key).expect("dirty pages are cached");
            cached.flushing = true;
            (key, cached.page.clone())
        };
        self.pages_flushing += keys.len();
        keys.into_iter().map(flush).collect()
    }

    /// A page taken by [`Map::begin_flush`] is written (its parent says where), or writing it failed.
    pub fn end_flush(&mut self, key: PageKey, written: bool) {
        let cached = self.pages.get_mut(&key).expect("flushing pages are cached");
        cached.flushing = false;
        self.pages_flushing -= 1;
        if !written {
            self.mark_dirty(key);
        } else if cached.page.is_empty()
            && cached.pins == 0
            && !self.dirty[usize::from(key.level)].contains(&key)
        {
            self.remove(key);
        }
    }

    /// A checkpoint is written, or failed.
    pub fn end_checkpoint(&mut self) {
        self.flushing = Exposure::default();
        self.expose_again();
    }

    /// Marks a page dirty without changing it, so that the next checkpoint writes it anew.
    pub fn touch_dirty(&mut self, key: PageKey) {
        assert!(self.pages.contains_key(&key));
        self.mark_dirty(key);
    }

    pub fn dirty_pages(&self) -> usize {
        self.dirty.iter().map(BTreeSet::len).sum()
    }

    /// Whether a checkpoint is being written.
    pub fn is_flushing(&self) -> bool {
        self.flushing.len() > 0 || self.pages_flushing > 0
    }

    /// Maximum number of pages that checkpoints have to write: the running one and the next.
    pub fn pages_to_write(&self) -> usize {
        self.flushing.len() + self.exposed.len()
    }

    /// Maximum number of pages that the next checkpoint has to write.
    pub fn exposed_pages(&self) -> usize {
        self.exposed.len()
    }

    pub fn cached_pages(&self) -> usize {
        self.pages.len()
    }

    pub fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }

    pub fn budget_pages(&self) -> usize {
        self.budget_pages
    }

    /// Removes a layer that has been emptied, when a checkpoint has recorded this.
    pub fn forget_layer(&mut self, id: LayerId) {
        let going: Vec<PageKey> = self.of_layer(id, 0..=u8::MAX).collect();
        going.into_iter().for_each(|key| self.remove(key));
        for level in &mut self.dirty {
            level.retain(|key| key.layer != id);
        }
        self.bases.forget_layer(id);
        self.upkeep.remove(&id);
        self.layers.remove(&id);
    }

    /// Whether no page of a layer is dirty, being written, or pinned.
    pub fn is_unused(&self, id: LayerId) -> bool {
        let busy = |key: PageKey| {
            let cached = &self.pages[&key];
            cached.pins > 0 || cached.flushing || self.dirty[usize::from(key.level)].contains(&key)
        };
        !self.of_layer(id, 0..=u8::MAX).any(busy)
    }

    /// The cached pages of a layer at one level, in order.
    pub fn cached_of(&self, layer: LayerId, level: u8) -> Vec<PageKey> {
        self.of_layer(layer, level..=level).collect()
    }

    /// Sets the memory of the map from now on; dirty pages are evicted only after the next checkpoint has written them.
    pub fn set_budget(&mut self, budget_bytes: usize) {
        let (budget_pages, bases) = split(budget_bytes);
        (self.budget_bytes, self.budget_pages) = (budget_bytes, budget_pages);
        self.bases.set_max(bases);
        // two rounds: recently used pages are skipped once
        for _ in 0..2 * self.ring.places().div_ceil(TURNS_MAX) {
            self.evict();
        }
        self.ring.refill(self.pages.iter_mut().map(|(key, cached)| (*key, &mut cached.place)));
    }

    /// Keeps the cache within its budget, as far as clean pages allow.
    fn evict(&mut self) {
        // pages that cannot be evicted must not push out those that readers need at once
        let kept = self.pages_to_write() + self.pinned.len();
        let target = self.budget_pages.max(kept + CLEAN_MIN);
        for _ in 0..TURNS_MAX.min(self.ring.places()) {
            if self.pages.len() <= target {
                return;
            }
            let Some(key) = self.ring.turn() else { continue };
            // pages that a checkpoint changes stay, too: so it has nothing to read that could be missing
            let is_needed = self.exposed.contains(&key)
                || self.flushing.contains(&key)
                || self.dirty[usize::from(key.level)].contains(&key);
            let cached = self.pages.get_mut(&key).expect("the ring has what is cached");
            if is_needed || cached.pins > 0 || cached.flushing || std::mem::take(&mut cached.used) {
                continue;
            }
            self.remove(key);
        }
    }
}

/// The leaf page of a block and the entry in it.
pub(crate) fn leaf(layer: LayerId, block: u64) -> (PageKey, usize) {
    (PageKey::of_block(layer, block), (block % PAGE_ENTRIES as u64) as usize)
}

/// The number of blocks from `block` on that are in the same leaf page, at most `blocks`.
pub(crate) fn within_leaf(block: u64, blocks: u64) -> u64 {
    blocks.min(PAGE_ENTRIES as u64 - block % PAGE_ENTRIES as u64)
}

#[cfg(test)]
mod tests;
