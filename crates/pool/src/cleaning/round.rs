//! One round of cleaning: finds the live blocks of some segments, finds the cost of moving them, and moves them.
//!
//! Blocks are moved in the order of the map, so each page of the map becomes dirty only once. The moves are
//! *conditional* entries: an entry applies only if the map still points at the old position.

use std::collections::BTreeSet;
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, LayerId};
use bytes::Bytes;
use task::join_all;

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::{BatchHeader, Entry};
use crate::format::page::{MapEntry, PageKey};
use crate::geometry::layout::Layout;
use crate::geometry::position::{Position, SegmentId};
use crate::lane::Lane;
use crate::log::queue::Ticket;
use crate::map::exposure::Exposure;
use crate::map::pages::SegmentPins;
use crate::map::tree::leaf;
use crate::space::shares::Shares;

/// Blocks that are read and appended together.
const SLICE_BLOCKS: usize = 1024;
/// Reads in flight at once.
const READS_AT_ONCE: usize = 32;

/// A block to be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    layer: LayerId,
    block: u64,
    entry: MapEntry,
}

/// Segments to be emptied, and the live blocks in them.
pub(crate) struct Round<'a> {
    pub victims: Vec<SegmentId>,
    pub moves: Vec<Live>,
    /// Map pages that the next checkpoint has to write anew.
    renewals: BTreeSet<PageKey>,
    /// All pages that become dirty.
    pages: Exposure,
    pins: SegmentPins<'a>,
}

impl<'a> Round<'a> {
    pub fn new(lane: &'a Lane) -> Round<'a> {
        Round {
            victims: Vec::new(),
            moves: Vec::new(),
            renewals: BTreeSet::new(),
            pages: Exposure::default(),
            pins: SegmentPins::new(lane),
        }
    }

    /// The maximum number of segments that the round takes before it frees any, with `more` blocks added to it.
    pub fn cost_with(&self, more: usize, layers: usize, shares: &Shares) -> usize {
        2 + self.blocks_with(more, layers, shares).div_ceil(shares.packed)
    }

    /// Blocks that the round writes: the moved ones, including `more`, and those of its checkpoints.
    pub fn blocks_with(&self, more: usize, layers: usize, shares: &Shares) -> usize {
        let pages = self.pages.len();
        let checkpoints = 1 + pages / (shares.dirty_max / 2).max(1);
        self.moves.len() + more + pages + checkpoints * shares.checkpoint_blocks(layers)
    }

    /// The number of segments gained by the round.
    pub fn gain(&self, layers: usize, shares: &Shares) -> isize {
        self.victims.len() as isize - self.cost_with(0, layers, shares) as isize
    }
}

impl Lane {
    /// Adds a segment to a round with all its live blocks. A segment whose headers cannot be read is left alone.
    pub(crate) async fn survey(&self, id: SegmentId, round: &mut Round<'_>) -> Result<(), LaneError> {
        let (columns, used_rows, last, sound) = {
            let segments = self.segments.borrow();
            // a checkpoint may have freed the segment since it was chosen
            let Some(segment) = segments.find(id) else { return Ok(()) };
            (segment.columns.clone(), segment.used_rows as usize, segment.last, segment.lacking.is_nothing())
        };
        round.pins.pin(id);
        let mut row = 0;
        while row < used_rows {
            self.check_running()?;
            let header = match sound {
                true => self.read_header(&columns, row).await,
                // a drive may have missed the last write
                false => self.read_last_header(&columns, row).await,
            };
            let Some(header) = header.filter(|header| header.sequence <= last) else {
                self.leave(id);
                return Ok(());
            };
            self.survey_batch(&header, round).await?;
            row += usize::from(header.rows);
        }
        round.victims.push(id);
        Ok(())
    }

    async fn survey_batch(&self, header: &BatchHeader, round: &mut Round<'_>) -> Result<(), LaneError> {
        for (slot, entry) in header.data() {
            let Some(page) =
                pass_lost(self.survey_entry(entry, header.position(slot), round).await)?.flatten()
            else {
                continue;
            };
            let height = self.map.borrow().layers.get(&page.layer).map_or(page.level, |layer| layer.height);
            round.pages.add(page, height);
        }
        Ok(())
    }

