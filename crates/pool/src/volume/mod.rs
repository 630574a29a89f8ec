//! A volume of a pool: its blocks are distributed over the pool's lanes. It is a block target.
//!
//! ```text
//!  volume  | page 0 | page 1 | page 2 | page 3 | ...        a page is 256 blocks of 4 KiB = 1 MiB
//!  lane      0        1        2        0                    lane  = (page + first) % lanes
//!  its page  0        0        0        1                    index = page / lanes
//! ```

mod copy;
mod elsewhere;
mod mapped;

use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId, Lba};
use block::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry, Payload};
use bytes::BytesMut;
use smallvec::{SmallVec, smallvec};
use task::{OneshotReceiver, join_all};

use crate::error::{LaneError, block_error};
use crate::format::page::PAGE_ENTRIES;
use crate::lane::Lane;
use crate::reading::read::zeros;
use crate::requests::hold_table::HoldId;
use crate::requests::request::{LaneOutput, LaneRequest, LaneResult};

pub use copy::{CopyRange, Survey};

const PAGE: u64 = PAGE_ENTRIES as u64;

/// The way to a lane on another shard.
pub trait RemoteLane {
    fn call(&self, lane: u16, request: LaneRequest) -> OneshotReceiver<LaneResult>;
}

/// A lane, wherever it lives.
#[derive(Clone)]
pub enum LaneRef {
    Local(Rc<Lane>),
    Remote(u16, Rc<dyn RemoteLane>),
}

impl LaneRef {
    pub async fn execute(&self, request: LaneRequest) -> LaneResult {
        match self {
            LaneRef::Local(lane) => lane.execute(request).await,
            // no answer: the other shard is shutting down
            LaneRef::Remote(lane, way) => {
                way.call(*lane, request).await.unwrap_or(Err(LaneError::Unavailable))
            }
        }
    }
}

/// A volume. See the header of this file.
#[derive(Clone)]
pub struct PoolVolume {
    lanes: Vec<LaneRef>,
    layer: LayerId,
    /// The layer by whose id blocks are distributed to lanes: its own, or that of the lowest layer below it.
    dealt_as: LayerId,
    geometry: Geometry,
}

/// A part of a request that one lane carries out: whole blocks, or part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    lane: usize,
    /// The lane's block.
    block: u64,
    /// Bytes from the start of that block; zero unless this is part of a block.
    offset_bytes: usize,
    length_bytes: usize,
    /// The offset within the request.
    at_bytes: usize,
    /// The volume's block.
    volume_block: u64,
}

/// A request's pieces, nearly always one.
type Pieces = SmallVec<[Piece; 1]>;

/// Pieces of a large range that are unmapped at the same time.
const UNMAPS_AT_ONCE: usize = 32;

impl Piece {
    fn is_whole(&self) -> bool {
        self.offset_bytes == 0 && self.length_bytes.is_multiple_of(BLOCK_BYTES)
    }

    fn blocks(&self) -> u64 {
        (self.offset_bytes + self.length_bytes).div_ceil(BLOCK_BYTES) as u64
    }
}

impl PoolVolume {
    /// `lanes` are all lanes of the pool, in order.
    pub fn new(lanes: Vec<LaneRef>, layer: LayerId, geometry: Geometry) -> PoolVolume {
        assert!(!lanes.is_empty() && BLOCK_BYTES.is_multiple_of(geometry.block_bytes as usize));
        PoolVolume { lanes, layer, dealt_as: layer, geometry }
    }

    /// Sets the layer by which blocks are distributed, for a layer above others: its blocks are in the same lanes as
    /// those of the lowest layer.
    pub fn dealt_as(self, layer: LayerId) -> PoolVolume {
        PoolVolume { dealt_as: layer, ..self }
    }

