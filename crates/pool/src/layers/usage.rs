//! The space that layers use, and the space that dropping a layer would free.

use base::{HashMap, HashSet, LayerId};

use crate::error::LaneError;
use crate::format::page::{PAGE_ENTRIES, PageKey};
use crate::geometry::position::Position;
use crate::lane::Lane;

/// The counted space of a layer, without reading the map; in one lane or in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LayerSpace {
    /// Blocks written in this layer itself.
    pub own_blocks: u64,
    /// Blocks of the layers below it, including those that other layers hide.
    pub below_blocks: u64,
    /// Blocks that dropping the layer would free at least.
    pub alone_blocks: u64,
}

impl LayerSpace {
    /// The sum with another lane's.
    pub fn plus(self, other: LayerSpace) -> LayerSpace {
        LayerSpace {
            own_blocks: self.own_blocks + other.own_blocks,
            below_blocks: self.below_blocks + other.below_blocks,
            alone_blocks: self.alone_blocks + other.alone_blocks,
        }
    }
}

impl Lane {
    /// The layers of this lane that are in use, by name.
    pub fn layer_spaces(&self) -> Vec<(LayerId, LayerSpace)> {
        let map = self.map.borrow();
        // sums over a layer and all below it; each chain is walked down to a known sum, and back up
        let mut sums: HashMap<LayerId, u64> = HashMap::default();
        let mut sum = |top: Option<LayerId>| {
            let (mut path, mut next) = (Vec::new(), top);
            while let Some(id) = next.filter(|id| !sums.contains_key(id)) {
                path.push(id);
                next = map.layers.get(&id).and_then(|layer| layer.parent);
            }
            let mut blocks = next.map_or(0, |known| sums[&known]);
            for id in path.into_iter().rev() {
                blocks += map.layers.get(&id).map_or(0, |layer| layer.mapped);
                sums.insert(id, blocks);
            }
            blocks
        };
        let asked_for = self.layers();
        let space = |name: LayerId| {
            let layer = map.layer(map.named(name));
            let (mut alone_blocks, mut below) = (0, layer.parent);
            if layer.children == 0 {
                alone_blocks = layer.mapped;
                // layers that nobody else can see any more go with it
                while let Some(hidden) = below.and_then(|id| map.layers.get(&id)) {
                    if !hidden.dropping || hidden.children != 1 {
                        break;
                    }
                    (alone_blocks, below) = (alone_blocks + hidden.mapped, hidden.parent);
                }
            }
            (name, LayerSpace { own_blocks: layer.mapped, below_blocks: sum(layer.parent), alone_blocks })
        };
        asked_for.into_iter().map(space).collect()
    }

    /// Blocks that only these layers keep, given by name: blocks of the layers that have no other layer in use above
    /// them, including these layers themselves.
    pub fn blocks_kept_by(&self, only: &[LayerId]) -> u64 {
        let map = self.map.borrow();
        let mut seen: HashSet<LayerId> = HashSet::default();
        // counts a layer and those below it, down to layers that were counted before
        let mut blocks_down = |top: LayerId| {
            let (mut blocks, mut next) = (0, Some(map.named(top)));
            while let Some(id) = next.filter(|&id| seen.insert(id)) {
                let Some(layer) = map.layers.get(&id) else { break };
                (blocks, next) = (blocks + layer.mapped, layer.parent);
            }
            blocks
        };
        let (these, others): (Vec<_>, Vec<_>) =
            self.layers().into_iter().partition(|name| only.contains(name));
        for name in others {
            blocks_down(name);
        }
        these.into_iter().map(blocks_down).sum()
    }

    /// Blocks that dropping a layer would free. Exact as long as nothing is written meanwhile. Reads as much of the map
    /// as the smaller of two layers has.
    pub(crate) async fn freed_by(&self, layer: LayerId) -> Result<u64, LaneError> {
        let layer = self.map.borrow().named(layer);
        let found = self.map.borrow().layers.get(&layer).cloned().ok_or(LaneError::NoSuchLayer)?;
        match found.children {
            0 => Ok(found.mapped + self.freed_below(layer, found.parent).await?),
            1 => {
                let child = self.other_child(layer, None).ok_or(LaneError::NoSuchLayer)?;
                self.hidden_blocks(layer, child).await
            }
            _ => Ok(0),
        }
    }

    /// Blocks that go with the last layer above layers that nobody needs any more.
    async fn freed_below(&self, mut gone: LayerId, mut below: Option<LayerId>) -> Result<u64, LaneError> {
        let mut freed = 0;
        while let Some(layer) = below {
            let found = self.map.borrow().layers.get(&layer).cloned().ok_or(LaneError::NoSuchLayer)?;
            match found.children {
                _ if !found.dropping => break,
                1 => freed += found.mapped,
                2 => {
                    if let Some(child) = self.other_child(layer, Some(gone)) {
                        freed += self.hidden_blocks(layer, child).await?;
                    }
                    break;
                }
                _ => break,
            }
            (gone, below) = (layer, found.parent);
        }
        Ok(freed)
    }

    fn other_child(&self, below: LayerId, than: Option<LayerId>) -> Option<LayerId> {
        self.map.borrow().child_beside(below, than)
    }

    /// Blocks of a layer that the only one above it hides.
    async fn hidden_blocks(&self, below: LayerId, above: LayerId) -> Result<u64, LaneError> {
        // mapped blocks only
        let mapped = |layer| self.map.borrow().layers.get(&layer).map_or(0, |layer| layer.mapped);
        if mapped(below) == 0 {
            return Ok(0);
        }
        self.give_pages_places().await?;
        let walked = if mapped(above) < mapped(below) { above } else { below };
        let (mut hidden, mut next) = (0, 0);
        while let Some(index) = self.next_leaf(walked, next).await? {
            next = index + 1;
            let page = |layer| PageKey { layer, level: 1, index };
            loop {
                let both = self.ensure_page(page(below)).await? && self.ensure_page(page(above)).await?;
                let map = self.map.borrow();
                match (map.cached(page(below)), map.cached(page(above))) {
                    (Some(below), Some(above)) => {
                        let is_hidden = |&slot: &usize| {
                            below.entry(slot).position.is_stored()
                                && above.entry(slot).position != Position::ABSENT
                        };
                        hidden += (0..PAGE_ENTRIES).filter(is_hidden).count() as u64;
                        break;
                    }
                    // one page was evicted while the other was read
                    _ if both => {}
                    _ => break,
                }
            }
        }
        Ok(hidden)
    }
}
