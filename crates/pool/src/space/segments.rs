//! The segments of a lane: their chunks, how many live blocks they hold, and which chunks are free.
//!
//! Pure bookkeeping; no I/O. What always holds: a chunk is free or in exactly one segment; a segment's chunks become
//! free only when a durable checkpoint no longer names the segment and nobody reads it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use base::{BLOCK_BYTES, Epoch, Sequence};

use crate::format::SEGMENT_MAX;
use crate::format::table::{Column, SegmentColumns};
use crate::geometry::position::SegmentId;
use crate::geometry::protection::{Protection, Shape};
use crate::space::fit::{fit, own_chunks};
use crate::space::lacking::Lacking;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentState {
    /// Reserved for the log, in its order; nothing is written yet.
    Reserved,
    /// Batches are being appended.
    Open,
    /// No more batches go into it.
    Sealed,
    /// Freed, but somebody still reads from it.
    Condemned,
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Shared: readers keep them while they read.
    pub columns: Rc<SegmentColumns>,
    pub state: SegmentState,
    /// Blocks that the map points at, map pages among them.
    pub live: u32,
    pub used_rows: u32,
    pub last: Sequence,
    /// Columns that may lack data of some batch.
    pub lacking: Lacking,
    /// Cleaning could not move its live blocks; it leaves the segment alone.
    pub stuck: bool,
    /// A live block in it can neither be read nor rebuilt (`loss.rs`).
    pub lost: bool,
    readers: u32,
}

/// How much fits on some drives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Extent {
    /// Segments, used or not.
    pub total: usize,
    /// Data blocks of a segment filled with full batches.
    pub packed: usize,
}

/// Everything about segments that a lane knows.
pub(crate) struct Segments {
    pub rows: usize,
    protection: Protection,
    width: u8,
    segments: BTreeMap<SegmentId, Segment>,
    next: u32,
    /// The pool's epoch, which all new segments get.
    epoch: Epoch,
    /// Free chunks of each drive, by index.
    free: Vec<Vec<u32>>,
    /// How many of each drive's chunks are this lane's.
    owned: Vec<usize>,
    /// Drives that may be used for new segments.
    online: Vec<bool>,
    /// Drives that can be read.
    readable: Vec<bool>,
    /// This lane, and the number of lanes that share the drives' chunks.
    lane: (u16, u16),
    /// Reserved segments, in the order in which the log will open them.
    queue: VecDeque<SegmentId>,
    extent: Extent,
    live: u64,
    /// A count of live blocks has turned out to be wrong: no segment is freed by its count before all counts have been
    /// compared with the map.
    pub doubted: bool,
    /// Blocks that the map names in segments that do not exist, at the last count.
    pub gone: u64,
    /// Number of segments whose chunks readers hold.
    condemned: usize,
    /// Segments that could be made of the free chunks, and those of the queue that can be written.
    free_segments: usize,
    queued: usize,
}

impl Segments {
    /// An empty lane: all of its chunks are free. `chunks` gives the chunks of each drive; every `lanes`-th of them
    /// belongs to this lane.
    pub fn new(
        protection: Protection,
        width: u8,
        rows: usize,
        chunks: &[u32],
        lane: (u16, u16),
        epoch: Epoch,
    ) -> Segments {
        let free: Vec<Vec<u32>> = chunks.iter().map(|&count| own_chunks(count, lane)).collect();
        let mut segments = Segments {
            rows,
            protection,
            width,
            segments: BTreeMap::new(),
            next: 1,
            epoch,
            online: vec![true; free.len()],
            readable: vec![true; free.len()],
            lane,
            owned: free.iter().map(Vec::len).collect(),
            free,
            queue: VecDeque::new(),
            extent: Extent::default(),
            live: 0,
            doubted: false,
            gone: 0,
            condemned: 0,
            free_segments: 0,
            queued: 0,
        };
        segments.count_total();
        segments
    }

    fn count_total(&mut self) {
        self.extent = self.extent_of(&self.online, None);
        self.count_room();
    }

    fn extent_of(&self, online: &[bool], more: Option<usize>) -> Extent {
        let owned = self.owned.iter().zip(online).filter(|(_, online)| **online);
        let counts: Vec<usize> = owned.map(|(count, _)| *count).chain(more).collect();
        let shape = self.protection.segment_shape(self.width, counts.len());
        Extent { total: fit(&counts, shape.width().min(counts.len())), packed: self.packed_in(shape) }
    }

