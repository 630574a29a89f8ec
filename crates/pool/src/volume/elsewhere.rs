//! Follows references: a lane answers which block a reference names, and the volume, which knows all lanes, reads it
//! there.

use base::BLOCK_BYTES;
use block::Payload;
use bytes::Bytes;
use task::join_all;

use super::{PAGE, Piece, PoolVolume};
use crate::error::LaneError;
use crate::layers::references::{Elsewhere, ReferencedContent, filled};
use crate::requests::request::{LaneOutput, LaneRequest, LaneResult};

/// How often a request restarts because a referred block is gone or has changed.
const ATTEMPTS: u32 = 16;

impl PoolVolume {
    /// Carries out a piece's request, and supplies the content of referred blocks if the lane needs it.
    pub(super) async fn send(&self, piece: &Piece, request: LaneRequest) -> LaneResult {
        match request {
            LaneRequest::WritePart { .. } | LaneRequest::CompareAndWrite { .. } => {
                Box::pin(self.send_knowing(piece, request)).await
            }
            request => self.lanes[piece.lane].execute(request).await,
        }
    }

    async fn send_knowing(&self, piece: &Piece, mut request: LaneRequest) -> LaneResult {
        for _ in 0..ATTEMPTS {
            match self.lanes[piece.lane].execute(request.clone()).await {
                Err(LaneError::Elsewhere) => {}
                result => return result,
            }
            let found = self.known(piece).await?;
            match &mut request {
                LaneRequest::WritePart { known, .. } | LaneRequest::CompareAndWrite { known, .. } => {
                    *known = found;
                }
                _ => unreachable!("only these ask what is elsewhere"),
            }
        }
        Err(LaneError::Unavailable)
    }

    /// The content of a piece's blocks that are references.
    async fn known(&self, piece: &Piece) -> Result<Vec<ReferencedContent>, LaneError> {
        let (pieces, elsewhere) = self.read_own(piece).await?;
        let whole = self.filled(piece, pieces, elsewhere.clone()).await?;
        let blocks = elsewhere.iter().flat_map(|part| (0..part.blocks).map(move |index| (part, index)));
        let known = blocks.map(|(part, index)| {
            let at = (part.first + index) * BLOCK_BYTES;
            let content = Bytes::from(whole.slice(at..at + BLOCK_BYTES).to_vec());
            ReferencedContent { reference: part.to.plus(index as u64), content }
        });
        Ok(known.collect())
    }

    async fn read_own(&self, piece: &Piece) -> Result<(Payload, Vec<Elsewhere>), LaneError> {
        let read = LaneRequest::Read { layer: self.layer, block: piece.block, blocks: piece.blocks() };
        match self.lanes[piece.lane].execute(read).await? {
            LaneOutput::Data(pieces) => Ok((pieces, Vec::new())),
            LaneOutput::Parts(pieces, elsewhere) => Ok((pieces, elsewhere)),
            _ => unreachable!("a read gives data"),
        }
    }

    /// Fills referred blocks into what a lane has read of a piece.
    pub(super) async fn filled(
        &self,
        piece: &Piece,
        mut pieces: Payload,
        mut elsewhere: Vec<Elsewhere>,
    ) -> Result<Payload, LaneError> {
        for _ in 0..ATTEMPTS {
            match self.read_elsewhere(piece, &elsewhere).await {
                Ok(parts) => return Ok(filled(pieces, parts)),
                Err(LaneError::NoSuchLayer) => {}
                Err(error) => return Err(error),
            }
            // overwritten since, or the lane's base is out of date
            let (layer, block, blocks) = (self.layer, piece.block, piece.blocks());
            self.lanes[piece.lane].execute(LaneRequest::RebuildBases { layer, block, blocks }).await?;
            (pieces, elsewhere) = self.read_own(piece).await?;
        }
        Err(LaneError::Unreadable { block: piece.block })
    }

    async fn read_elsewhere(
        &self,
        piece: &Piece,
        elsewhere: &[Elsewhere],
    ) -> Result<Vec<(usize, Payload)>, LaneError> {
        let parts: Vec<Elsewhere> = elsewhere.iter().flat_map(|part| within_pages(*part)).collect();
        let reads = parts.iter().map(|part| async move {
            let (lane, block) = part.to.place(self.lanes.len());
            let (layer, blocks) = (part.to.layer, part.blocks as u64);
            let read = self.lanes[lane].execute(LaneRequest::ReadReferred { layer, block, blocks }).await;
            let here = piece.block + part.first as u64;
            match read {
                Ok(LaneOutput::Data(pieces)) => Ok((part.first, pieces)),
                // references are one level deep: no reference names a reference
                Ok(_) => Err(LaneError::Unreadable { block: here }),
                Err(LaneError::Unreadable { block: at }) => {
                    Err(LaneError::Unreadable { block: here + at.saturating_sub(block) })
                }
                Err(error) => Err(error),
            }
        });
        join_all(reads).await.into_iter().collect()
    }
}

/// The parts of a range that are in one page of one lane each.
fn within_pages(part: Elsewhere) -> impl Iterator<Item = Elsewhere> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let to = part.to.plus(at as u64);
        let blocks = (part.blocks - at).min((PAGE - to.block % PAGE) as usize);
        let next = Elsewhere { first: part.first + at, blocks, to };
        at += blocks;
        (blocks > 0).then_some(next)
    })
}
