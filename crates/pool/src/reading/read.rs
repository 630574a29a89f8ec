//! Reading blocks of a layer.

use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId};
use block::Payload;
use bytes::Bytes;
use smallvec::SmallVec;
use task::join_all;

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::page::MapEntry;
use crate::geometry::layout::Layout;
use crate::geometry::position::Position;
use crate::lane::Lane;
use crate::layers::references::{Elsewhere, ReferencedContent, elsewhere, filled};
use crate::log::queue::{Pending, Source, Ticket};
use crate::map::pages::SegmentPins;
use crate::map::tree::leaf;

static ZEROS: [u8; 256 * BLOCK_BYTES] = [0; 256 * BLOCK_BYTES];

/// Shared zeros.
pub(crate) fn zeros(blocks: usize) -> Payload {
    let whole = ZEROS.len() / BLOCK_BYTES;
    let piece = |blocks: usize| Bytes::from_static(&ZEROS[..blocks * BLOCK_BYTES]);
    // an empty piece counts as none
    (0..blocks / whole).map(|_| whole).chain([blocks % whole]).map(piece).collect()
}

/// What a lane has read of some blocks: zeros for blocks that are elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub pieces: Payload,
    pub elsewhere: Vec<Elsewhere>,
}

/// What was read, with the known content of blocks that are elsewhere filled in.
pub(crate) fn with_known(read: Read, known: &[ReferencedContent]) -> Result<Payload, LaneError> {
    if read.elsewhere.is_empty() {
        return Ok(read.pieces);
    }
    let mut parts = Vec::new();
    for part in &read.elsewhere {
        for index in 0..part.blocks {
            let reference = part.to.plus(index as u64);
            let found = known.iter().find(|known| known.reference == reference);
            parts.push((part.first + index, found.ok_or(LaneError::Elsewhere)?.content.clone().into()));
        }
    }
    Decision::ReferenceTold.taken();
    Ok(filled(read.pieces, parts))
}

/// Blocks of a request that are read together: all zeros, or adjacent in one column of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Index of the first block within the request.
    first: usize,
    blocks: usize,
    /// The position of the first block; `None` for zeros.
    position: Option<Position>,
}