    /// What fits on the online drives.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// What would fit without one of them, or with a replacement of this many chunks: segments may be narrower then.
    pub fn extent_without(&self, drive: u8, instead: Option<u32>) -> Extent {
        let mut without = self.online.clone();
        without[usize::from(drive)] = false;
        self.extent_of(&without, instead.map(|chunks| own_chunks(chunks, self.lane).len()))
    }

    fn count_room(&mut self) {
        self.count_free();
        self.queued = self.queue.iter().filter(|id| self.is_whole(**id)).count();
    }

    fn count_free(&mut self) {
        let free = (0..self.free.len()).filter(|&drive| self.online[drive]);
        let counts: Vec<usize> = free.map(|drive| self.free[drive].len()).collect();
        self.free_segments = fit(&counts, self.shape().width() - self.absent_allowed());
    }

    fn shape(&self) -> Shape {
        self.protection.segment_shape(self.width, self.online.iter().filter(|&&online| online).count())
    }

    /// Data blocks of one new segment, filled with full batches.
    pub fn packed_blocks(&self) -> usize {
        self.extent.packed
    }

    fn packed_in(&self, shape: Shape) -> usize {
        let batch = shape.rows_for(crate::format::header::ENTRIES_MAX).min(self.rows);
        let per_batch = shape.blocks_in(batch).min(crate::format::header::ENTRIES_MAX);
        (self.rows / batch * per_batch + shape.blocks_in(self.rows % batch)).max(1)
    }

    /// Restores the segments that a checkpoint names.
    pub fn restore(&mut self, segments: Vec<Segment>) {
        let mut used: Vec<base::HashSet<u32>> = vec![Default::default(); self.free.len()];
        for column in segments.iter().flat_map(|segment| segment.columns.columns.iter().flatten()) {
            if let Some(used) = used.get_mut(usize::from(column.drive)) {
                used.insert(column.chunk);
            }
        }
        for (free, used) in self.free.iter_mut().zip(used) {
            free.retain(|chunk| !used.contains(chunk));
        }
        for segment in segments {
            self.next = self.next.max(segment.columns.id.0 + 1);
            self.live += u64::from(segment.live);
            self.segments.insert(segment.columns.id, segment);
        }
        self.count_total();
    }

    pub fn set_next(&mut self, next: u32) {
        self.next = self.next.max(next);
    }

    pub fn next_id(&self) -> u32 {
        self.next
    }

    pub fn set_online(&mut self, online: Vec<bool>) {
        self.online = online;
        self.count_total();
    }

    /// Updates the drives, by index: chunks, whether new segments may use them, and whether they can be read.
    pub fn set_drives(&mut self, drives: impl Iterator<Item = (u32, bool, bool)>) {
        let (mut online, mut readable) = (Vec::new(), Vec::new());
        for (index, (chunks, is_online, is_readable)) in drives.enumerate() {
            if index >= self.free.len() {
                self.free.push(own_chunks(chunks, self.lane));
                self.owned.push(self.free[index].len());
            }
            online.push(is_online);
            readable.push(is_readable);
        }
        self.readable = readable;
        self.set_online(online);
    }

    /// Columns of a segment that cannot be read: never written, or on a drive that is out.
    pub fn lost_columns(&self, segment: &Segment) -> usize {
        let lost = |column: &&Option<Column>| column.is_none_or(|column| !self.is_readable(column));
        segment.columns.columns.iter().filter(lost).count()
    }

    /// Columns of a segment that may be useless for rebuilding: lost ones, and those that lack something. If it is
    /// unknown which ones lack something, the maximum counts.
    pub fn exposed_columns(&self, segment: &Segment) -> usize {
        let known = self.useless_beside(segment, None);
        if segment.lacking.is_unknown() { known.max(segment.columns.shape().parity()) } else { known }
    }

    /// Columns of a segment that are known to be useless for rebuilding, without those of one drive.
    pub fn useless_beside(&self, segment: &Segment, drive: Option<u8>) -> usize {
        let useless = |(index, column): &(usize, &Option<Column>)| {
            let own = column.is_some_and(|column| Some(column.drive) == drive);
            let there = column.is_some_and(|column| self.is_readable(column));
            !own && (!there || segment.lacking.has(*index))
        };
        segment.columns.columns.iter().enumerate().filter(useless).count()
    }

    /// Whether a column's drive is not out.
    pub fn is_readable(&self, column: Column) -> bool {
        self.readable.get(usize::from(column.drive)).copied().unwrap_or(false)
    }

