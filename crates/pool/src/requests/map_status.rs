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

/// Maximum number of leaf pages, and of stretches without one, that a request looks at.
const STEPS_MAX: usize = 64;
/// Walks down the layers that a merge may invalidate, before the walk is done in one step.
const TRIES: usize = 2;

impl Lane {
    /// Whether `block` is mapped, and how many blocks from it on are the same, at most `blocks`. If the search takes
    /// too long, the result covers only a part, but at least one block.
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

    /// One step of this: whether the block is mapped, and where the same state ends.
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

    /// The end of the range from `block` on for which neither the layer nor one below it has entries; `None` if one of
    /// them has an entry for `block`.
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

    /// The same, valid only if no merge moves pages meanwhile; `at_once`: in one step, as the last resort.
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
