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
use crate::layers::references::{Elsewhere, Known, Spoken};
use crate::log::queue::{Pending, Ticket};
use crate::map::tree::height_for;
use crate::reading::read::Read;
use crate::requests::holds::HoldId;

/// A request. Blocks are the lane's own, of 4 KiB; ranges lie within the layer.
#[derive(Clone, Debug)]
pub enum LaneRequest {
    Read {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// `data` is a whole number of blocks. `durable`: survives power loss when answered.
    Write {
        layer: LayerId,
        block: u64,
        data: Payload,
        durable: bool,
    },
    /// Part of one block. `known` is what is elsewhere, as far as whoever asks knows that it matters; where more is
    /// needed: [`LaneError::Elsewhere`].
    WritePart {
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        data: Payload,
        known: Vec<Known>,
        durable: bool,
    },
    Unmap {
        layer: LayerId,
        block: u64,
        blocks: u64,
        durable: bool,
    },
    /// At most 256 blocks. `known` as for a part.
    CompareAndWrite {
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        /// Boxed: it is rare, and every request is as large as this one.
        expected: Box<Payload>,
        data: Payload,
        known: Vec<Known>,
        durable: bool,
    },
    /// Keeps others from changing blocks until the release that must follow. → [`LaneOutput::Held`]
    Hold {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// Writes over all that is held, where there is data, and lets go of it.
    Release {
        hold: HoldId,
        data: Option<Payload>,
        durable: bool,
    },
    /// Everything answered before survives power loss.
    Flush,
    MapStatus {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// A layer for at least this many blocks; nothing happens where it exists. Nobody writes to `parent` from
    /// then on.
    CreateLayer {
        layer: LayerId,
        parent: Option<LayerId>,
        blocks: u64,
    },
    /// The layer is gone when this is answered, and so, in the background, is whatever no layer that stands on it
    /// needs.
    DropLayer {
        layer: LayerId,
    },
    /// How many blocks are given back when the layer is dropped.
    FreedBy {
        layer: LayerId,
    },
    /// Whether anything is mapped from a block on, which nobody writes meanwhile; `unmap`: it is unmapped.
    /// → [`LaneOutput::Beyond`]
    Beyond {
        layer: LayerId,
        block: u64,
        unmap: bool,
    },
    /// Blocks are what the layer of the reference, which is frozen, says of as many blocks; durable when answered. Whoever
    /// asks keeps that layer for as long as something refers to it.
    Refer {
        layer: LayerId,
        block: u64,
        blocks: u64,
        to: Reference,
    },
    /// What a layer says that something refers to: [`LaneError::NoSuchLayer`] where nobody keeps it any more.
    ReadReferred {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// A layer to which these blocks refer is gone: they are to be found out anew.
    LookAgain {
        layer: LayerId,
        block: u64,
        blocks: u64,
    },
    /// Who says what blocks are: `below`, on which the layer stands, or, where that is not named, the one right below it.
    Speakers {
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
    },
    /// How many entries refer to each layer; what is not named has none, and a power loss brings none back.
    Referred,
}

/// What a request gives.
#[derive(Clone, Debug)]
pub enum LaneOutput {
    None,
    Data(Payload),
    /// Data, with zeros in the place of blocks that are elsewhere.
    Parts(Payload, Vec<Elsewhere>),
    /// The content of what is held, as with parts.
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
    /// The layer that was meant, if it can be referred to, and the range in order.
    Speakers(Option<LayerId>, Vec<Spoken>),
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
            LaneRequest::LookAgain { layer, block, blocks } => self.look_again(layer, block, blocks),
            LaneRequest::Speakers { layer, below, block, blocks } => {
                let (below, spoken) = self.speakers(layer, below, block, blocks).await?;
                return Ok(LaneOutput::Speakers(below, spoken));
            }
            LaneRequest::Referred => return self.referred().await.map(LaneOutput::Referred),
        }
        Ok(LaneOutput::None)
    }

    /// The layer that is meant. One on which something stood for a moment may be on its way into another, and does not get
    /// there where a page of the map is lost.
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
        // by its name: what it was called may be in another by now
        let state = || {
            let map = self.map.borrow();
            map.layers.get(&map.named(layer)).map(|layer| (layer.dropping, layer.stuck))
        };
        // one of the same id that is being dropped goes first, where it can
        while let Some((true, stuck)) = state() {
            self.check_running()?;
            if stuck {
                return Err(LaneError::NoSuchLayer);
            }
            match self.is_emptied(layer) {
                // it goes with the next checkpoint, which nothing else may call for
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
            // what is in the log before the new layer is the parent's, and nothing after it
            below.frozen = true;
            // never a lower tree than the one below: what is in that may go into this one
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
