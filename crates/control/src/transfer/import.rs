//! From a stream of bytes into the array. Blocks of zeros are not written: the new content begins as zeros.
//!
//! What always holds: the array grants the memory for a piece before the piece is assembled, and pieces are written in
//! order. A piece is a window of [`BULK_BYTES_MAX`] of the volume.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use api::{BulkError, BulkOutput, BulkRequest, Credit};
use base::BLOCK_BYTES;
use base::limits::BULK_BYTES_MAX;
use bytes::BytesMut;

use super::{RunningTransfer, WINDOW};
use crate::array::{Array, BulkAnswer};

const PIECE: u64 = BULK_BYTES_MAX as u64;

/// An import under way.
pub(crate) struct Import {
    array: Arc<dyn Array>,
    moving: RunningTransfer,
    piece: Option<Gathered>,
    /// Writes that are not answered.
    writes: VecDeque<BulkAnswer>,
}

/// A piece that is being put together.
struct Gathered {
    start: u64,
    data: BytesMut,
    credit: Credit,
}

impl Import {
    pub(crate) fn new(array: Arc<dyn Array>, moving: RunningTransfer) -> Import {
        Import { array, moving, piece: None, writes: VecDeque::new() }
    }

    pub(crate) fn moving(&self) -> &RunningTransfer {
        &self.moving
    }

    /// Takes over bytes of the volume. Offsets never fall.
    pub(crate) async fn put(&mut self, mut offset_bytes: u64, mut data: &[u8]) -> Result<(), BulkError> {
        let size_bytes = self.moving.grant.size_bytes;
        if offset_bytes.checked_add(data.len() as u64).is_none_or(|end| end > size_bytes) {
            return Err(BulkError::OutOfRange);
        }
        while !data.is_empty() {
            let start = offset_bytes / PIECE * PIECE;
            let (now, later) = data.split_at(data.len().min((start + PIECE - offset_bytes) as usize));
            if self.piece.as_ref().is_some_and(|piece| piece.start != start) {
                self.write_piece().await?;
            }
            // most of a large hole in an image is long zeros
            if self.piece.is_some() || now.iter().any(|&byte| byte != 0) {
                let piece = self.piece_at(start).await?;
                let at = (offset_bytes - start) as usize;
                piece.data[at..at + now.len()].copy_from_slice(now);
            }
            (offset_bytes, data) = (offset_bytes + now.len() as u64, later);
        }
        Ok(())
    }

    async fn piece_at(&mut self, start: u64) -> Result<&mut Gathered, BulkError> {
        if self.piece.is_none() {
            let length_bytes = PIECE.min(self.moving.grant.size_bytes - start) as usize;
            let credit = BulkRequest::Credit { length_bytes };
            let BulkOutput::Credit(credit) = self.moving.ask(&*self.array, credit).await? else {
                unreachable!("credit gives credit")
            };
            self.piece = Some(Gathered { start, data: BytesMut::zeroed(length_bytes), credit });
        }
        Ok(self.piece.as_mut().expect("just made"))
    }

    /// Writes what is not zeros of the piece.
    async fn write_piece(&mut self) -> Result<(), BulkError> {
        let Some(Gathered { start, data, credit }) = self.piece.take() else { return Ok(()) };
        let data = data.freeze();
        for run in runs(&data) {
            while self.writes.len() >= WINDOW {
                self.await_write().await?;
            }
            let (offset_bytes, data) = (start + run.start as u64, vec![data.slice(run)]);
            let write = BulkRequest::Write { offset_bytes, data, credit: credit.clone() };
            self.writes.push_back(self.moving.send(&*self.array, write));
        }
        Ok(())
    }

    async fn await_write(&mut self) -> Result<(), BulkError> {
        match self.writes.pop_front() {
            Some(write) => write.await.map(drop),
            None => Ok(()),
        }
    }

    /// Everything was put: waits until it is written.
    pub(crate) async fn finish(&mut self) -> Result<(), BulkError> {
        self.write_piece().await?;
        while !self.writes.is_empty() {
            self.await_write().await?;
        }
        Ok(())
    }
}

/// The ranges of whole blocks that are not all zeros.
fn runs(data: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, block) in data.chunks(BLOCK_BYTES).enumerate() {
        if block.iter().all(|&byte| byte == 0) {
            continue;
        }
        let (start, end) = (index * BLOCK_BYTES, index * BLOCK_BYTES + block.len());
        match runs.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => runs.push(start..end),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_left_out() {
        let mut data = vec![0; 8 * BLOCK_BYTES];
        assert_eq!(runs(&data), []);
        data[0] = 1;
        data[5 * BLOCK_BYTES - 1] = 1;
        data[5 * BLOCK_BYTES] = 1;
        assert_eq!(runs(&data), [0..BLOCK_BYTES, 4 * BLOCK_BYTES..6 * BLOCK_BYTES]);
    }
}
