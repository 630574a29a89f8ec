//! Finds which blocks of a volume are mapped. Each lane is asked once and answers as far as it can, however large the
//! volume is.

use base::{BLOCK_BYTES, Lba};
use block::{BlockOutput, BlockResult};
use task::join_all;

use super::{PAGE, Piece, PoolVolume};
use crate::requests::request::{LaneOutput, LaneRequest};

impl PoolVolume {
    /// Whether a volume's block range begins with mapped blocks, and how far the same state extends, as far as that was
    /// found out.
    pub(super) async fn map_status(&self, lba: Lba, blocks: u64) -> BlockResult {
        let block_bytes = u64::from(self.geometry.block_bytes);
        let per_block = BLOCK_BYTES as u64 / block_bytes;
        // whole blocks around the range
        let (start, end) = (lba.0 / per_block, (lba.0 + blocks).div_ceil(per_block));
        let first = self.first_piece(start, end);
        let (mapped, alike) = self.status_of(&first, first.blocks()).await?;
        let reaches_page_end = alike == first.blocks() && start + alike < end;
        let until = match reaches_page_end {
            true => self.alike_until(mapped, start + alike, end).await?,
            false => start + alike,
        };
        let blocks = (until * per_block - lba.0).min(blocks);
        Ok(BlockOutput::MapStatus { mapped, blocks })
    }

    /// The part of a range of blocks that is on its first page.
    fn first_piece(&self, start: u64, end: u64) -> Piece {
        let blocks = (end - start).min(PAGE - start % PAGE);
        self.split(start * BLOCK_BYTES as u64, blocks * BLOCK_BYTES as u64)[0]
    }

    async fn status_of(&self, piece: &Piece, blocks: u64) -> Result<(bool, u64), block::BlockError> {
        let request = LaneRequest::MapStatus { layer: self.layer, block: piece.block, blocks };
        match self.lanes[piece.lane].execute(request).await {
            Ok(LaneOutput::MapStatus { mapped, blocks }) => Ok((mapped, blocks)),
            Ok(_) => unreachable!("a map status gives a map status"),
            Err(error) => Err(self.error(piece, error)),
        }
    }

    /// Up to which block all blocks from `from`, the beginning of a page, are in this state, as far as the lanes can
    /// tell.
    async fn alike_until(&self, mapped: bool, from: u64, end: u64) -> Result<u64, block::BlockError> {
        let lanes = self.lanes.len() as u64;
        let pages = (end - from).div_ceil(PAGE).min(lanes);
        // each lane's first page at or after `from`
        let firsts: Vec<Piece> = (0..pages).map(|page| self.first_piece(from + page * PAGE, end)).collect();
        let asked = firsts.iter().map(|piece| {
            // at most as many of the lane's pages as the range has
            let blocks = (end - piece.volume_block).div_ceil(lanes * PAGE) * PAGE;
            self.status_of(piece, blocks)
        });
        let mut until = end;
        for (piece, answer) in firsts.iter().zip(join_all(asked.collect::<Vec<_>>()).await) {
            let (state, alike) = answer?;
            let alike = if state == mapped { alike } else { 0 };
            // the lane's pages are interleaved with those of the other lanes
            let stops = piece.volume_block + alike / PAGE * lanes * PAGE + alike % PAGE;
            until = until.min(stops);
        }
        Ok(until)
    }
}
