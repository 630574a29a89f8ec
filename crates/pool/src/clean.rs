//! Cleaning: live blocks of a segment are appended anew, as conditional entries, until nothing in the
//! segment is live; the next checkpoint frees it. Map pages are rewritten by that checkpoint.
//!
//! Emptying dropped layers is done here too: it is the other way of making garbage in the background.

use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId, Nanos, Sequence};
use bytes::Bytes;

use crate::format::header::{BatchHeader, ENTRIES_MAX, Entry};
use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey};
use crate::format::table::SegmentColumns;
use crate::lane::{Lane, LaneError};
use crate::layout::Layout;
use crate::log::Ticket;
use crate::map::{leaf, stored};
use crate::pages::SegmentPins;
use crate::position::{Position, SegmentId};
use crate::segments::SegmentState;

/// Segments cleaned before their space is claimed by a checkpoint.
const VICTIMS_AT_ONCE: usize = 4;

/// Blocks collected before they are appended: together they fill batches, one by one they would take a row
/// each, and cleaning would use as much as it frees.
const MOVES_AT_ONCE: usize = 4 * ENTRIES_MAX;

/// A block that is to be moved.
struct Live {
    layer: LayerId,
    block: u64,
    entry: MapEntry,
}

/// Blocks that have been read and not yet appended.
type Moves = Vec<(Live, Bytes)>;

impl Lane {
    /// Runs until the lane fails or is closed.
    pub(crate) async fn run_cleaning(self: Rc<Self>) {
        while !self.has_ended() {
            let worked = match self.dropping_layer() {
                Some(layer) => self.empty_layer(layer).await,
                None => self.clean_some().await,
            };
            match worked {
                Ok(true) => {}
                Ok(false) => self.background.wait().await,
                Err(_) => self.io.sleep(Nanos::from_millis(100)).await,
            }
        }
    }

    /// Starts one after the other take a segment or two each: they must not use up what cleaning needs.
    pub(crate) async fn clean_until_there_is_room(self: &Rc<Self>) {
        while self.is_scarce() && matches!(self.clean_some().await, Ok(true)) {}
    }

    fn dropping_layer(&self) -> Option<LayerId> {
        let map = self.map.borrow();
        let emptied = |id: &LayerId| {
            map.layer(*id).mapped == 0 && map.layer(*id).root == MapEntry::ABSENT && map.is_unused(*id)
        };
        map.layers.iter().find(|(id, layer)| layer.dropping && !emptied(id)).map(|(&id, _)| id)
    }

    /// Cleans a few segments if that is called for, and frees them. `false` where there was nothing to do.
    async fn clean_some(self: &Rc<Self>) -> Result<bool, LaneError> {
        let victims = self.victims();
        if victims.is_empty() {
            return self.find_space().await;
        }
        let mut moves = Moves::new();
        for &victim in &victims {
            self.clean_segment(victim, &mut moves).await?;
        }
        self.append_moves(moves).await?;
        self.write_checkpoint().await?;
        let mut segments = self.segments.borrow_mut();
        for id in victims {
            // what could not be moved now could not be moved the next time either
            if segments.find(id).is_some_and(|segment| segment.live > 0) {
                segments.get_mut(id).stuck = true;
            }
        }
        Ok(true)
    }

    /// Writes wait, and there is nothing to clean: a checkpoint may free what is empty by now. Where even
    /// that does not help, everything is live, and writes are refused until something is unmapped.
    async fn find_space(&self) -> Result<bool, LaneError> {
        if !self.must_wait_for_space() || self.starved.get() {
            return Ok(false);
        }
        self.write_checkpoint().await?;
        if self.must_wait_for_space() && self.victims().is_empty() {
            if self.log.borrow().is_idle() {
                self.starved.set(true);
                self.space.notify();
                return Ok(false);
            }
            self.io.sleep(Nanos::from_millis(1)).await;
        }
        Ok(true)
    }

