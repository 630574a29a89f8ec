//! The layers that transfers of the control plane read and write, as this shard reaches them.
//!
//! What always holds: a transfer has a way to its layer as long as the replica names it and its pool is open. A request
//! that has begun keeps the way, and a layer is dropped only after its ways are gone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use api::TransferId;
use base::{BLOCK_BYTES, Epoch};
use block::Geometry;
use pool::PoolVolume;

use crate::replica::{Replica, Transfer};

/// See the module's words.
#[derive(Default)]
pub(crate) struct Transfers {
    by_id: RefCell<BTreeMap<TransferId, Way>>,
}

struct Way {
    transfer: Transfer,
    /// The pool's lanes and epoch with which `volume` was made; `None` if the pool is not open.
    place: Option<(u16, Epoch)>,
    volume: Option<Rc<PoolVolume>>,
}

impl Transfer {
    pub(crate) fn geometry(&self) -> Geometry {
        Geometry {
            block_bytes: BLOCK_BYTES as u32,
            blocks: self.size_bytes / BLOCK_BYTES as u64,
            thin: true,
            // a flush precedes the change of the catalog that names what was written
            write_back: true,
        }
    }
}

impl Transfers {
    /// Applies the new state of the array. `open` makes the way to a layer in a pool of so many lanes.
    pub(crate) fn follow(&self, replica: &Replica, open: impl Fn(&Transfer, u16) -> Option<Rc<PoolVolume>>) {
        let mut by_id = self.by_id.borrow_mut();
        let mut old = std::mem::take(&mut *by_id);
        for transfer in &replica.transfers {
            let place = replica.pools.iter().find(|(pool, ..)| *pool == transfer.pool);
            let place = place.map(|&(_, lanes, epoch)| (lanes, epoch));
            let way = match old.remove(&transfer.id) {
                Some(way) if way.place == place => way,
                _ => {
                    let volume = place.and_then(|(lanes, _)| open(transfer, lanes));
                    Way { transfer: transfer.clone(), place, volume }
                }
            };
            by_id.insert(transfer.id, way);
        }
    }

    pub(crate) fn get(&self, id: TransferId) -> Option<(Transfer, Option<Rc<PoolVolume>>)> {
        self.by_id.borrow().get(&id).map(|way| (way.transfer.clone(), way.volume.clone()))
    }
}