    /// The layer's blocks in each lane, for a volume of this size.
    pub fn lane_blocks(size_bytes: u64, lanes: u16) -> u64 {
        size_bytes.div_ceil(BLOCK_BYTES as u64).div_ceil(PAGE).div_ceil(u64::from(lanes)) * PAGE
    }

    /// For each lane, its first block that is not before the given block of the volume. The volume's blocks are
    /// distributed like those of this layer.
    pub fn lanes_from(block: u64, dealt_as: LayerId, lanes: u16) -> Vec<u64> {
        let (count, page) = (u64::from(lanes), block / PAGE);
        let first = u64::from(dealt_as.0) % count;
        let from = |lane: u64| match (page..page + count).find(|page| (page + first) % count == lane) {
            Some(own) if own == page => own / count * PAGE + block % PAGE,
            Some(own) => own / count * PAGE,
            None => unreachable!("one of as many pages as there are lanes is in each"),
        };
        (0..count).map(from).collect()
    }

    /// Creates the layer of a new volume in every lane.
    pub async fn create_layer(lanes: &[LaneRef], layer: LayerId, size_bytes: u64) -> Result<(), LaneError> {
        let blocks = PoolVolume::lane_blocks(size_bytes, lanes.len() as u16);
        let request = || LaneRequest::CreateLayer { layer, parent: None, blocks };
        join_all(lanes.iter().map(|lane| lane.execute(request())))
            .await
            .into_iter()
            .try_for_each(|result| result.map(drop))
    }

    /// Drops a volume's layer from every lane.
    pub async fn drop_layer(lanes: &[LaneRef], layer: LayerId) -> Result<(), LaneError> {
        let request = || LaneRequest::DropLayer { layer };
        join_all(lanes.iter().map(|lane| lane.execute(request())))
            .await
            .into_iter()
            .try_for_each(|result| result.map(drop))
    }

    fn durable(&self, asked: bool) -> bool {
        asked || !self.geometry.write_back
    }

    /// Splits a byte range at lanes' pages, and where a block is covered only in part.
    fn split(&self, start_bytes: u64, length_bytes: u64) -> Pieces {
        let lanes = self.lanes.len() as u64;
        let first = u64::from(self.dealt_as.0) % lanes;
        let mut pieces = Pieces::new();
        let mut at = 0;
        while at < length_bytes {
            let byte = start_bytes + at;
            let block = byte / BLOCK_BYTES as u64;
            let offset = byte % BLOCK_BYTES as u64;
            let left = length_bytes - at;
            let length = if offset > 0 || left < BLOCK_BYTES as u64 {
                left.min(BLOCK_BYTES as u64 - offset)
            } else {
                (left / BLOCK_BYTES as u64).min(PAGE - block % PAGE) * BLOCK_BYTES as u64
            };
            let page = block / PAGE;
            let piece = Piece {
                lane: ((page + first) % lanes) as usize,
                block: page / lanes * PAGE + block % PAGE,
                offset_bytes: offset as usize,
                length_bytes: length as usize,
                at_bytes: at as usize,
                volume_block: block,
            };
            match pieces.last_mut() {
                Some(last) if last.joins(&piece) => last.length_bytes += piece.length_bytes,
                _ => pieces.push(piece),
            }
            at += length;
        }
        pieces
    }

    fn pieces(&self, lba: Lba, blocks: u64) -> Pieces {
        let block_bytes = u64::from(self.geometry.block_bytes);
        assert!(
            lba.0.checked_add(blocks).is_some_and(|end| end <= self.geometry.blocks),
            "range is checked at the edge"
        );
        self.split(lba.0 * block_bytes, blocks * block_bytes)
    }

    fn error(&self, piece: &Piece, error: LaneError) -> BlockError {
        let per_block = BLOCK_BYTES as u64 / u64::from(self.geometry.block_bytes);
        block_error(error, |block| Lba((piece.volume_block + block.saturating_sub(piece.block)) * per_block))
    }

