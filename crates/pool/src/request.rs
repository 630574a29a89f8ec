//! What a lane can be asked. Requests and answers can be sent from shard to shard.

use std::rc::Rc;

use base::LayerId;
use base::limits::VOLUME_GROWTH_MAX;
use block::Payload;
use bytes::Bytes;

use crate::format::header::Entry;
use crate::hold::HoldId;
use crate::lane::{Lane, LaneError};
use crate::log::{Pending, Ticket};
use crate::map::height_for;

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
    /// Part of one block.
    WritePart {
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        data: Payload,
        durable: bool,
    },
    Unmap {
        layer: LayerId,
        block: u64,
        blocks: u64,
        durable: bool,
    },
    /// At most 256 blocks.
    CompareAndWrite {
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        expected: Payload,
        data: Payload,
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
    /// A layer for at least this many blocks; nothing happens where it exists.
    CreateLayer {
        layer: LayerId,
        parent: Option<LayerId>,
        blocks: u64,
    },
    /// The layer is gone when this is answered; its space follows in the background.
    DropLayer {
        layer: LayerId,
    },
}

/// What a request gives.
#[derive(Clone, Debug)]
pub enum LaneOutput {
    None,
    Data(Vec<Bytes>),
    /// The content of what is held.
    Held(HoldId, Vec<Bytes>),
    /// The first `blocks` of the range are all mapped or all not.
    MapStatus {
        mapped: bool,
        blocks: u64,
    },
}

pub type LaneResult = Result<LaneOutput, LaneError>;

impl Lane {
    /// Carries out a request.
    pub async fn execute(self: &Rc<Self>, request: LaneRequest) -> LaneResult {
        if self.is_closed() {
            return Err(LaneError::Unavailable);
        }
        let _running = self.enter();
        match request {
            LaneRequest::Read { layer, block, blocks } => {
                return self.read_blocks(layer, block, blocks).await.map(LaneOutput::Data);
            }
            LaneRequest::Write { layer, block, data, durable } => {
                self.write_blocks(layer, block, data, durable).await?
            }
            LaneRequest::WritePart { layer, block, offset_bytes, data, durable } => {
                self.write_part(layer, block, offset_bytes, &data, durable).await?;
            }
            LaneRequest::Unmap { layer, block, blocks, durable } => {
                self.unmap_blocks(layer, block, blocks, durable).await?;
            }
            LaneRequest::CompareAndWrite { layer, block, offset_bytes, expected, data, durable } => {
                self.compare_and_write(layer, block, offset_bytes, &expected, &data, durable).await?;
            }
            LaneRequest::Hold { layer, block, blocks } => {
                let (hold, data) = self.hold(layer, block, blocks).await?;
                return Ok(LaneOutput::Held(hold, data));
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
        }
        Ok(LaneOutput::None)
    }

    async fn flush(&self) -> Result<(), LaneError> {
        let volatile = self.log.borrow().has_volatile();
        if volatile { self.flush_drives().await } else { self.check_running() }
    }

    async fn map_status(&self, layer: LayerId, block: u64, blocks: u64) -> LaneResult {
        let mut pins = crate::pages::SegmentPins::new(self);
        let blocks = crate::apply::within_leaf(block, blocks);
        let entries = self.resolve(layer, block, blocks, &mut pins).await?;
        let mapped = entries[0].position.is_stored();
        let same = entries.iter().take_while(|entry| entry.position.is_stored() == mapped).count();
        Ok(LaneOutput::MapStatus { mapped, blocks: same as u64 })
    }

    async fn create_layer(
        &self,
        layer: LayerId,
        parent: Option<LayerId>,
        blocks: u64,
    ) -> Result<(), LaneError> {
        let dropping = || self.map.borrow().layers.get(&layer).map(|layer| layer.dropping);
        // one of the same id that is being dropped goes first
        while dropping() == Some(true) {
            self.check_running()?;
            self.background.notify();
            self.space.wait().await;
        }
        if dropping().is_some() {
            return Ok(());
        }
        // room to grow without a higher tree
        let height = height_for(blocks.saturating_mul(VOLUME_GROWTH_MAX));
        self.commit_entry(Entry::Layer { layer, parent, height }).await
    }

    async fn drop_layer(&self, layer: LayerId) -> Result<(), LaneError> {
        if !self.map.borrow().layers.contains_key(&layer) {
            return Ok(());
        }
        self.commit_entry(Entry::Drop { layer }).await
    }

    async fn commit_entry(&self, entry: Entry) -> Result<(), LaneError> {
        self.log_room().await?;
        let ticket = Ticket::new(&self.io);
        self.append(Pending {
            entry,
            source: None,
            durable: true,
            ticket: ticket.clone(),
            tag: None,
            pinned: None,
            promised: 0,
            serial: 0,
        });
        ticket.wait().await
    }

    /// The layers of this lane that are not being dropped.
    pub fn layers(&self) -> Vec<LayerId> {
        self.map.borrow().layers.iter().filter(|(_, layer)| !layer.dropping).map(|(&id, _)| id).collect()
    }
}
