//! The requests to a lane. Requests and answers can be sent from shard to shard.

use std::rc::Rc;

use base::LayerId;
use base::limits::VOLUME_GROWTH_MAX;
use block::Payload;

use crate::drives::full::NO_SPACE_RETRY;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::geometry::reference::Reference;
use crate::lane::Lane;
use crate::layers::names::FORWARDS;
use crate::layers::references::{Elsewhere, OwnedRun, ReferencedContent};
use crate::log::queue::{Pending, Ticket};
use crate::map::tree::height_for;
use crate::reading::read::Read;
use crate::requests::hold_table::HoldId;

/// A request. Blocks are the lane's own, of 4 KiB; ranges lie within the layer.
#[derive(Clone, Debug)]
pub enum LaneRequest {
    Read {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// `data` is a whole number of blocks. `durable`: it survives power loss when answered.
    Write {
        layer: LayerId,
        block: u64,
        data: Payload,
        durable: bool,
    },
    /// Part of one block. `known` is the content of blocks that are elsewhere, as far as the caller has found that it
    /// is needed. If more is needed: [`LaneError::Elsewhere`].
    WritePart {
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        data: Payload,
        known: Vec<ReferencedContent>,
        durable: bool,
    },
    Unmap {
        layer: LayerId,
        block: u64,
        blocks: u64,
        durable: bool,
    },
    /// At most 256 blocks. `known` as for `WritePart`.
    CompareAndWrite {
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        /// Boxed because it is rare, and every request is as large as this one.
        expected: Box<Payload>,
        data: Payload,
        known: Vec<ReferencedContent>,
        durable: bool,
    },
    /// Prevents others from changing blocks until the release, which must follow. → [`LaneOutput::Held`]
    Hold {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// Writes over the held blocks, if there is data, and releases them.
    Release {
        hold: HoldId,
        data: Option<Payload>,
        durable: bool,
    },
    /// Makes everything answered before survive power loss.
    Flush,
    MapStatus {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// Creates a layer for at least this many blocks; no effect if it exists. Nobody writes to `parent` from then on.
    CreateLayer {
        layer: LayerId,
        parent: Option<LayerId>,
        blocks: u64,
    },
    /// Drops a layer. It is gone when this is answered. In the background, all blocks are freed that no layer above it
    /// needs.
    DropLayer {
        layer: LayerId,
    },
    /// How many blocks dropping the layer would free.
    FreedBy {
        layer: LayerId,
    },
    /// Whether anything is mapped from a block on, while nobody writes there; `unmap`: it is unmapped. →
    /// [`LaneOutput::Beyond`]
    Beyond {
        layer: LayerId,
        block: u64,
        unmap: bool,
    },
    /// Makes blocks refer to the same number of blocks of the reference's layer, which is frozen; durable when
    /// answered. The caller keeps that layer as long as something refers to it.
    Refer {
        layer: LayerId,
        block: u64,
        blocks: u64,
        to: Reference,
    },
    /// Reads blocks of a layer that references name: [`LaneError::NoSuchLayer`] if nobody keeps it any more.
    ReadReferred {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// A layer to which these blocks refer is gone: their bases are to be built anew.
    RebuildBases {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// Which layer decides the content of blocks: `below`, which is under the layer, or the layer directly below it if
    /// `below` is not given.
    Owners {
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
    },
    /// How many entries refer to each layer. A layer that is not listed has none, and a power loss brings none back.
    Referred,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub enum LaneOutput {
    None,
    Data(Payload),
    /// Data, with zeros for blocks that are elsewhere.
    Parts(Payload, Vec<Elsewhere>),
    /// The content of the held blocks, as in `Parts`.
    Held(HoldId, Payload, Vec<Elsewhere>),
    /// The first `blocks` of the range are all mapped or all not.
    MapStatus {
        mapped: bool,
        blocks: u64,
    },
    Freed {
        blocks: u64,
    },
    /// Whether something is mapped there.
    Beyond(bool),
    /// The layer in question, if it can be referred to, and the parts of the range in order.
    Owners(Option<LayerId>, Vec<OwnedRun>),
    /// Layers by their names.
    Referred(Vec<(LayerId, u64)>),
}

pub type LaneResult = Result<LaneOutput, LaneError>;

fn read(Read { pieces, elsewhere }: Read) -> LaneOutput {
    if elsewhere.is_empty() { LaneOutput::Data(pieces) } else { LaneOutput::Parts(pieces, elsewhere) }
}

impl Lane {
    /// Carries out a request.
    pub async fn execute(self: &Rc<Self>, request: LaneRequest) -> LaneResult {
        if self.life.is_closed() {
            return Err(LaneError::Unavailable);
        }
        let _running = self.enter();
        match request {
            LaneRequest::Read { layer, block, blocks } => {
                return self.read_blocks(layer, block, blocks).await.map(read);
            }
            LaneRequest::Write { layer, block, data, durable } => {
                let layer = self.written_layer(layer).await?;
                self.write_blocks(layer, block, data, durable).await?
            }
            LaneRequest::WritePart { layer, block, offset_bytes, data, known, durable } => {
                let layer = self.written_layer(layer).await?;
                self.write_part(layer, block, offset_bytes, &data, &known, durable).await?;
            }
            LaneRequest::Unmap { layer, block, blocks, durable } => {
                let layer = self.written_layer(layer).await?;
                self.unmap_blocks(layer, block, blocks, durable).await?;
            }
            LaneRequest::CompareAndWrite { layer, block, offset_bytes, expected, data, known, durable } => {
                let layer = self.written_layer(layer).await?;
                let change = (&*expected, &data);
                self.compare_and_write(layer, block, offset_bytes, change, &known, durable).await?;
            }
            LaneRequest::Hold { layer, block, blocks } => {
                let layer = self.written_layer(layer).await?;
                let (hold, Read { pieces, elsewhere }) = self.hold(layer, block, blocks).await?;
                return Ok(LaneOutput::Held(hold, pieces, elsewhere));
            }
            LaneRequest::Release { hold, data, durable } => self.release(hold, data, durable).await?,
            LaneRequest::Flush => self.flush().await?,
            LaneRequest::MapStatus { layer, block, blocks } => {
                return self.map_status(layer, block, blocks).await;
            }
            LaneRequest::CreateLayer { layer, parent, blocks } => {
                self.create_layer(layer, parent, blocks).await?
            }
            LaneRequest::DropLayer { layer } => self.drop_layer(layer).await?,
            LaneRequest::FreedBy { layer } => {
                return self.freed_by(layer).await.map(|blocks| LaneOutput::Freed { blocks });
            }
            LaneRequest::Beyond { layer, block, unmap: true } => {
                self.unmap_beyond(layer, block).await?;
                return Ok(LaneOutput::Beyond(false));
            }
            LaneRequest::Beyond { layer, block, unmap: false } => {
                return self.is_mapped_beyond(layer, block).await.map(LaneOutput::Beyond);
            }
            LaneRequest::Refer { layer, block, blocks, to } => {
                let layer = self.written_layer(layer).await?;
                self.refer_blocks(layer, block, blocks, to).await?;
            }
            LaneRequest::ReadReferred { layer, block, blocks } => {
                return self.read_referred(layer, block, blocks).await.map(read);
            }
            LaneRequest::RebuildBases { layer, block, blocks } => self.rebuild_bases(layer, block, blocks),
            LaneRequest::Owners { layer, below, block, blocks } => {
                let (below, runs) = self.owners(layer, below, block, blocks).await?;
                return Ok(LaneOutput::Owners(below, runs));
            }
            LaneRequest::Referred => return self.referred().await.map(LaneOutput::Referred),
        }
        Ok(LaneOutput::None)
    }

    /// The layer that a request names. A layer that had another one above it for a moment may be merging into another,
    /// and cannot finish if a page of the map is lost.
    pub(crate) async fn written_layer(&self, name: LayerId) -> Result<LayerId, LaneError> {
        loop {
            {
                let map = self.map.borrow();
                let layer = map.named(name);
                match map.layers.get(&layer).filter(|found| found.merging.is_some()) {
                    None => return Ok(layer),
                    Some(found) if found.stuck || !map.upkeep.contains(&layer) => {
                        return Err(LaneError::Unreadable { block: 0 });
                    }
                    Some(_) => {}
                }
            }
            self.check_running()?;
            self.committed.wait().await;
        }
    }

    async fn flush(&self) -> Result<(), LaneError> {
        let volatile = self.log.borrow().has_volatile();
        if volatile { self.flush_drives().await } else { self.check_running() }
    }

    pub(crate) async fn create_layer(
        &self,
        layer: LayerId,
        parent: Option<LayerId>,
        blocks: u64,
    ) -> Result<(), LaneError> {
        // by its name: the layer that had this name may have been merged by now
        let state = || {
            let map = self.map.borrow();
            map.layers.get(&map.named(layer)).map(|layer| (layer.dropping, layer.stuck))
        };
        // a layer of the same id that is being dropped goes first, if it can
        while let Some((true, stuck)) = state() {
            self.check_running()?;
            if stuck {
                return Err(LaneError::NoSuchLayer);
            }
            match self.is_emptied(layer) {
                // it is removed with the next checkpoint, which may have no other cause
                true => self.want_checkpoint(),
                false => self.background.notify(),
            }
            self.space.wait().await;
        }
        if state().is_some() {
            return Ok(());
        }
        // room to grow without a higher tree
        let mut height = height_for(blocks.saturating_mul(VOLUME_GROWTH_MAX));
        if let Some(parent) = parent {
            let mut map = self.map.borrow_mut();
            let parent = map.named(parent);
            let below = map.layers.get_mut(&parent).filter(|below| !below.dropping);
            let below = below.ok_or(LaneError::NoSuchLayer)?;
            // entries in the log before the new layer belong to the parent, and none after it
            below.frozen = true;
            // never a lower tree than that of the layer below: its entries may be merged into this one
            height = height.max(below.height);
        }
        let created = self.commit_entry(Entry::Layer { layer, parent, height }).await;
        if let (Err(_), Some(parent)) = (&created, parent) {
            let mut map = self.map.borrow_mut();
            let parent = map.named(parent);
            if let Some(below) = map.layers.get_mut(&parent) {
                below.frozen = false;
            }
        }
        created
    }

    fn is_emptied(&self, name: LayerId) -> bool {
        let map = self.map.borrow();
        let layer = map.layers.get(&map.named(name));
        layer.is_some_and(|layer| layer.is_to_be_emptied() && layer.is_empty())
    }

    async fn drop_layer(&self, layer: LayerId) -> Result<(), LaneError> {
        if !self.layers().contains(&layer) {
            return Ok(());
        }
        self.commit_entry(Entry::Drop { layer }).await
    }

    async fn commit_entry(&self, entry: Entry) -> Result<(), LaneError> {
        while let Err(error) = self.log_room().await {
            if error != LaneError::OutOfSpace || !entry.must_be_known() {
                return Err(error);
            }
            self.io.sleep(NO_SPACE_RETRY).await;
        }
        let ticket = Ticket::new(&self.io);
        self.append(Pending::bare(entry, None, &ticket));
        ticket.wait().await
    }

    /// The layers of this lane that are not being dropped.
    pub fn layers(&self) -> Vec<LayerId> {
        let map = self.map.borrow();
        let asked_for =
            |(id, layer): &(&LayerId, &crate::layers::layer::Layer)| !layer.dropping && **id != FORWARDS;
        map.layers.iter().filter(asked_for).map(|(_, layer)| layer.name).collect()
    }
}