    /// Sends one request per piece, all at the same time; the first error wins.
    async fn on_pieces(
        &self,
        pieces: &[Piece],
        request: impl Fn(&Piece) -> LaneRequest,
    ) -> Result<SmallVec<[LaneOutput; 1]>, BlockError> {
        if let [piece] = pieces {
            let result = self.send(piece, request(piece)).await;
            return result.map(|output| smallvec![output]).map_err(|error| self.error(piece, error));
        }
        let results = join_all(pieces.iter().map(|piece| self.send(piece, request(piece)))).await;
        pieces
            .iter()
            .zip(results)
            .map(|(piece, result)| result.map_err(|error| self.error(piece, error)))
            .collect()
    }

    async fn read(&self, lba: Lba, blocks: u64) -> BlockResult {
        let pieces = self.pieces(lba, blocks);
        let layer = self.layer;
        let request = |piece: &Piece| LaneRequest::Read { layer, block: piece.block, blocks: piece.blocks() };
        let outputs = self.on_pieces(&pieces, request).await?;
        let mut data = Payload::new();
        for (piece, output) in pieces.iter().zip(outputs) {
            let bytes = match output {
                LaneOutput::Data(bytes) => bytes,
                LaneOutput::Parts(bytes, elsewhere) => {
                    let filled = Box::pin(self.filled(piece, bytes, elsewhere)).await;
                    filled.map_err(|error| self.error(piece, error))?
                }
                _ => unreachable!("a read gives data"),
            };
            let asked_for = match piece.is_whole() {
                true => bytes,
                false => bytes.slice(piece.offset_bytes..piece.offset_bytes + piece.length_bytes),
            };
            asked_for.into_iter().for_each(|bytes| data.push(bytes));
        }
        Ok(BlockOutput::Data(data))
    }

    async fn write(&self, lba: Lba, data: Payload, durable: bool) -> BlockResult {
        let blocks = data.len() as u64 / u64::from(self.geometry.block_bytes);
        let pieces = self.pieces(lba, blocks);
        self.write_pieces(&pieces, &data, self.durable(durable)).await
    }

    async fn write_pieces(&self, pieces: &[Piece], data: &Payload, durable: bool) -> BlockResult {
        let layer = self.layer;
        let request = |piece: &Piece| {
            let data = data.slice(piece.at_bytes..piece.at_bytes + piece.length_bytes);
            if piece.is_whole() {
                LaneRequest::Write { layer, block: piece.block, data, durable }
            } else {
                LaneRequest::WritePart {
                    layer,
                    block: piece.block,
                    offset_bytes: piece.offset_bytes,
                    data,
                    known: Vec::new(),
                    durable,
                }
            }
        };
        self.on_pieces(pieces, request).await.map(|_| BlockOutput::None)
    }

    /// Whole blocks are unmapped, parts of blocks overwritten with zeros.
    async fn zero(&self, lba: Lba, blocks: u64) -> BlockResult {
        let (layer, durable) = (self.layer, self.durable(false));
        let (whole, parts): (Vec<Piece>, Vec<Piece>) =
            self.pieces(lba, blocks).into_iter().partition(Piece::is_whole);
        // one lane's unmaps of a large range are one request; of several lanes, some are under way at once
        let request =
            |piece: &Piece| LaneRequest::Unmap { layer, block: piece.block, blocks: piece.blocks(), durable };
        for some in whole.chunks(UNMAPS_AT_ONCE) {
            self.on_pieces(some, request).await?;
        }
        for mut piece in parts {
            let data = zeros(1).slice(0..piece.length_bytes);
            piece.at_bytes = 0;
            self.write_pieces(&[piece], &data, durable).await?;
        }
        Ok(BlockOutput::None)
    }

