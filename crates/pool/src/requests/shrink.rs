//! Finds what a layer holds beyond a given block, and frees it, when a volume is made smaller.

use std::rc::Rc;

use base::LayerId;

use crate::error::LaneError;
use crate::format::page::PAGE_ENTRIES;
use crate::lane::Lane;
use crate::map::pages::SegmentPins;

const PAGE: u64 = PAGE_ENTRIES as u64;

impl Lane {
    /// Whether a read of the layer finds data from `block` on. Nobody writes there meanwhile.
    pub(crate) async fn is_mapped_beyond(&self, name: LayerId, block: u64) -> Result<bool, LaneError> {
        Ok(self.next_mapped(name, block).await?.is_some())
    }

    /// Unmaps everything that a read of the layer finds from `block` on. Nobody writes there meanwhile.
    pub(crate) async fn unmap_beyond(self: &Rc<Self>, name: LayerId, block: u64) -> Result<(), LaneError> {
        let mut at = block;
        while let Some(mapped) = self.next_mapped(name, at).await? {
            let end = (mapped / PAGE + 1) * PAGE;
            let layer = self.written_layer(name).await?;
            self.unmap_blocks(layer, mapped, end - mapped, true).await?;
            at = end;
        }
        Ok(())
    }

    /// The first block from `block` on that the layer or one below it has.
    async fn next_mapped(&self, name: LayerId, block: u64) -> Result<Option<u64>, LaneError> {
        loop {
            self.give_pages_places().await?;
            let watch = self.map.borrow_mut().bases.watch(None);
            let found = self.look_for_mapped(name, block).await;
            match found {
                // pages that moved from one layer to another may have been missed
                Ok(None) | Err(LaneError::NoSuchLayer) if watch.is_disturbed() => {}
                found => return found,
            }
        }
    }

    async fn look_for_mapped(&self, name: LayerId, block: u64) -> Result<Option<u64>, LaneError> {
        let mut at = block;
        loop {
            let mut next: Option<u64> = None;
            let mut below = Some(self.map.borrow().named(name));
            while let Some(layer) = below {
                let found = self.map.borrow().layers.get(&layer).map(|layer| layer.parent);
                below = found.ok_or(LaneError::NoSuchLayer)?;
                let leaf = self.next_leaf(layer, at / PAGE).await?;
                next = next.into_iter().chain(leaf).min();
            }
            let Some(leaf) = next else { return Ok(None) };
            at = at.max(leaf * PAGE);
            let end = (leaf + 1) * PAGE;
            let entries = self.resolve(name, at, end - at, &mut SegmentPins::new(self)).await?;
            if let Some(first) = entries.iter().position(|entry| entry.position.is_mapped()) {
                return Ok(Some(at + first as u64));
            }
            at = end;
        }
    }
}