    /// Adds a live block to the round, and returns the page that becomes dirty.
    pub(crate) async fn survey_entry(
        &self,
        entry: &Entry,
        position: Position,
        round: &mut Round<'_>,
    ) -> Result<Option<PageKey>, LaneError> {
        match *entry {
            Entry::Data { layer, block, crc } | Entry::Move { layer, block, crc, .. } => {
                let Some(layer) = self.owner(layer, block, position).await? else { return Ok(None) };
                round.moves.push(Live { layer, block, entry: MapEntry { position, crc } });
                Ok(Some(leaf(layer, block).0))
            }
            Entry::Page { layer, level, index, .. } => {
                let key = PageKey { layer, level, index };
                if !self.stands_at(key, position).await? {
                    return Ok(None);
                }
                round.renewals.insert(key);
                Ok(Some(key))
            }
            Entry::Table { .. }
            | Entry::Unmap { .. }
            | Entry::Layer { .. }
            | Entry::Drop { .. }
            | Entry::Merge { .. }
            | Entry::Merged { .. }
            | Entry::Refer { .. } => Ok(None),
        }
    }

    /// Whether a map page is at this position.
    async fn stands_at(&self, key: PageKey, position: Position) -> Result<bool, LaneError> {
        let root = self.map.borrow().layers.get(&key.layer).map(|layer| (layer.height, layer.root));
        let Some((height, root)) = root else { return Ok(false) };
        if key.level >= height {
            return Ok(root.position == position && key.index == 0 && key.level == height);
        }
        let parent = key.parent();
        if !self.ensure_page(parent).await? {
            return Ok(false);
        }
        let map = self.map.borrow();
        Ok(map.cached(parent).is_some_and(|page| page.entry(key.entry_in_parent()).position == position))
    }

    /// Moves all live blocks of the round's segments. `false` if space ran out before all of them were moved.
    pub(crate) async fn move_round(
        self: &Rc<Self>,
        round: Round<'_>,
        repair: bool,
    ) -> Result<bool, LaneError> {
        let Round { victims, mut moves, renewals, pins, .. } = round;
        for key in renewals {
            pass_lost(self.renew_page(key).await)?;
        }
        moves.sort_unstable_by_key(|live| (live.layer, live.block));
        let mut rest = &moves[..];
        while !rest.is_empty() {
            let shares = self.shares();
            let (slice, pages) = first_slice(rest, shares.dirty_max / 2);
            rest = &rest[slice.len()..];
            if !self.make_ready(slice.len(), pages).await? {
                return Ok(false);
            }
            let piece = self.begin_repair();
            self.move_slice(slice).await?;
            if repair {
                self.counters.borrow_mut().blocks_restored += slice.len() as u64;
                self.end_repair(piece).await;
            }
        }
        self.counters.borrow_mut().segments_cleaned += victims.len() as u64;
        drop(pins);
        Ok(true)
    }

    /// Makes the next checkpoint write a page anew.
    async fn renew_page(&self, key: PageKey) -> Result<(), LaneError> {
        if self.map.borrow().exposed_pages() >= self.shares().dirty_max {
            self.write_checkpoint().await?;
        }
        if self.map.borrow().layers.contains_key(&key.layer) && self.ensure_for_change(key).await? {
            let mut map = self.map.borrow_mut();
            if map.cached(key).is_some() {
                map.touch_dirty(key);
            }
        }
        Ok(())
    }

    /// Ensures that this many blocks can be moved: into segments that replay knows, with the number of dirty pages
    /// bounded, and without the room that checkpoints need. `false` if this is impossible.
    pub(crate) async fn make_ready(&self, blocks: usize, pages: usize) -> Result<bool, LaneError> {
        for tried in [false, true] {
            self.check_running()?;
            let shares = self.shares();
            let wanted = 1 + blocks.div_ceil(shares.packed);
            let listed = self.segments.borrow().queue().len() >= wanted;
            let bounded = self.map.borrow().exposed_pages() + pages <= shares.dirty_max;
            let room = shares.room > shares.checkpoint + wanted + pages.div_ceil(shares.packed);
            // dirty pages that hosts' writes hold cannot be waited for: the bound may be exceeded by one slice
            if room && listed && (bounded || tried) {
                return Ok(true);
            }
            if !tried {
                self.write_checkpoint().await?;
            }
        }
        Ok(false)
    }

    async fn move_slice(&self, slice: &[Live]) -> Result<(), LaneError> {
        let contents = self.read_slice(slice).await;
        let ticket = Ticket::new(&self.io);
        let appended = self.append_moves(slice, contents, &ticket).await;
        ticket.end(appended).await
    }