    async fn compare_and_write(
        &self,
        lba: Lba,
        expected: Payload,
        data: Payload,
        durable: bool,
    ) -> BlockResult {
        let (layer, durable) = (self.layer, self.durable(durable));
        let block_bytes = u64::from(self.geometry.block_bytes);
        let start = lba.0 * block_bytes;
        let pieces = self.pieces(lba, data.len() as u64 / block_bytes);
        let lane = pieces[0].lane;
        if data.len() > PAGE_ENTRIES * BLOCK_BYTES {
            return Err(BlockError::Unsupported);
        }
        if pieces.iter().any(|piece| piece.lane != lane) {
            return self.compare_and_write_held(start, &expected, &data, durable).await;
        }
        let request = LaneRequest::CompareAndWrite {
            layer,
            block: pieces[0].block,
            offset_bytes: (start % BLOCK_BYTES as u64) as usize,
            expected: Box::new(expected),
            data,
            known: Vec::new(),
            durable,
        };
        let blocks = pieces.iter().map(Piece::blocks).sum::<u64>() as usize;
        let all = Piece { offset_bytes: 0, length_bytes: blocks * BLOCK_BYTES, ..pieces[0] };
        let result = self.send(&all, request).await;
        result.map(|_| BlockOutput::None).map_err(|error| self.error(&all, error))
    }

    /// Compare-and-write across lanes: see `hold.rs`. If a lane cannot write after others have written, the error is
    /// returned and some of the blocks are changed, as with any write.
    async fn compare_and_write_held(
        &self,
        start_bytes: u64,
        expected: &Payload,
        data: &Payload,
        durable: bool,
    ) -> BlockResult {
        let block_bytes = BLOCK_BYTES as u64;
        let first = start_bytes / block_bytes * block_bytes;
        let end = (start_bytes + data.len() as u64).next_multiple_of(block_bytes);
        let pieces = self.split(first, end - first);
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        order.sort_by_key(|&index| pieces[index].lane);
        assert!(order.windows(2).all(|pair| pieces[pair[0]].lane != pieces[pair[1]].lane), "{pieces:?}");
        let mut content = BytesMut::zeroed((end - first) as usize);
        let mut held: Vec<(usize, HoldId)> = Vec::new();
        let mut outcome = Ok(());
        for index in order {
            let piece = &pieces[index];
            let hold = LaneRequest::Hold { layer: self.layer, block: piece.block, blocks: piece.blocks() };
            match self.lanes[piece.lane].execute(hold).await {
                Ok(LaneOutput::Held(hold, bytes, elsewhere)) => {
                    held.push((index, hold));
                    match self.filled(piece, bytes, elsewhere).await {
                        Ok(bytes) => {
                            bytes.copy_to(0, &mut content[piece.at_bytes..][..piece.length_bytes]);
                        }
                        Err(error) => {
                            outcome = Err(self.error(piece, error));
                            break;
                        }
                    }
                }
                Ok(_) => unreachable!("a hold gives a hold"),
                Err(error) => {
                    outcome = Err(self.error(piece, error));
                    break;
                }
            }
        }
        let range = (start_bytes - first) as usize..(start_bytes - first) as usize + data.len();
        if outcome.is_ok() {
            let differs =
                content[range.clone()].iter().zip(expected.to_vec()).position(|(&is, should)| is != should);
            if let Some(at) = differs {
                outcome = Err(BlockError::Miscompare { offset_bytes: at as u32 });
            }
        }
        data.copy_to(0, &mut content[range]);
        let content = content.freeze();
        let release = |&(index, hold): &(usize, HoldId)| {
            let piece = &pieces[index];
            let written = content.slice(piece.at_bytes..piece.at_bytes + piece.length_bytes);
            let data = outcome.is_ok().then(|| Payload::from(written));
            self.lanes[piece.lane].execute(LaneRequest::Release { hold, data, durable })
        };
        let released = join_all(held.iter().map(release)).await;
        for ((index, _), result) in held.iter().zip(released) {
            result.map_err(|error| self.error(&pieces[*index], error))?;
        }
        outcome.map(|()| BlockOutput::None)
    }
}