    /// Whether writing a segment's blocks anew would make them safer, or would empty a drive that is to leave.
    pub fn wants_rewriting(&self, segment: &Segment) -> bool {
        let drains = |column: &Column| !self.is_online(column.drive);
        !segment.lacking.is_nothing()
            || self.lost_columns(segment) > self.absent_allowed()
            || segment.columns.columns.iter().flatten().any(drains) && self.lost_columns(segment) == 0
    }

    /// Every drive that ever was in the pool, by index.
    pub fn drives(&self) -> impl Iterator<Item = u8> {
        (0..self.free.len()).map(|drive| drive as u8)
    }

    /// For each drive: the free chunks, and the number of chunks of this lane.
    pub fn chunks(&self) -> impl Iterator<Item = (&Vec<u32>, usize)> {
        self.free.iter().zip(self.owned.iter().copied())
    }

    /// Segments that have a column on a drive.
    pub fn on_drive(&self, drive: u8) -> usize {
        let stands =
            |segment: &&Segment| segment.columns.columns.iter().flatten().any(|column| column.drive == drive);
        self.segments.values().filter(stands).count()
    }

    pub fn is_online(&self, drive: u8) -> bool {
        self.online.get(usize::from(drive)).copied().unwrap_or(false)
    }

    /// Makes a segment of free chunks, on the drives that have most of them. `None` if there are too few.
    pub fn allocate(&mut self) -> Option<SegmentId> {
        let shape = self.shape();
        let drives = self.free.len();
        let turn = self.next as usize;
        let mut able: Vec<usize> =
            (0..drives).filter(|&drive| self.online[drive] && !self.free[drive].is_empty()).collect();
        able.sort_by_key(|&drive| {
            (std::cmp::Reverse(self.free[drive].len()), (drive + drives - turn % drives) % drives)
        });
        able.truncate(shape.width());
        let absent = shape.width() - able.len();
        if absent > self.absent_allowed() || self.next > SEGMENT_MAX {
            return None;
        }
        let mut columns: Vec<Option<Column>> = able
            .into_iter()
            .map(|drive| self.free[drive].pop().map(|chunk| Column { drive: drive as u8, chunk }))
            .collect();
        columns.resize(shape.width(), None);
        let id = SegmentId(self.next);
        self.next += 1;
        let segment = Segment::new(
            SegmentColumns { id, epoch: self.epoch, parity: shape.parity() as u8, columns },
            SegmentState::Reserved,
        );
        self.segments.insert(id, segment);
        self.count_free();
        Some(id)
    }

    /// Columns that a new segment may lack: some only if too few drives are online.
    fn absent_allowed(&self) -> usize {
        let online = self.online.iter().filter(|&&online| online).count();
        self.shape().width().saturating_sub(online)
    }

    /// How many more segments could be made of the free chunks.
    pub fn free_segments(&self) -> usize {
        self.free_segments
    }

    /// Segments that the log could still open.
    pub fn room(&self) -> usize {
        self.free_segments + self.queued
    }

    /// Whether every column of a segment is on an online drive, and no column is missing unnecessarily.
    pub fn is_whole(&self, id: SegmentId) -> bool {
        let columns = &self.get(id).columns.columns;
        let absent = columns.iter().filter(|column| column.is_none()).count();
        absent <= self.absent_allowed() && columns.iter().flatten().all(|column| self.is_online(column.drive))
    }

    /// Blocks that a checkpoint's table takes.
    pub fn table_blocks(&self, layers: usize) -> usize {
        let segment_bytes = 31 + 5 * self.shape().width() + 4;
        (24 + self.extent.total.max(self.segments.len()) * segment_bytes + layers * (38 + 12))
            .div_ceil(BLOCK_BYTES)
    }

    /// Whether chunks will become free when readers are done.
    pub fn awaits_readers(&self) -> bool {
        self.condemned > 0
    }

    /// Maximum number of segments.
    pub fn total_segments(&self) -> usize {
        self.extent.total
    }

    /// Reserves another segment at the end of the log's queue.
    pub fn enqueue(&mut self, id: SegmentId) {
        assert_eq!(self.get(id).state, SegmentState::Reserved);
        self.queue.push_back(id);
        self.queued += usize::from(self.is_whole(id));
    }

