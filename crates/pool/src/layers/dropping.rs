//! Empties dropped layers in the background. Beside cleaning, this is the other way to free space.

use std::rc::Rc;

use base::LayerId;

use crate::error::LaneError;
use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey, stored};
use crate::lane::Lane;

impl Lane {
    pub(crate) fn dropping_layer(&self) -> Option<LayerId> {
        let map = self.map.borrow();
        let emptied = |id: &LayerId| map.layer(*id).is_empty() && map.is_unused(*id);
        let due = |id: &LayerId| map.layer(*id).is_to_be_emptied() && !map.layer(*id).stuck;
        map.upkeep.iter().find(|id| due(id) && !emptied(id)).copied()
    }

    /// Clears all pages of a layer that is being dropped, depth first. Checkpoints are written in between if the budget
    /// requires them.
    pub(crate) async fn empty_layer(self: &Rc<Self>, layer: LayerId) -> Result<bool, LaneError> {
        let before = self.map.borrow().layer(layer).clone();
        let top = before.height;
        let mut todo = vec![PageKey { layer, level: top, index: 0 }];
        while let Some(key) = todo.pop() {
            if self.has_ended() {
                return Err(LaneError::Unavailable);
            }
            self.give_way().await;
            if self.wants_flush() {
                self.write_checkpoint().await?;
            }
            if self.ensure_for_change(key).await? {
                self.expand(key, &mut todo);
            }
        }
        let cached = self.map.borrow().cached_of(layer, 1);
        for key in cached {
            self.give_way().await;
            if self.ensure_for_change(key).await? {
                self.clear_page(key);
            }
        }
        self.write_checkpoint().await?;
        self.map.borrow_mut().note_emptied(layer, &before);
        // entries that were on their way when the layer was dropped may have been applied since
        self.io.next_turn().await;
        Ok(true)
    }

    fn expand(&self, key: PageKey, todo: &mut Vec<PageKey>) {
        if key.level == 1 {
            return self.clear_page(key);
        }
        let map = self.map.borrow();
        let Some(page) = map.cached(key) else { return };
        let child = |index: usize| PageKey {
            layer: key.layer,
            level: key.level - 1,
            index: key.index * PAGE_ENTRIES as u64 + index as u64,
        };
        todo.extend((0..PAGE_ENTRIES).filter(|&index| stored(page.entry(index)).is_some()).map(child));
    }

    fn clear_page(&self, key: PageKey) {
        let mut map = self.map.borrow_mut();
        let sequence = self.log.borrow().committed;
        for index in 0..PAGE_ENTRIES {
            let Some(page) = map.cached(key) else { return };
            if page.entry(index) != MapEntry::ABSENT {
                self.change_entry(&mut map, key, index, MapEntry::ABSENT, sequence);
            }
        }
    }
}