impl Piece {
    fn joins(&self, next: &Piece) -> bool {
        let whole = self.is_whole() && next.is_whole();
        whole && self.lane == next.lane && self.block + self.blocks() == next.block
    }
}

impl BlockTarget for PoolVolume {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        match request {
            BlockRequest::Read { lba, blocks } => self.read(lba, u64::from(blocks)).await,
            BlockRequest::Write { lba, data, durable } => self.write(lba, data, durable).await,
            BlockRequest::WriteZeroes { lba, blocks } | BlockRequest::Unmap { lba, blocks } => {
                self.zero(lba, blocks).await
            }
            BlockRequest::CompareAndWrite { lba, expected, data, durable } => {
                self.compare_and_write(lba, *expected, data, durable).await
            }
            BlockRequest::Flush => {
                let flush = |lane: &LaneRef| {
                    let lane = lane.clone();
                    async move { lane.execute(LaneRequest::Flush).await }
                };
                let results = join_all(self.lanes.iter().map(flush)).await;
                let failed = results.into_iter().find_map(Result::err);
                failed.map_or(Ok(BlockOutput::None), |error| Err(block_error(error, Lba)))
            }
            BlockRequest::MapStatus { lba, blocks } => self.map_status(lba, blocks).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Nowhere;
    impl RemoteLane for Nowhere {
        fn call(&self, _: u16, _: LaneRequest) -> OneshotReceiver<LaneResult> {
            unreachable!("splitting asks no lane")
        }
    }

    fn volume(lanes: u16, layer: u32) -> PoolVolume {
        let lanes = (0..lanes).map(|lane| LaneRef::Remote(lane, Rc::new(Nowhere))).collect();
        let geometry = Geometry { block_bytes: 512, blocks: 1 << 40, thin: true, write_back: false };
        PoolVolume::new(lanes, LayerId(layer), geometry)
    }

    #[test]
    fn where_each_lane_goes_on() {
        let (layer, lanes) = (5, 3);
        for block in [0, 1, 255, 256, 300, 700, 5 * 256, 7 * 256 + 13] {
            let from = PoolVolume::lanes_from(block, LayerId(layer), lanes);
            let volume = volume(lanes, layer);
            for piece in volume.split(0, 20 << 20) {
                for n in 0..piece.blocks() {
                    let beyond = piece.volume_block + n >= block;
                    assert_eq!(piece.block + n >= from[piece.lane], beyond, "{block}: {piece:?}, {n}");
                }
            }
        }
    }

    proptest! {
            #[test]
        fn pieces_cover_the_range_once(lanes in 1u16..5, layer in 0u32..9, start in 0u64..9000, sectors in 1u64..9000) {
            let volume = volume(lanes, layer);
            let pieces = volume.split(start * 512, sectors * 512);
            let mut at = 0;
            for piece in &pieces {
                prop_assert_eq!(piece.at_bytes, at);
                let byte = start * 512 + at as u64;
                prop_assert_eq!(piece.volume_block * 4096 + piece.offset_bytes as u64, byte);
                prop_assert!(piece.is_whole() || piece.offset_bytes + piece.length_bytes <= BLOCK_BYTES);
                let end = (piece.volume_block + piece.blocks() - 1) / PAGE;
                prop_assert!(lanes == 1 || end == piece.volume_block / PAGE);
                at += piece.length_bytes;
            }
            prop_assert_eq!(at as u64, sectors * 512);
        }

        #[test]
        fn every_block_has_a_place_of_its_own(lanes in 1u16..5, layer in 0u32..9) {
            let volume = volume(lanes, layer);
            let mut seen = std::collections::BTreeSet::new();
            for block in (0..4000).step_by(7) {
                let piece = volume.split(block * 4096, 4096)[0];
                prop_assert!(seen.insert((piece.lane, piece.block)));
                prop_assert!(piece.block < PoolVolume::lane_blocks(4000 * 4096, lanes));
            }
        }
    }
}
