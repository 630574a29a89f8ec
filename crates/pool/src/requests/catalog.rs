//! The catalog's bytes. They are stored in lane 0 like all data: in a layer of their own, in two slots, written in
//! turn.
//!
//! ```text
//! slot | magic, generation, length, crc | bytes ...          slot 0 at block 0, slot 1 at block 16384
//! ```

use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, crc32c};
use bytes::{Bytes, BytesMut};

use crate::error::LaneError;
use crate::lane::Lane;
use crate::layers::names::CATALOG_LAYER;
use crate::requests::request::{LaneOutput, LaneRequest};

const MAGIC: &[u8; 8] = b"TNGCATLG";
const SLOT_BLOCKS: u64 = 16384;
const HEADER_BYTES: usize = 28;
/// Largest catalog: 32 MiB.
const CATALOG_BYTES_MAX: usize = 32 << 20;
const _: () = assert!(CATALOG_BYTES_MAX + BLOCK_BYTES <= SLOT_BLOCKS as usize * BLOCK_BYTES);

/// The header of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotHeader {
    generation: u64,
    length: usize,
    crc: u32,
}

impl SlotHeader {
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..24].copy_from_slice(&(self.length as u64).to_le_bytes());
        bytes[24..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// `None` if there is none, or it has a length that no catalog has.
    pub fn parse(bytes: &[u8]) -> Option<SlotHeader> {
        let header = bytes.get(..HEADER_BYTES).filter(|header| header.starts_with(MAGIC))?;
        let field =
            |offset: usize| u64::from_le_bytes(header[offset..offset + 8].try_into().expect("eight bytes"));
        let length = usize::try_from(field(16)).ok().filter(|&length| length <= CATALOG_BYTES_MAX)?;
        let crc = u32::from_le_bytes(header[24..28].try_into().expect("four bytes"));
        Some(SlotHeader { generation: field(8), length, crc })
    }
}

impl Lane {
    /// Stores `bytes` as the newest catalog. Durable when this succeeds; after an earlier crash, either the old or the
    /// new one is found.
    pub async fn store_catalog(self: &Rc<Self>, bytes: &[u8]) -> Result<(), LaneError> {
        assert!(self.number == 0 && bytes.len() <= CATALOG_BYTES_MAX, "a catalog of {} bytes", bytes.len());
        let create = LaneRequest::CreateLayer { layer: CATALOG_LAYER, parent: None, blocks: 2 * SLOT_BLOCKS };
        self.execute(create).await?;
        let newest = self.read_slots().await?.into_iter().flatten().map(|(generation, _)| generation).max();
        let generation = newest.map_or(1, |generation| generation + 1);
        let mut content = BytesMut::with_capacity(HEADER_BYTES + bytes.len());
        let header = SlotHeader { generation, length: bytes.len(), crc: crc32c(bytes) };
        content.extend_from_slice(&header.emit());
        content.extend_from_slice(bytes);
        let content = AlignedBuffer::copied_from(&content).into_bytes();
        let block = generation % 2 * SLOT_BLOCKS;
        let write = LaneRequest::Write { layer: CATALOG_LAYER, block, data: content.into(), durable: true };
        self.execute(write).await.map(drop)
    }

    /// The newest catalog, if one was ever stored.
    pub async fn load_catalog(self: &Rc<Self>) -> Result<Option<Bytes>, LaneError> {
        if !self.layers().contains(&CATALOG_LAYER) {
            return Ok(None);
        }
        let slots = self.read_slots().await?;
        let newest = slots.into_iter().flatten().max_by_key(|&(generation, _)| generation);
        Ok(newest.map(|(_, bytes)| bytes))
    }

    async fn read_slots(self: &Rc<Self>) -> Result<[Option<(u64, Bytes)>; 2], LaneError> {
        Ok([self.read_slot(0).await?, self.read_slot(SLOT_BLOCKS).await?])
    }

    async fn read_slot(self: &Rc<Self>, block: u64) -> Result<Option<(u64, Bytes)>, LaneError> {
        let header = self.read_catalog_blocks(block, 1).await?;
        let Some(SlotHeader { generation, length, crc }) = SlotHeader::parse(&header) else {
            return Ok(None);
        };
        let blocks = (HEADER_BYTES + length).div_ceil(BLOCK_BYTES) as u64;
        let content = self.read_catalog_blocks(block, blocks).await?;
        let bytes = content.slice(HEADER_BYTES..HEADER_BYTES + length);
        Ok((crc32c(&bytes) == crc).then_some((generation, bytes)))
    }

    async fn read_catalog_blocks(self: &Rc<Self>, block: u64, blocks: u64) -> Result<Bytes, LaneError> {
        let mut content = BytesMut::with_capacity(blocks as usize * BLOCK_BYTES);
        let mut at = 0;
        while at < blocks {
            let count = (blocks - at).min(1024);
            let read = LaneRequest::Read { layer: CATALOG_LAYER, block: block + at, blocks: count };
            // no blocks of the catalog are references: a page that says so is wrong
            let LaneOutput::Data(pieces) = self.execute(read).await? else {
                return Err(LaneError::Unreadable { block: block + at });
            };
            pieces.pieces().iter().for_each(|piece| content.extend_from_slice(piece));
            at += count;
        }
        Ok(content.freeze())
    }
}
