//! Copies between volumes of the pool, or within one volume, by references.

use base::{BLOCK_BYTES, LayerId};
use block::BlockError;
use task::join_all;

use super::{Piece, Pieces, PoolVolume};
use crate::geometry::reference::Reference;
use crate::layers::references::{BlockOwner, OwnedRun};
use crate::requests::request::{LaneOutput, LaneRequest};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Stretches are copied one after the other; the references within one stretch are made at the same time.
const AT_ONCE_BYTES: u64 = 16 << 20;
/// Changes of references in flight at the same time.
const CHANGES_AT_ONCE: usize = 64;

/// A stretch of a copy; bytes are whole blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyRange {
    pub source_bytes: u64,
    pub destination_bytes: u64,
    pub length_bytes: u64,
}

impl CopyRange {
    /// Whether it begins and ends with whole blocks on both sides: only whole blocks can be referred to.
    pub fn is_whole(&self) -> bool {
        [self.source_bytes, self.destination_bytes, self.length_bytes]
            .iter()
            .all(|at| at.is_multiple_of(BLOCK))
    }

    fn part(&self, at: u64, length_bytes: u64) -> CopyRange {
        CopyRange {
            source_bytes: self.source_bytes + at,
            destination_bytes: self.destination_bytes + at,
            length_bytes,
        }
    }
}

/// Which layers decide the content of a range of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    /// The layer directly below the volume's layer, if it can be referred to and is the same in all lanes.
    pub below: Option<LayerId>,
    /// Blocks that cannot be referred to.
    pub above_blocks: u64,
    /// Mapped blocks.
    pub mapped_blocks: u64,
}

impl PoolVolume {
    /// Which layers decide the content of a range of whole blocks.
    pub async fn survey(&self, start_bytes: u64, length_bytes: u64) -> Result<Survey, BlockError> {
        let mut survey = Survey::default();
        let (pieces, answers) = self.owners(start_bytes, length_bytes, None).await?;
        for (index, (below, runs)) in answers.iter().enumerate() {
            survey.below = below.filter(|_| index == 0 || survey.below == *below);
            for run in runs {
                survey.above_blocks += if run.owner == BlockOwner::Above { run.blocks } else { 0 };
                survey.mapped_blocks += if run.owner == BlockOwner::Nobody { 0 } else { run.blocks };
            }
        }
        debug_assert_eq!(pieces.len(), answers.len());
        Ok(survey)
    }

    async fn owners(
        &self,
        start_bytes: u64,
        length_bytes: u64,
        below: Option<LayerId>,
    ) -> Result<(Pieces, Vec<(Option<LayerId>, Vec<OwnedRun>)>), BlockError> {
        let pieces = self.split(start_bytes, length_bytes);
        let layer = self.layer;
        let request =
            |piece: &Piece| LaneRequest::Owners { layer, below, block: piece.block, blocks: piece.blocks() };
        let answers = self.on_pieces(&pieces, request).await?.into_iter().map(|output| match output {
            LaneOutput::Owners(below, runs) => (below, runs),
            _ => unreachable!("owners were asked for"),
        });
        Ok((pieces, answers.collect()))
    }

    /// Makes a range equal to the source's by references, as far as possible. It refers to blocks that `below` decides, a
    /// frozen layer below the source's, and to blocks that the source itself refers to. Durable when this ends. Returns
    /// what nothing can refer to: its data has to be copied. The ranges must not overlap.
    ///
    /// The caller keeps `below`, and everything that references in the pool name, until this ends. After that it keeps
    /// `below` as long as something refers to it.
    pub async fn copy_from(
        &self,
        source: &PoolVolume,
        range: CopyRange,
        below: Option<LayerId>,
    ) -> Result<Vec<CopyRange>, BlockError> {
        assert!(range.is_whole() && self.lanes.len() == source.lanes.len());
        let (mut left, mut at) = (Vec::new(), 0);
        while at < range.length_bytes {
            let length = (range.length_bytes - at).min(AT_ONCE_BYTES);
            left.extend(self.copy_some(source, range.part(at, length), below).await?);
            at += length;
        }
        Ok(left)
    }

    async fn copy_some(
        &self,
        source: &PoolVolume,
        range: CopyRange,
        below: Option<LayerId>,
    ) -> Result<Vec<CopyRange>, BlockError> {
        let (pieces, answers) = source.owners(range.source_bytes, range.length_bytes, below).await?;
        let (mut changes, mut data) = (Vec::new(), Vec::new());
        for (piece, (_, runs)) in pieces.iter().zip(answers) {
            let mut at = 0;
            for run in runs {
                let part = range.part(piece.at_bytes as u64 + at * BLOCK, run.blocks * BLOCK);
                let own = |layer| Reference::to(layer, piece.lane, source.lanes.len(), piece.block + at);
                match (run.owner, below) {
                    (BlockOwner::Below, Some(layer)) => changes.push((part, Some(own(layer)))),
                    (BlockOwner::Elsewhere(to), _) => changes.push((part, Some(to))),
                    (BlockOwner::Nobody, _) => changes.push((part, None)),
                    (BlockOwner::Above, _) | (BlockOwner::Below, None) => data.push(part),
                }
                at += run.blocks;
            }
        }
        let change = |(part, to): (CopyRange, Option<Reference>)| async move {
            match to {
                Some(to) => self.refer(part, to).await,
                None => self.clear(part).await,
            }
        };
        // each future that continues polls all that it waits for
        let mut left = changes.into_iter();
        while left.len() > 0 {
            let some = join_all(left.by_ref().take(CHANGES_AT_ONCE).map(change)).await;
            some.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(data)
    }

    async fn refer(&self, range: CopyRange, to: Reference) -> Result<(), BlockError> {
        let layer = self.layer;
        let pieces = self.split(range.destination_bytes, range.length_bytes);
        let request = |piece: &Piece| LaneRequest::Refer {
            layer,
            block: piece.block,
            blocks: piece.blocks(),
            to: to.plus(piece.at_bytes as u64 / BLOCK),
        };
        self.on_pieces(&pieces, request).await.map(drop)
    }

    async fn clear(&self, range: CopyRange) -> Result<(), BlockError> {
        let (layer, durable) = (self.layer, true);
        let pieces = self.split(range.destination_bytes, range.length_bytes);
        let request =
            |piece: &Piece| LaneRequest::Unmap { layer, block: piece.block, blocks: piece.blocks(), durable };
        self.on_pieces(&pieces, request).await.map(drop)
    }
}