    /// The segments to be cleaned next: those that lack redundancy, then (where space is wanted) those that
    /// give most for their cost, the older the better.
    fn victims(&self) -> Vec<SegmentId> {
        let wanted = self.wants_cleaning();
        let settled = self.checkpoint.borrow().sequence;
        let segments = self.segments.borrow();
        let candidates = segments.iter().filter(|(_, segment)| {
            segment.state == SegmentState::Sealed
                && !segment.stuck
                && segment.live > 0
                && segment.last <= settled
        });
        let full = segments.packed_blocks() as u64;
        let newest = self.log.borrow().newest.0;
        let gain = |live: u64, last: Sequence| {
            full.saturating_sub(live) * (newest - last.0.min(newest) + 1000) / (full + live)
        };
        let mut ranked: Vec<(bool, u64, SegmentId)> = candidates
            .filter(|(_, segment)| segment.incomplete || (wanted && u64::from(segment.live) * 16 < full * 15))
            .map(|(&id, segment)| (segment.incomplete, gain(u64::from(segment.live), segment.last), id))
            .collect();
        ranked.sort_unstable_by_key(|&(incomplete, gain, id)| (std::cmp::Reverse((incomplete, gain)), id));
        // no more than what there is room for before the next checkpoint frees something: each moved block may
        // cost a map page and the page above it besides
        let listed = segments.queue().len() as u64 * full;
        let room = (segments.room() as u64).saturating_sub(1) * full;
        let mut left = listed.min(room / 3);
        let fits = |&(_, _, id): &(bool, u64, SegmentId)| {
            let live = u64::from(segments.get(id).live);
            let fits = live <= left;
            left = left.saturating_sub(live);
            fits
        };
        ranked.into_iter().take(VICTIMS_AT_ONCE).filter(fits).map(|(_, _, id)| id).collect()
    }

    /// Moves everything live out of a segment; the last of it stays in `moves`.
    async fn clean_segment(self: &Rc<Self>, id: SegmentId, moves: &mut Moves) -> Result<(), LaneError> {
        let mut pins = SegmentPins::new(self);
        let (columns, used_rows, last) = {
            let segments = self.segments.borrow();
            // a checkpoint may have freed it since it was chosen
            let Some(segment) = segments.find(id) else { return Ok(()) };
            (segment.columns.clone(), segment.used_rows as usize, segment.last)
        };
        pins.pin(id);
        let mut row = 0;
        while row < used_rows {
            self.check_running()?;
            let header = self.read_header(&columns, row).await.filter(|header| header.sequence <= last);
            let Some(header) = header else {
                self.segments.borrow_mut().get_mut(id).stuck = true;
                return Ok(());
            };
            self.clean_batch(&columns, &header, moves).await?;
            if moves.len() >= MOVES_AT_ONCE {
                self.append_moves(std::mem::take(moves)).await?;
            }
            row += usize::from(header.rows);
        }
        self.counters.borrow_mut().segments_cleaned += 1;
        Ok(())
    }

    async fn clean_batch(
        self: &Rc<Self>,
        columns: &SegmentColumns,
        header: &BatchHeader,
        moves: &mut Moves,
    ) -> Result<(), LaneError> {
        let mut live = Vec::new();
        for (slot, entry) in header.data() {
            let position = header.position(slot);
            match *entry {
                Entry::Data { layer, block, crc } | Entry::Move { layer, block, crc, .. } => {
                    let (key, _) = leaf(layer, block);
                    if self.ensure_page(key).await? && self.points_at(layer, block, position) {
                        live.push(Live { layer, block, entry: MapEntry { position, crc } });
                    }
                }
                Entry::Page { layer, level, index, .. } => {
                    self.renew_page(PageKey { layer, level, index }, position).await?;
                }
                Entry::Table { .. } | Entry::Unmap { .. } | Entry::Layer { .. } | Entry::Drop { .. } => {}
            }
        }
        let layout =
            Layout::new(columns.shape(), header.segment, usize::from(header.row), usize::from(header.rows));
        let role = |live: &Live| layout.place(live.entry.position.slot()).0;
        let slot = |live: &Live| live.entry.position.slot();
        while let Some(first) = live.first() {
            let (first_slot, first_role) = (slot(first), role(first));
            let follows = |&(index, live): &(usize, &Live)| {
                slot(live) == first_slot + index && role(live) == first_role
            };
            let joined = live.iter().enumerate().take_while(follows).count();
            let after = live.split_off(joined);
            self.collect_run(columns, std::mem::replace(&mut live, after), moves).await;
        }
        Ok(())
    }