    async fn append_moves(
        &self,
        slice: &[Live],
        contents: Vec<Option<Bytes>>,
        ticket: &Rc<Ticket>,
    ) -> Result<(), LaneError> {
        for (live, content) in slice.iter().zip(contents) {
            // damage beyond repair stays where it is, and a read of it returns the error
            if let Some(content) = content {
                self.counters.borrow_mut().blocks_cleaned += 1;
                self.append_move(live.layer, live.block, live.entry, content, ticket).await?;
            }
        }
        Ok(())
    }

    /// The blocks' bytes, in order; adjacent blocks of a column are read together.
    async fn read_slice(&self, slice: &[Live]) -> Vec<Option<Bytes>> {
        let mut order: Vec<usize> = (0..slice.len()).collect();
        order.sort_unstable_by_key(|&index| slice[index].entry.position);
        let runs: Vec<&[usize]> = order
            .chunk_by(|&one, &next| self.follows(slice[one].entry.position, slice[next].entry.position))
            .collect();
        let mut contents = vec![None; slice.len()];
        for some in runs.chunks(READS_AT_ONCE) {
            let reads = some.iter().map(|run| self.read_some(slice, run));
            for (run, blocks) in some.iter().zip(join_all(reads).await) {
                run.iter().zip(blocks).for_each(|(&which, block)| contents[which] = block);
            }
        }
        contents
    }

    /// Whether one block is directly below the other, in the same column of the same batch.
    fn follows(&self, one: Position, next: Position) -> bool {
        let segments = self.segments.borrow();
        let shape = segments.get(one.segment()).columns.shape();
        one.0 + 1 == next.0
            && Layout::of_position(shape, one)
                .is_some_and(|layout| layout.place(one.slot()).0 == layout.place(next.slot()).0)
    }

    /// Reads blocks that are below each other, in one read. If one of them can neither be read nor rebuilt, the others
    /// are read one by one.
    async fn read_some(&self, slice: &[Live], run: &[usize]) -> Vec<Option<Bytes>> {
        let id = slice[run[0]].entry.position.segment();
        let columns = self.segments.borrow().get(id).columns.clone();
        let entries: Vec<MapEntry> = run.iter().map(|&index| slice[index].entry).collect();
        if let Ok((buffer, _)) = self.read_run(&columns, &entries).await {
            let bytes = buffer.into_bytes();
            let block = |index| bytes.slice(index * BLOCK_BYTES..(index + 1) * BLOCK_BYTES);
            return (0..run.len()).map(|index| Some(block(index))).collect();
        }
        let mut blocks = vec![None; run.len()];
        for (block, &entry) in blocks.iter_mut().zip(&entries).filter(|_| entries.len() > 1) {
            *block = self.read_entry(&columns, entry).await.ok().map(AlignedBuffer::into_bytes);
        }
        self.note_loss(id);
        blocks
    }
}

/// `None` if a page of the map is lost: the blocks that it names stay where they are, and their segment is left alone.
fn pass_lost<T>(result: Result<T, LaneError>) -> Result<Option<T>, LaneError> {
    match result {
        Err(LaneError::Unreadable { .. }) => {
            Decision::LostPagePassed.taken();
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// The first blocks of `moves` that can be moved together, and how many leaf pages they make dirty.
fn first_slice(moves: &[Live], pages_max: usize) -> (&[Live], usize) {
    let (mut pages, mut last) = (0, None);
    let mut length = 0;
    for live in moves.iter().take(SLICE_BLOCKS) {
        let (key, _) = leaf(live.layer, live.block);
        if last != Some(key) {
            if pages == pages_max.max(1) {
                break;
            }
            (pages, last) = (pages + 1, Some(key));
        }
        length += 1;
    }
    (&moves[..length], pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_bounded_by_pages_and_blocks() {
        let live = |block| Live { layer: LayerId(3), block, entry: MapEntry::ABSENT };
        let sparse: Vec<Live> = (0..10).map(|index| live(index * 256)).collect();
        assert_eq!(first_slice(&sparse, 4).0.len(), 4);
        assert_eq!(first_slice(&sparse[8..], 4).1, 2);
        let dense: Vec<Live> = (0..5000).map(live).collect();
        let (slice, pages) = first_slice(&dense, 4);
        assert_eq!((slice.len(), pages), (1024, 4));
        assert_eq!(first_slice(&dense, 0).0.len(), 256);
    }
}
