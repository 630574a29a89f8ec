//! Counts anew what the map names. A lane keeps counts of live blocks, of mapped blocks and of references as the map
//! changes, and checkpoints write these counts. If a count turns out to be wrong, the counts are *doubted*: no segment
//! is freed by its count until all counts have been compared with the map. Every scrub compares them, too.
//!
//! ```text
//!   layer 1 | leaf 0 1 2 3 ... | layer 2 | leaf 0 1 ▼ ...
//!            `--- counted; a change here is -------'     a change behind the cursor is counted when the cursor
//!                 added at once                          gets there
//! ```
//!
//! One step of the walk looks at one leaf page, and at the pages above it that begin with this leaf page. The map may
//! change between two steps. The walk skips a page that cannot be read. After that, counts are only raised, never
//! lowered.

use std::rc::Rc;

use base::{LayerId, Nanos};

use crate::error::LaneError;
use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey};
use crate::lane::Lane;
use crate::map::recounted::{Recount, leaves};
use crate::map::tree::{Found, Map, Silence};

const PAGE: u64 = PAGE_ENTRIES as u64;
/// Pages in one piece of the work; between pieces, hosts get their share of time.
const PIECE_PAGES: usize = 256;
/// A page that cannot be read may make counts doubted again soon after a recount. The next recount then waits this
/// long.
const RECOUNT_AGAIN: Nanos = Nanos::from_secs(60);

/// The result of a step of the walk, or the page that it needs.
enum Step {
    Load(PageKey, MapEntry),
    Passed,
    End,
}

impl Map {
    /// Advances to the next leaf page, or past pages that do not exist.
    fn step_recount(&mut self, recount: &mut Recount) -> Step {
        let first = u32::try_from(recount.cursor.0).map(LayerId);
        let next = first.ok().and_then(|first| self.layers.range(first..).next());
        let Some((&id, layer)) = next else {
            // entries made before the counts are compared are counted as they are made
            recount.cursor = (u64::MAX, u64::MAX);
            return Step::End;
        };
        let height = layer.height;
        if u64::from(id.0) > recount.cursor.0 {
            recount.cursor = (u64::from(id.0), 0);
        }
        let leaf = recount.cursor.1;
        if leaf >= leaves(height) {
            recount.cursor = (u64::from(id.0) + 1, 0);
            return Step::Passed;
        }
        let key = PageKey { layer: id, level: 1, index: leaf };
        if let Found::Load(key, entry) = self.find_for_change(key) {
            return Step::Load(key, entry);
        }
        self.count_places(recount, key);
        let mut next = leaf + 1;
        if let Some(page) = self.cached(key).cloned() {
            (0..PAGE_ENTRIES).for_each(|slot| recount.count_block(id, page.entry(slot), 1));
        } else if let Silence::Until(block) = self.silent_until(id, leaf * PAGE) {
            next = next.max(block / PAGE);
        }
        recount.cursor.1 = next;
        Step::Passed
    }

    /// Counts the positions of a page, and of pages above it that the walk reaches here for the first time.
    fn count_places(&self, recount: &mut Recount, mut key: PageKey) {
        let layer = self.layer(key.layer);
        while key.index * leaves(key.level) == recount.cursor.1 {
            if key.level == layer.height {
                return recount.count_place(layer.root, 1);
            }
            let entry = self.cached(key.parent()).map(|page| page.entry(key.entry_in_parent()));
            recount.count_place(entry.unwrap_or(MapEntry::ABSENT), 1);
            key = key.parent();
        }
    }

    /// Skips a page that cannot be read, and all pages below it.
    fn pass_unreadable(&mut self, key: PageKey) {
        let Some(mut recount) = self.recount.take() else { return };
        // the layer may have been removed meanwhile
        if self.layers.contains_key(&key.layer) && recount.cursor.0 == u64::from(key.layer.0) {
            self.count_places(&mut recount, key);
            recount.is_partial = true;
            recount.cursor.1 = recount.cursor.1.max((key.index + 1) * leaves(key.level));
        }
        self.recount = Some(recount);
    }

    /// Corrects the counts of layers' mapped blocks.
    fn correct_mapped(&mut self, recount: &Recount) -> u64 {
        let mut corrected = 0;
        for (&id, layer) in &mut self.layers {
            if let Some(mapped) = recount.mapped(id, layer.mapped) {
                (layer.mapped, corrected) = (mapped, corrected + 1);
            }
        }
        self.mapped = self.layers.values().map(|layer| layer.mapped).sum();
        self.doubted = false;
        let references = recount.references(self.references.all());
        corrected += u64::from(references != *self.references.all());
        self.references.correct(references);
        corrected
    }
}

impl Lane {
    /// Compares all counts with the map, and corrects wrong ones. Only one runs at a time.
    pub(crate) async fn recount(&self) -> Result<(), LaneError> {
        if self.map.borrow().recount.is_some() {
            return Ok(());
        }
        self.scrubber.note_recount(self.io.now());
        self.map.borrow_mut().recount = Some(Recount::default());
        let walked = self.walk_for_recount().await;
        // a checkpoint uses the counts of its beginning
        let one = self.checkpointer.turn().await;
        let recount = self.map.borrow_mut().recount.take();
        walked?;
        let Some(recount) = recount else { return Ok(()) };
        let corrected = self.segments.borrow_mut().correct_live(&recount)
            + self.map.borrow_mut().correct_mapped(&recount);
        drop(one);
        self.counters.borrow_mut().counts_corrected += corrected;
        if corrected > 0 {
            // blocks that counted as in use may be free, or the reverse
            self.relieve();
            self.want_repairs();
            self.want_checkpoint();
        }
        Ok(())
    }

    async fn walk_for_recount(&self) -> Result<(), LaneError> {
        loop {
            let pause = self.begin_repair();
            for _ in 0..PIECE_PAGES {
                if self.has_ended() {
                    return Err(LaneError::Unavailable);
                }
                self.give_way().await;
                let step = {
                    let mut map = self.map.borrow_mut();
                    let Some(mut recount) = map.recount.take() else { return Ok(()) };
                    let step = map.step_recount(&mut recount);
                    map.recount = Some(recount);
                    step
                };
                match step {
                    Step::End => return Ok(()),
                    Step::Passed => {}
                    Step::Load(key, entry) => match self.load_page(key, entry).await {
                        Err(LaneError::Unreadable { .. }) => self.map.borrow_mut().pass_unreadable(key),
                        result => result?,
                    },
                }
            }
            self.end_repair(pause).await;
        }
    }

    /// Starts a comparison of the counts with the map, if they are doubted.
    pub(crate) fn recount_if_doubted(self: &Rc<Self>) {
        let doubted = self.segments.borrow().doubted || self.map.borrow().doubts();
        let now = self.io.now();
        let lately = self.scrubber.last_recount().is_some_and(|then| now.0 < then.0 + RECOUNT_AGAIN.0);
        if doubted && !lately && self.map.borrow().recount.is_none() {
            let lane = self.clone();
            // a lane that has ended is handled elsewhere
            self.spawn(async move {
                let _ = lane.recount().await;
            });
        }
    }
}