impl Lane {
    /// Reads whole blocks; the pieces are in order, unmapped blocks are zeros.
    pub(crate) async fn read_blocks(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<Read, LaneError> {
        self.read_blocks_of(layer, block, blocks, |_, _| Ok(())).await
    }

    /// Like [`Lane::read_blocks`]; the layer must `be_there` in the step that determines its blocks' positions.
    pub(crate) async fn read_blocks_of(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
        be_there: fn(&Lane, LayerId) -> Result<(), LaneError>,
    ) -> Result<Read, LaneError> {
        loop {
            let mut pins = SegmentPins::new(self);
            let entries = self.resolve(layer, block, blocks, &mut pins).await?;
            be_there(self, layer)?;
            match self.read_entries(layer, block, &entries).await {
                Err(LaneError::Unreadable { block: at }) => {
                    let entry = entries[(at - block) as usize];
                    let in_doubt = self.map.borrow().stands_on_another(layer);
                    if !in_doubt || !self.is_elsewhere(layer, at, entry).await? {
                        self.note_loss(entry.position.segment());
                        return Err(LaneError::Unreadable { block: at });
                    }
                }
                result => {
                    self.counters.borrow_mut().blocks_read += blocks;
                    return result.map(|pieces| Read { pieces, elsewhere: elsewhere(&entries) });
                }
            }
        }
    }

    async fn read_entries(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        entries: &[MapEntry],
    ) -> Result<Payload, LaneError> {
        let runs = self.runs(entries);
        if let [run] = runs[..] {
            return self.read_one_run(layer, block, run, entries).await;
        }
        let reads = runs.iter().map(|run| self.read_one_run(layer, block, *run, entries));
        let mut all = Payload::new();
        for read in join_all(reads).await {
            read?.into_iter().for_each(|piece| all.push(piece));
        }
        Ok(all)
    }

    async fn read_one_run(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        run: Run,
        entries: &[MapEntry],
    ) -> Result<Payload, LaneError> {
        let Some(position) = run.position else { return Ok(zeros(run.blocks)) };
        let columns = self.segments.borrow().get(position.segment()).columns.clone();
        let entries = &entries[run.first..run.first + run.blocks];
        let first = block + run.first as u64;
        match self.read_run(&columns, entries).await {
            Ok((buffer, rebuilt)) => {
                let bytes = buffer.lend();
                for index in rebuilt {
                    let content = bytes.slice(index * BLOCK_BYTES..(index + 1) * BLOCK_BYTES);
                    self.heal(layer, first + index as u64, entries[index], content);
                }
                Ok(bytes.into())
            }
            Err((index, _)) => Err(LaneError::Unreadable { block: first + index as u64 }),
        }
    }

    /// Splits resolved entries into runs.
    fn runs(&self, entries: &[MapEntry]) -> SmallVec<[Run; 2]> {
        let segments = self.segments.borrow();
        let place = |position: Position| {
            let shape = segments.find(position.segment())?.columns.shape();
            Some((Layout::of_position(shape, position)?.place(position.slot()), position))
        };
        let mut runs: SmallVec<[Run; 2]> = SmallVec::new();
        for (index, entry) in entries.iter().enumerate() {
            let position = Some(entry.position).filter(|position| position.is_stored());
            let joins = runs.last().is_some_and(|run: &Run| match (run.position, position) {
                (None, None) => true,
                (Some(start), Some(next)) => {
                    let same_batch = start.0 >> 8 == next.0 >> 8 && next.slot() == start.slot() + run.blocks;
                    let role = |position| place(position).map(|((role, _), _)| role);
                    same_batch && role(start).is_some() && role(start) == role(next)
                }
                _ => false,
            });
            match runs.last_mut() {
                Some(run) if joins => run.blocks += 1,
                _ => runs.push(Run { first: index, blocks: 1, position }),
            }
        }
        runs
    }

    /// Appends a rebuilt block anew, if the map still points at the bad one. Blocks on drives that are out are not
    /// repaired in this way: rebuilding repairs them segment by segment.
    fn heal(self: &Rc<Self>, layer: LayerId, block: u64, entry: MapEntry, content: Bytes) {
        let offline = {
            let segments = self.segments.borrow();
            let segment = segments.get(entry.position.segment());
            let layout = Layout::of_position(segment.columns.shape(), entry.position);
            let column = layout.and_then(|layout| {
                segment.columns.columns[layout.column(layout.place(entry.position.slot()).0)]
            });
            column.is_none_or(|column| !segments.is_online(column.drive))
        };
        // if space is short it is reserved for cleaning: the next read finds the block again
        if offline || self.check_running().is_err() || self.must_wait_for_space() {
            Decision::HealLeft.taken();
            return;
        }
        let lane = self.clone();
        self.spawn(async move {
            if lane.move_block(layer, block, entry, content).await.is_ok() {
                // the next reader must find the good block, in whichever layer it is
                lane.forget_base(layer, block);
                lane.counters.borrow_mut().blocks_healed += 1;
            }
        });
    }

    /// Appends a conditional copy of a block, in the layer that owns it, and waits for its commit.
    pub(crate) async fn move_block(
        &self,
        layer: LayerId,
        block: u64,
        entry: MapEntry,
        content: Bytes,
    ) -> Result<(), LaneError> {
        let mut owner = Some(self.map.borrow().named(layer));
        while let Some(layer) = owner {
            self.ensure_page(leaf(layer, block).0).await?;
            if self.points_at(layer, block, entry.position) {
                let ticket = Ticket::new(&self.io);
                self.append_move(layer, block, entry, content, &ticket).await?;
                return ticket.wait().await;
            }
            owner = self.map.borrow().layers.get(&layer).and_then(|layer| layer.parent);
        }
        Ok(())
    }

    /// Appends a conditional copy of a block.
    pub(crate) async fn append_move(
        &self,
        layer: LayerId,
        block: u64,
        entry: MapEntry,
        content: Bytes,
        ticket: &Rc<Ticket>,
    ) -> Result<(), LaneError> {
        let (key, _) = leaf(layer, block);
        self.pin_page(key, 1).await?;
        let entry = Entry::Move { layer, block, crc: entry.crc, from: entry.position };
        let source = Some(Source::Block(content));
        self.append(Pending { source, ..Pending::bare(entry, Some(key), ticket) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::reference::Reference;

    #[test]
    fn zeros_of_any_length() {
        for blocks in [1, 255, 256, 257, 1024] {
            let pieces = zeros(blocks);
            assert_eq!(pieces.len(), blocks * BLOCK_BYTES);
        }
    }

    #[test]
    fn only_what_is_known_of_the_very_reference_is_told() {
        let to = Reference { layer: LayerId(9), block: 700 };
        let entries = [MapEntry::ZERO, MapEntry::referring(to), MapEntry::referring(to.plus(1))];
        let parts = elsewhere(&entries);
        assert_eq!(parts, [Elsewhere { first: 1, blocks: 2, to }]);
        let read = || Read { pieces: vec![0; 3 * BLOCK_BYTES].into(), elsewhere: parts.clone() };
        let known = |reference, byte: u8| ReferencedContent {
            reference,
            content: Bytes::from(vec![byte; BLOCK_BYTES]),
        };
        let all = [known(to, 1), known(to.plus(1), 2)];
        let whole = with_known(read(), &all).expect("all is known").to_vec();
        assert_eq!((whole[0], whole[BLOCK_BYTES], whole[2 * BLOCK_BYTES]), (0, 1, 2));
        assert_eq!(with_known(read(), &all[..1]).err(), Some(LaneError::Elsewhere));
        let other = Reference { layer: LayerId(10), ..to };
        assert_eq!(with_known(read(), &[known(other, 1), all[1].clone()]).err(), Some(LaneError::Elsewhere));
    }
}
