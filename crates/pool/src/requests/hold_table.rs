//! Which blocks of a lane are held, and who holds them.

use base::LayerId;

/// Identifies a hold of one lane until it is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldId(u64);

/// Blocks that only their holder may change.
struct Hold {
    id: HoldId,
    layer: LayerId,
    block: u64,
    blocks: u64,
}

impl Hold {
    fn overlaps(&self, layer: LayerId, block: u64, blocks: u64) -> bool {
        self.layer == layer && self.block < block + blocks && block < self.block + self.blocks
    }
}

/// The holds of a lane.
#[derive(Default)]
pub(crate) struct Holds {
    held: Vec<Hold>,
    next: u64,
}

impl Holds {
    /// Whether a holder other than `by` holds one of the blocks.
    pub(crate) fn keep_out(&self, layer: LayerId, block: u64, blocks: u64, by: Option<HoldId>) -> bool {
        self.held.iter().any(|hold| Some(hold.id) != by && hold.overlaps(layer, block, blocks))
    }

    pub(crate) fn add(&mut self, layer: LayerId, block: u64, blocks: u64) -> HoldId {
        let id = HoldId(self.next);
        self.next += 1;
        self.held.push(Hold { id, layer, block, blocks });
        id
    }

    pub(crate) fn get(&self, id: HoldId) -> (LayerId, u64, u64) {
        let hold = self.held.iter().find(|hold| hold.id == id).expect("a hold is released once");
        (hold.layer, hold.block, hold.blocks)
    }

    pub(crate) fn remove(&mut self, id: HoldId) {
        self.held.retain(|hold| hold.id != id);
    }
}