    /// Gives up reserved segments on drives that accept nothing new; the next checkpoint frees them. Returns whether
    /// there were any.
    pub fn drop_unusable(&mut self) -> bool {
        let (kept, dropped): (VecDeque<SegmentId>, VecDeque<SegmentId>) =
            std::mem::take(&mut self.queue).into_iter().partition(|&id| self.is_whole(id));
        self.queue = kept;
        dropped.iter().for_each(|&id| self.get_mut(id).state = SegmentState::Sealed);
        self.count_room();
        !dropped.is_empty()
    }

    /// Whether a reserved segment has been given up since the last checkpoint: the next one frees it.
    pub fn has_given_up(&self) -> bool {
        let unused = |segment: &Segment| segment.used_rows == 0 && segment.live == 0;
        self.iter().any(|(_, segment)| segment.state == SegmentState::Sealed && unused(segment))
    }

    pub fn dequeue(&mut self) -> Option<SegmentId> {
        let id = self.queue.pop_front()?;
        self.count_room();
        Some(id)
    }

    pub fn queue(&self) -> &VecDeque<SegmentId> {
        &self.queue
    }

    /// Whether a segment, if it exists, may lack something.
    pub fn lacks_something(&self, id: SegmentId) -> bool {
        self.segments.get(&id).is_some_and(|segment| !segment.lacking.is_nothing())
    }

    pub fn get(&self, id: SegmentId) -> &Segment {
        self.segments.get(&id).expect("a segment that exists")
    }

    pub fn get_mut(&mut self, id: SegmentId) -> &mut Segment {
        self.segments.get_mut(&id).expect("a segment that exists")
    }

    /// A segment that a position from disk names may not exist.
    pub fn find(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(&id).filter(|segment| segment.state != SegmentState::Condemned)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&SegmentId, &Segment)> {
        self.segments.iter().filter(|(_, segment)| segment.state != SegmentState::Condemned)
    }

    /// All segments, including those that readers hold.
    pub fn all(&self) -> impl Iterator<Item = &Segment> {
        self.segments.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.segments.values_mut()
    }

    pub fn add_live(&mut self, id: SegmentId) {
        self.get_mut(id).live += 1;
        self.live += 1;
    }

    pub fn remove_live(&mut self, id: SegmentId) {
        match self.segments.get_mut(&id).filter(|segment| segment.live > 0) {
            Some(segment) => (segment.live, self.live) = (segment.live - 1, self.live - 1),
            // the count in a table was too low, or a page names a segment that does not exist
            None => self.doubted = true,
        }
    }

    pub fn live(&self) -> u64 {
        self.live
    }

    /// Keeps a segment's chunks from being reused until [`Segments::unpin`].
    pub fn pin(&mut self, id: SegmentId) {
        self.get_mut(id).readers += 1;
    }

    /// `true` if its chunks have become free.
    pub fn unpin(&mut self, id: SegmentId) -> bool {
        let segment = self.get_mut(id);
        assert!(segment.readers > 0);
        segment.readers -= 1;
        let free = segment.readers == 0 && segment.state == SegmentState::Condemned;
        if free {
            self.reclaim(id);
        }
        free
    }

    /// Frees a segment; its chunks are free as soon as nobody reads from it.
    pub fn release(&mut self, id: SegmentId) {
        let segment = self.get_mut(id);
        assert_eq!(segment.live, 0, "segment {id:?} still has live blocks");
        segment.state = SegmentState::Condemned;
        self.condemned += 1;
        if self.segments[&id].readers == 0 {
            self.reclaim(id);
        }
    }

    fn reclaim(&mut self, id: SegmentId) {
        let segment = self.segments.remove(&id).expect("a segment that exists");
        self.condemned -= 1;
        for column in segment.columns.columns.iter().flatten() {
            self.free[usize::from(column.drive)].push(column.chunk);
        }
        self.count_free();
    }
}

impl Segment {
    /// The segments' columns on this drive may lack something.
    pub fn lacks_on(&mut self, drive: u8) {
        let columns = self.columns.clone();
        let there = |column: &Option<Column>| column.is_some_and(|column| column.drive == drive);
        let own = columns.columns.iter().enumerate().filter(|(_, column)| there(column));
        own.for_each(|(index, _)| self.lacking.add(index));
    }

    pub fn new(columns: SegmentColumns, state: SegmentState) -> Segment {
        Segment {
            columns: Rc::new(columns),
            state,
            live: 0,
            used_rows: 0,
            last: Sequence(0),
            lacking: Lacking::NOTHING,
            stuck: false,
            lost: false,
            readers: 0,
        }
    }
}

mod correct;
#[cfg(test)]
mod tests;
