//! A reference: a map entry that names a block of another layer, possibly in another lane, instead of a position. See
//! `docs/design/0007-references.md`.

use base::LayerId;

/// Blocks of a leaf page, as `format/page.rs` checks: pages of layers are distributed over the lanes in turn.
pub(crate) const PAGE: u64 = 256;

/// A block of a layer. All lanes use the same names for layer and block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The layer's name.
    pub layer: LayerId,
    /// The block number over all lanes: see [`Reference::to`].
    pub block: u64,
}

impl Reference {
    /// A reference to a lane's block of this layer.
    pub fn to(layer: LayerId, lane: usize, lanes: usize, block: u64) -> Reference {
        let page = block / PAGE * lanes as u64 + lane as u64;
        Reference { layer, block: page * PAGE + block % PAGE }
    }

    /// The lane, and its block.
    pub fn place(self, lanes: usize) -> (usize, u64) {
        let (page, lanes) = (self.block / PAGE, lanes as u64);
        ((page % lanes) as usize, page / lanes * PAGE + self.block % PAGE)
    }

    pub(crate) fn plus(self, blocks: u64) -> Reference {
        Reference { block: self.block + blocks, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: LayerId = LayerId(9);

    #[test]
    fn a_reference_finds_its_lane_and_each_block_has_one_of_its_own() {
        for lanes in 1..5 {
            let mut seen = std::collections::BTreeSet::new();
            for lane in 0..lanes {
                for block in [0, 1, 255, 256, 700, 1 << 30] {
                    let reference = Reference::to(H, lane, lanes, block);
                    assert_eq!(reference.place(lanes), (lane, block));
                    assert!(seen.insert(reference.block));
                }
            }
        }
    }
}
