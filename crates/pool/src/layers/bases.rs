//! Bases: what a layer and all layers below it say of a page's blocks, worked out once. So a volume on a hundred
//! snapshots is read as fast as a volume without snapshots.
//!
//! The contents of a layer below another one do not change. Only the positions of its blocks change, because cleaning
//! moves blocks, and merging moves entries from layer to layer. A position names the same bytes as long as its segment
//! exists, and segment ids are not used twice while a lane is open. So an entry whose segment is gone is stale, and
//! every other entry is good, even if its block has been moved meanwhile.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use base::{HashMap, LayerId};

use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey};
use crate::map::ring::Ring;

/// The entries that the layers give for one leaf page's blocks.
pub(crate) type Base = [MapEntry; PAGE_ENTRIES];

/// The number of bases kept regardless of the budget: those that running reads need at once.
const BASES_MIN: usize = 64;

struct Kept {
    base: Rc<Base>,
    /// Used since the clock's hand last passed.
    used: bool,
    place: usize,
}

/// The kept bases; the least used are evicted beyond the budget.
pub(crate) struct Bases {
    kept: HashMap<PageKey, Kept>,
    ring: Ring<PageKey>,
    max: usize,
    watches: Vec<(Option<u64>, Weak<Cell<bool>>)>,
}

/// Tells whether entries were merged at a page since the watch began.
pub(crate) struct Watch(Rc<Cell<bool>>);

impl Watch {
    pub fn is_disturbed(&self) -> bool {
        self.0.get()
    }
}

impl Bases {
    pub fn new(max: usize) -> Bases {
        Bases { kept: HashMap::default(), ring: Ring::new(), max: max.max(BASES_MIN), watches: Vec::new() }
    }

    pub fn set_max(&mut self, max: usize) {
        self.max = max.max(BASES_MIN);
        self.evict();
        self.ring.refill(self.kept.iter_mut().map(|(key, kept)| (*key, &mut kept.place)));
    }

    pub fn find(&mut self, key: PageKey) -> Option<Rc<Base>> {
        let kept = self.kept.get_mut(&key)?;
        kept.used = true;
        Some(kept.base.clone())
    }

    pub fn insert(&mut self, key: PageKey, base: Base) {
        self.remove(key);
        let place = self.ring.insert(key);
        self.kept.insert(key, Kept { base: Rc::new(base), used: true, place });
        self.evict();
    }

    fn remove(&mut self, key: PageKey) {
        if let Some(kept) = self.kept.remove(&key) {
            self.ring.remove(kept.place);
        }
    }

    fn evict(&mut self) {
        while self.kept.len() > self.max {
            let Some(key) = self.ring.turn() else { continue };
            if !std::mem::take(&mut self.kept.get_mut(&key).expect("the ring has what is kept").used) {
                self.remove(key);
            }
        }
    }

    /// A page of this layer has changed.
    pub fn forget(&mut self, key: PageKey) {
        if key.level == 1 && !self.kept.is_empty() {
            self.remove(key);
        }
    }

    pub fn forget_layer(&mut self, layer: LayerId) {
        let going: Vec<PageKey> = self.kept.keys().filter(|key| key.layer == layer).copied().collect();
        going.into_iter().for_each(|key| self.remove(key));
    }

    /// Watches the pages of this index, of all layers, until the result is dropped; `None`: all pages.
    pub fn watch(&mut self, index: Option<u64>) -> Watch {
        self.watches.retain(|(_, watch)| watch.strong_count() > 0);
        let watch = Rc::new(Cell::new(false));
        self.watches.push((index, Rc::downgrade(&watch)));
        Watch(watch)
    }

    /// Entries have moved from one layer to another, at the pages of this index; `None`: at any page.
    pub fn disturb(&mut self, index: Option<u64>) {
        for (watched, watch) in &self.watches {
            if index.is_none_or(|index| watched.is_none_or(|watched| watched == index))
                && let Some(watch) = watch.upgrade()
            {
                watch.set(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u64) -> PageKey {
        PageKey { layer: LayerId(3), level: 1, index }
    }

    #[test]
    fn the_least_used_go_first() {
        let mut bases = Bases::new(0);
        for index in 0..BASES_MIN as u64 {
            bases.insert(key(index), [MapEntry::ABSENT; PAGE_ENTRIES]);
        }
        // the hand goes round once, and the first base is evicted
        bases.insert(key(1000), [MapEntry::ZERO; PAGE_ENTRIES]);
        assert_eq!(bases.kept.len(), BASES_MIN);
        let stays = *bases.kept.keys().next().expect("one that stays");
        for index in 2000..2040 {
            assert!(bases.find(stays).is_some(), "used again and again");
            bases.insert(key(index), [MapEntry::ZERO; PAGE_ENTRIES]);
            assert_eq!(bases.kept.len(), BASES_MIN);
        }
        bases.forget(stays);
        assert!(bases.find(stays).is_none());
        bases.insert(stays, [MapEntry::ZERO; PAGE_ENTRIES]);
        bases.forget_layer(LayerId(3));
        assert!(bases.kept.is_empty());
    }

    #[test]
    fn watches_see_merges_of_their_page() {
        let mut bases = Bases::new(0);
        let (one, two, any) = (bases.watch(Some(1)), bases.watch(Some(2)), bases.watch(None));
        bases.disturb(Some(2));
        assert!(!one.is_disturbed() && two.is_disturbed() && any.is_disturbed());
        bases.disturb(None);
        assert!(one.is_disturbed());
    }
}