    /// Reads blocks that stand below each other.
    async fn collect_run(&self, columns: &SegmentColumns, run: Vec<Live>, moves: &mut Moves) {
        let crcs: Vec<u32> = run.iter().map(|live| live.entry.crc).collect();
        let Ok((buffer, _)) = self.read_run(columns, run[0].entry.position, &crcs).await else {
            // damage beyond repair stays where it is, and is reported to whoever reads it
            self.segments.borrow_mut().get_mut(columns.id).stuck = true;
            return;
        };
        let content = buffer.into_bytes();
        self.counters.borrow_mut().blocks_cleaned += run.len() as u64;
        for (index, live) in run.into_iter().enumerate() {
            moves.push((live, content.slice(index * BLOCK_BYTES..(index + 1) * BLOCK_BYTES)));
        }
    }

    async fn append_moves(&self, moves: Moves) -> Result<(), LaneError> {
        let ticket = Ticket::new(&self.io);
        for (live, content) in moves {
            self.append_move(live.layer, live.block, live.entry, content, &ticket).await?;
        }
        ticket.wait().await
    }

    /// Has the next checkpoint write a page anew, if it stands at this place.
    async fn renew_page(&self, key: PageKey, position: Position) -> Result<(), LaneError> {
        let root = self.map.borrow().layers.get(&key.layer).map(|layer| (layer.height, layer.root));
        let Some((height, root)) = root else { return Ok(()) };
        let here = if key.level == height {
            root.position == position && key.index == 0
        } else {
            let parent = key.parent();
            self.ensure_page(parent).await?
                && self
                    .map
                    .borrow()
                    .cached(parent)
                    .is_some_and(|page| page.entry(key.entry_in_parent()).position == position)
        };
        if here && self.ensure_page(key).await? {
            let mut map = self.map.borrow_mut();
            if map.cached(key).is_some() {
                map.touch_dirty(key);
            }
        }
        Ok(())
    }

    /// Clears all pages of a layer that is being dropped, depth first, with checkpoints in between where the
    /// budget asks for them.
    async fn empty_layer(self: &Rc<Self>, layer: LayerId) -> Result<bool, LaneError> {
        let top = self.map.borrow().layer(layer).height;
        let mut todo = vec![PageKey { layer, level: top, index: 0 }];
        while let Some(key) = todo.pop() {
            if self.has_ended() {
                return Err(LaneError::Unavailable);
            }
            if self.must_wait_for_space() {
                self.write_checkpoint().await?;
            }
            if self.ensure_page(key).await? {
                self.expand(key, &mut todo);
            }
        }
        let cached = self.map.borrow().cached_of(layer, 1);
        for key in cached {
            self.clear_page(key);
        }
        self.write_checkpoint().await?;
        // entries that were on their way when the layer was dropped may have come in since
        self.io.yield_now().await;
        Ok(true)
    }

    fn expand(&self, key: PageKey, todo: &mut Vec<PageKey>) {
        if key.level == 1 {
            return self.clear_page(key);
        }
        let map = self.map.borrow();
        let Some(page) = map.cached(key) else { return };
        let child = |index: usize| PageKey {
            layer: key.layer,
            level: key.level - 1,
            index: key.index * PAGE_ENTRIES as u64 + index as u64,
        };
        todo.extend((0..PAGE_ENTRIES).filter(|&index| stored(page.entry(index)).is_some()).map(child));
    }

    fn clear_page(&self, key: PageKey) {
        let mut map = self.map.borrow_mut();
        let mut segments = self.segments.borrow_mut();
        let sequence = self.log.borrow().committed;
        for index in 0..PAGE_ENTRIES {
            let Some(page) = map.cached(key) else { return };
            if page.entry(index) == MapEntry::ABSENT {
                continue;
            }
            if let Some(old) = stored(map.set(key, index, MapEntry::ABSENT, sequence.0)) {
                segments.remove_live(old.segment());
                map.layer_mut(key.layer).mapped -= 1;
            }
        }
    }
}
