//! Reports to hosts which blocks are mapped, in bounded steps, however large the volume is.
//!
//! Ranges without any map entry are skipped as a whole: this takes one map page for each level, not one for each MiB.
//! Mapped blocks are reported by leaf page, with a limited number of pages in a request. Other tasks run between two
//! leaf pages.

use base::LayerId;

use crate::error::LaneError;
use crate::lane::Lane;
use crate::map::pages::SegmentPins;
use crate::map::tree::{Silence, within_leaf};
use crate::requests::request::{LaneOutput, LaneResult};

/// Leaf pages, and stretches without one, that a request looks at.
const STEPS_MAX: usize = 64;
/// Walks down the layers that may be overtaken by a merge, before it is done in one step.
const TRIES: usize = 2;

impl Lane {
    /// Whether `block` is mapped, and how many from it on are alike, at most `blocks`. Where that takes too long to find out, a
    /// part of it; never nothing.
    pub(crate) async fn map_status(&self, layer: LayerId, block: u64, blocks: u64) -> LaneResult {
        let end = block + blocks;
        let (mapped, mut at) = self.map_status_step(layer, block, end).await?;
        for _ in 1..STEPS_MAX {
            if at >= end {
                break;
            }
            self.io.next_turn().await;
            match self.map_status_step(layer, at, end).await? {
                (alike, until) if alike == mapped => at = until,
                _ => break,
            }
        }
        Ok(LaneOutput::MapStatus { mapped, blocks: at - block })
    }

    /// The same for as far as one look goes: whether the block is mapped, and where what is alike ends.
    async fn map_status_step(&self, layer: LayerId, block: u64, end: u64) -> Result<(bool, u64), LaneError> {
        if let Some(until) = self.silent_until(layer, block).await? {
            return Ok((false, until.min(end)));
        }
        let mut pins = SegmentPins::new(self);
        let blocks = within_leaf(block, end - block);
        let entries = self.resolve(layer, block, blocks, &mut pins).await?;
        let mapped = entries[0].position.is_mapped();
        let alike = entries.iter().take_while(|entry| entry.position.is_mapped() == mapped).count();
        Ok((mapped, block + alike as u64))
    }

    /// Before which block neither a layer nor one below it says anything, from `block` on; `None` where one does of that.
    async fn silent_until(&self, name: LayerId, block: u64) -> Result<Option<u64>, LaneError> {
        for _ in 0..TRIES {
            let watch = self.map.borrow_mut().bases.watch(None);
            let found = self.look_for_silence(name, block, false).await;
            if !watch.is_disturbed() {
                return found;
            }
        }
        self.look_for_silence(name, block, true).await
    }

    /// The same where nothing is merged meanwhile, which may take pages from one layer to another; `at_once`: in one step, at last.
    async fn look_for_silence(
        &self,
        name: LayerId,
        block: u64,
        at_once: bool,
    ) -> Result<Option<u64>, LaneError> {
        'from_the_top: loop {
            let mut until = u64::MAX;
            let mut next = Some(self.map.borrow().named(name));
            while let Some(layer) = next {
                if !at_once {
                    self.give_way().await;
                }
                let silence = {
                    let mut map = self.map.borrow_mut();
                    next = map.layers.get(&layer).ok_or(LaneError::NoSuchLayer)?.parent;
                    map.silent_until(layer, block)
                };
                match silence {
                    Silence::Speaks => return Ok(None),
                    Silence::Until(here) => until = until.min(here),
                    Silence::Load(key, entry) => {
                        self.load_page(key, entry).await?;
                        continue 'from_the_top;
                    }
                }
            }
            return Ok(Some(until));
        }
    }
}
