//! Opens a lane: reads the newest checkpoint and replays every later batch that is whole.
//!
//! | batch found at the place where the next one should be   | decision                                 |
//! |---------------------------------------------------------|------------------------------------------|
//! | no header copy of this pool, lane, epoch and place      | the segment ends here: go to the next one|
//! | a sequence before the expected one                      | skipped: already replayed                |
//! | a sequence after the expected one                       | the segment ends here: go to the next one|
//! | the expected one, known to have been durable            | replayed; what it lacks is noted         |
//! | the expected one, whole                                 | replayed                                 |
//! | the expected one, its data can be rebuilt               | completed in place, and replayed         |
//! | the expected one, torn                                  | dropped, with all batches after it       |
//! | the expected one, after the end that the root names     | dropped by an earlier recovery           |
//! | none, but a later batch knew it to be durable           | refused: loss exceeds the protection     |
//!
//! Recovery decides which batch is the last. Before the lane serves anything, recovery writes this decision into the
//! roots, seals every segment of the tail, and writes a checkpoint in the new epoch. So no later start can replay a
//! dropped batch.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, Sequence};
use task::{Io, join_all};

use crate::checkpoint::found::{CHECKED_AT_ONCE, FoundBatch};
use crate::checkpoint::sanity::{PoolGeometry, find_contradiction};
use crate::decision::Decision;
use crate::drives::membership::Membership;
use crate::drives::watch::watch_drives;
use crate::error::{Contradiction, LaneError, LanePart, PoolError};
use crate::format::header::{BATCH_ROWS_MAX, BatchHeader, Entry};
use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey};
use crate::format::root::Root;
use crate::format::table::Table;
use crate::format::{ROOT_SLOT_BYTES, root_offset_bytes};
use crate::geometry::position::SegmentId;
use crate::lane::{Lane, LaneHost, LaneOptions};
use crate::layers::layer::Layer;
use crate::layers::merge::forward;
use crate::layers::references::References;
use crate::map::tree::leaf;
use crate::space::lacking::Lacking;
use crate::space::segments::{Segment, SegmentState};

/// Batches that will be replayed.
struct Scan {
    expected: Sequence,
    found: Vec<BatchHeader>,
    /// The checkpoint's own batches outside the tail.
    own: BTreeMap<Sequence, BatchHeader>,
    /// Every batch up to this one was durable, according to some header.
    durable: Sequence,
}

impl Scan {
    /// Takes the checkpoint's own batches that come next.
    fn take_own(&mut self) {
        while let Some(own) = self.own.remove(&self.expected) {
            Decision::TailOwn.taken();
            self.expected = self.expected.next();
            self.found.push(own);
        }
    }

    /// Takes the next batch of the tail, if it is the expected one. `false` if the segment ends here.
    fn take(&mut self, header: BatchHeader) -> bool {
        self.take_own();
        if header.sequence == self.expected {
            self.expected = self.expected.next();
            self.found.push(header);
            return true;
        }
        let replayed = header.sequence < self.expected;
        if replayed {
            Decision::TailReplayed.taken()
        } else {
            Decision::TailGap.taken()
        }
        replayed
    }
}

impl Lane {
    /// Opens lane `number` of a pool that has been claimed: recovers it, and starts its background work.
    pub async fn open(
        io: &Io,
        membership: Membership,
        number: u16,
        host: Rc<dyn LaneHost>,
        options: LaneOptions,
    ) -> Result<Rc<Lane>, PoolError> {
        assert!(number < membership.lanes);
        let lane = Rc::new(Lane::new(io, number, membership, host, options));
        io.spawn(watch_drives(io.clone(), Rc::downgrade(&lane)));
        let (root, geometry) = lane.read_newest_root().await?;
        let table = lane.read_table(&root).await?;
        lane.restore(&root, &table);
        let scan = lane.scan_tail(&root, &table).await;
        let last = lane.replay(&root, scan).await?;
        let outdated = lane.note_outdated(&root, &geometry);
        lane.write_verdict(root, last, &outdated).await?;
        lane.seal_tail(&table);
        lane.spawn(lane.clone().run_log());
        // if the file system under the drives is full, this waits in the background while hosts read
        let written = io.spawn_join(lane.clone().settle());
        match task::race(written, lane.full.wait()).await {
            Ok(Some(result)) => result.map(|()| lane),
            Ok(None) => unreachable!("a task ends with a result"),
            Err(()) => {
                Decision::OpenedFull.taken();
                Ok(lane)
            }
        }
    }

    /// Records on every up-to-date drive which batch is the last that counts. This root replaces the root that only
    /// this start has used, so no later start can decide differently or use an older root.
    async fn write_verdict(&self, root: Root, last: Sequence, outdated: &[u8]) -> Result<(), PoolError> {
        let epoch = self.membership.borrow().epoch;
        let verdict = Root { epoch, generation: root.generation + 1, end: last, ..root };
        self.checkpointer.set_generation(verdict.generation);
        self.write_root(&verdict, outdated).await.map_err(|_| PoolError::TooManyFailed)
    }

    /// Writes what was recovered to the drives; from then on the lane accepts writes.
    async fn settle(self: Rc<Self>) -> Result<(), PoolError> {
        let _running = self.enter();
        if let Err(error) = self.write_checkpoint().await {
            self.fail();
            return Err(PoolError::Recovery { lane: self.number, error });
        }
        if self.has_ended() {
            // the lane was closed while its last checkpoint was written
            return Err(PoolError::Recovery { lane: self.number, error: LaneError::Unavailable });
        }
        self.life.begin();
        self.clean_until_there_is_room().await;
        self.spawn(self.clone().run_checkpoints());
        self.spawn(self.clone().run_cleaning());
        Ok(())
    }

    /// The root with the highest (epoch, generation), of all slots of all drives, and for each drive the state of its
    /// own newest root.
    async fn read_newest_root(&self) -> Result<(Root, Vec<(u8, Sequence)>), PoolError> {
        let (drives, handles): (Vec<u8>, Vec<env::DriveHandle>) = self.online_drives().into_iter().unzip();
        let lane = usize::from(self.number);
        let blocks = ROOT_SLOT_BYTES as usize / BLOCK_BYTES;
        let reads = handles.iter().flat_map(|&handle| [(handle, 0), (handle, 1)]).map(|(handle, slot)| {
            self.io.drive_read(handle, root_offset_bytes(lane, slot), AlignedBuffer::zeroed(blocks))
        });
        let pool = self.membership.borrow().pool;
        let roots = join_all(reads).await;
        let roots = roots
            .into_iter()
            .map(|(buffer, result)| result.ok().and_then(|()| Root::parse(&buffer).ok()))
            .map(|root| root.filter(|root| root.pool == pool && root.lane == self.number));
        let roots: Vec<Option<Root>> = roots.collect();
        let rank = |root: &Root| (root.epoch, root.generation);
        let of_drive = |slots: &[Option<Root>]| slots.iter().flatten().map(rank).max();
        for (&handle, found) in handles.iter().zip(roots.chunks(2)) {
            let newest = (0..2)
                .filter(|&slot| found[slot].is_some())
                .max_by_key(|&slot| found[slot].as_ref().map(rank));
            if let Some(slot) = newest {
                self.checkpointer.set_slot(handle, slot);
            }
        }
        let sequence = |slots: &[Option<Root>]| {
            let newest = slots.iter().flatten().max_by_key(|root| rank(root));
            newest.map_or(Sequence(0), |root| root.sequence)
        };
        let geometry = drives.into_iter().zip(roots.chunks(2).map(sequence)).collect();
        let mut newest_of_each = roots.chunks(2).map(of_drive);
        if newest_of_each.next().is_some_and(|first| newest_of_each.any(|other| other != first)) {
            Decision::RootsDiffer.taken();
        }
        let newest = roots.into_iter().flatten().max_by_key(rank);
        newest.map(|root| (root, geometry)).ok_or(PoolError::NoRoot { lane: self.number })
    }

    async fn read_table(&self, root: &Root) -> Result<Table, PoolError> {
        let damaged = PoolError::Damaged { lane: self.number, part: LanePart::CheckpointTable };
        if root.table.is_empty() {
            let table = Table { next_segment: 1, ..Table::default() };
            return self.believed(root, table);
        }
        let mut bytes = Vec::with_capacity(root.table.len() * BLOCK_BYTES);
        for entry in &root.table {
            let columns = root.segments.iter().find(|segment| segment.id == entry.position.segment());
            let columns = columns.ok_or(damaged.clone())?;
            let block = self.read_entry(columns, *entry).await.map_err(|_| damaged.clone())?;
            bytes.extend_from_slice(&block);
        }
        bytes.truncate(root.table_bytes as usize);
        let table = Table::parse(&bytes).map_err(|_| damaged)?;
        self.believed(root, table)
    }

    /// The contents of a table, if they fit the root and the pool.
    fn believed(&self, root: &Root, table: Table) -> Result<Table, PoolError> {
        let chunks: Vec<u32> = self.membership.borrow().members.iter().map(|member| member.chunks).collect();
        let geometry = PoolGeometry { chunks: &chunks, rows: self.segments.borrow().rows };
        match find_contradiction(root, &table, &geometry) {
            None => Ok(table),
            Some(what) => Err(PoolError::Contradiction { lane: self.number, what }),
        }
    }

    fn restore(&self, root: &Root, table: &Table) {
        let mut all: Vec<Segment> = Vec::with_capacity(table.segments.len());
        for record in &table.segments {
            let mut segment = Segment::new(record.columns.clone(), SegmentState::Sealed);
            segment.live = record.live;
            segment.used_rows = record.used_rows;
            segment.last = record.last;
            if record.incomplete {
                segment.lacking = Lacking::SOMEWHERE;
            }
            if let Some(index) = table.tail.iter().position(|&id| id == record.columns.id) {
                // replay finds out what the tail holds
                segment.used_rows = if index == 0 { table.tail_row } else { 0 };
            }
            all.push(segment);
        }
        // the table may be in a segment that was opened after the table was made
        for columns in &root.segments {
            if !table.segments.iter().any(|record| record.columns.id == columns.id) {
                all.push(Segment::new(columns.clone(), SegmentState::Sealed));
            }
        }
        let mut segments = self.segments.borrow_mut();
        segments.restore(all);
        segments.set_next(table.next_segment);
        let mut map = self.map.borrow_mut();
        for record in &table.layers {
            let layer = Layer {
                parent: record.parent,
                height: record.height,
                mapped: record.mapped,
                root: record.root,
                dropping: record.dropping,
                name: record.name,
                merging: record.merging,
                children: 0,
                frozen: false,
                written: Sequence(0),
                stuck: false,
            };
            map.restore_layer(record.id, layer);
        }
        let rooted = table.layers.iter().filter(|layer| layer.root.position.is_stored()).count() as u64;
        // every block that is mapped is live, and so is every root page
        segments.doubted |= segments.live() < map.mapped() + rooted;
        map.references = References::restore(&table.referred);
        map.count_children();
        self.checkpointer.set_generation(root.generation);
    }

    /// The headers of the batches after the checkpoint, in order, without gaps.
    async fn scan_tail(&self, root: &Root, table: &Table) -> Scan {
        let own = self.scan_own(root, table).await;
        let durable = own.values().map(|header| header.durable).max().unwrap_or(root.sequence);
        let (expected, found) = (root.sequence.next(), Vec::new());
        let mut scan = Scan { expected, found, own, durable };
        // where a missing batch would be, if there is one: behind the last batch found, or in the next segment
        let mut ends = vec![(0, 0); table.tail.len()];
        let mut last = 0;
        for (index, &id) in table.tail.iter().enumerate() {
            let row = if index == 0 { table.tail_row as usize } else { 0 };
            let headers = self.scan_segment(id, row).await;
            let end = headers.last().map_or(row, |header| usize::from(header.row) + usize::from(header.rows));
            ends[index] = (row, end);
            scan.durable =
                headers.iter().map(|header| header.durable).chain([scan.durable]).max().expect("one");
            let before = scan.expected;
            for header in headers {
                if header.sequence > root.end {
                    Decision::TailEndNamed.taken();
                    break;
                }
                if !scan.take(header) {
                    break;
                }
            }
            last = if scan.expected > before { index } else { last };
        }
        scan.take_own();
        for (&id, &(_, end)) in table.tail.iter().zip(&ends).skip(last).take(2) {
            scan.durable = scan.durable.max(self.durable_beyond(id, end).await);
        }
        scan
    }

    /// Which batches were durable, according to the batches behind a missing one. If there are any, one begins within
    /// the length of the longest batch.
    async fn durable_beyond(&self, id: SegmentId, row: usize) -> Sequence {
        let (columns, rows) = {
            let segments = self.segments.borrow();
            (segments.get(id).columns.clone(), segments.rows)
        };
        let end = rows.min(row + 1 + BATCH_ROWS_MAX);
        let headers = join_all((row + 1..end).map(|row| self.read_header(&columns, row))).await;
        headers.into_iter().flatten().map(|header| header.durable).max().unwrap_or(Sequence(0))
    }

    /// The batches of the table itself in segments that were opened after the table was made. No tail names these
    /// segments, so without the batches their sequences would be a gap.
    async fn scan_own(&self, root: &Root, table: &Table) -> BTreeMap<Sequence, BatchHeader> {
        let mut own = BTreeMap::new();
        for columns in root.segments.iter().filter(|columns| !table.tail.contains(&columns.id)) {
            let headers = self.scan_segment(columns.id, 0).await;
            own.extend(headers.into_iter().map(|header| (header.sequence, header)));
        }
        own
    }

    /// The headers of a segment's batches from `row` on, as long as each follows the one before.
    async fn scan_segment(&self, id: SegmentId, mut row: usize) -> Vec<BatchHeader> {
        let (columns, rows) = {
            let segments = self.segments.borrow();
            (segments.get(id).columns.clone(), segments.rows)
        };
        let mut headers: Vec<BatchHeader> = Vec::new();
        while row < rows {
            let Some(header) = self.read_last_header(&columns, row).await else {
                Decision::TailEnds.taken();
                break;
            };
            row += usize::from(header.rows);
            headers.push(header);
        }
        headers
    }

    /// Applies the batches up to the first torn one.
    async fn replay(&self, root: &Root, scan: Scan) -> Result<Sequence, PoolError> {
        let Scan { found, durable, .. } = scan;
        let mut last = root.sequence;
        if durable > found.last().map_or(last, |header| header.sequence) {
            Decision::LogCutShort.taken();
            return Err(PoolError::Damaged { lane: self.number, part: LanePart::LogEnd });
        }
        let total = found.len() as u64;
        'all: for some in found.chunks(CHECKED_AT_ONCE) {
            let checks = join_all(some.iter().map(|header| self.check_found(header, durable))).await;
            for (header, check) in some.iter().zip(checks) {
                let lacking = match check {
                    FoundBatch::Lacks(lacking) => lacking,
                    FoundBatch::Repairable(data) => self.complete_found(header, data).await,
                    FoundBatch::Torn => {
                        Decision::BatchTorn.taken();
                        self.counters.borrow_mut().dropped += total - (last.0 - root.sequence.0);
                        break 'all;
                    }
                };
                let pinned = self.load_touched(header).await?;
                self.replay_batch(header, lacking, &pinned);
                last = header.sequence;
            }
        }
        self.log.borrow_mut().resume_after(last);
        // what an earlier process had not flushed may still be in drives' caches: nothing refers to it before it is
        // durable
        self.flush_drives().await.map_err(|_| PoolError::TooManyFailed)?;
        Ok(last)
    }

    /// Loads the leaf pages that a batch changes, and pins them.
    async fn load_touched(&self, header: &BatchHeader) -> Result<Vec<PageKey>, PoolError> {
        let damaged = PoolError::Damaged { lane: self.number, part: LanePart::Map };
        let mut keys = BTreeSet::new();
        for entry in &header.entries {
            match *entry {
                Entry::Data { layer, block, .. }
                | Entry::Move { layer, block, .. }
                | Entry::Unmap { layer, block, .. }
                | Entry::Refer { layer, block, .. } => {
                    keys.insert(leaf(layer, block).0);
                }
                Entry::Merge { from, into, index } => {
                    keys.extend([from, into].map(|layer| PageKey { layer, level: 1, index }));
                }
                Entry::Merged { from, .. } => {
                    keys.insert(forward(from).0);
                }
                // a layer that begins in this batch has no pages yet
                Entry::Page { .. } | Entry::Table { .. } | Entry::Layer { .. } | Entry::Drop { .. } => {}
            }
        }
        let mut pinned = Vec::with_capacity(keys.len());
        for key in keys {
            if self.map.borrow().layers.contains_key(&key.layer) || self.begins(header, key) {
                if !self.map.borrow().covers(key.layer, key.index * PAGE_ENTRIES as u64) {
                    return Err(PoolError::Contradiction {
                        lane: self.number,
                        what: Contradiction::BatchBeyondLayer,
                    });
                }
                self.pin_page(key, 1).await.map_err(|_| damaged.clone())?;
                pinned.push(key);
            }
        }
        Ok(pinned)
    }

    fn begins(&self, header: &BatchHeader, key: PageKey) -> bool {
        let begins = |entry: &Entry| matches!(entry, Entry::Layer { layer, .. } if *layer == key.layer);
        if !header.entries.iter().any(begins) {
            return false;
        }
        for entry in header.entries.iter().filter(|entry| begins(entry)) {
            self.apply(entry, None, header.sequence);
        }
        true
    }

    /// Applies a batch whose pages are pinned.
    fn replay_batch(&self, header: &BatchHeader, lacking: Lacking, pinned: &[PageKey]) {
        let mut slot = 0;
        for entry in &header.entries {
            let placed = entry.crc().map(|crc| {
                slot += 1;
                MapEntry { position: header.position(slot - 1), crc }
            });
            self.apply(entry, placed, header.sequence);
        }
        pinned.iter().for_each(|&key| self.map.borrow_mut().unpin(key));
        let mut segments = self.segments.borrow_mut();
        let segment = segments.get_mut(header.segment);
        segment.last = header.sequence;
        segment.used_rows = u32::from(header.row) + u32::from(header.rows);
        segment.lacking.add_all(lacking);
        self.counters.borrow_mut().replayed += 1;
    }

    /// Seals the tail's segments: they get no more batches. Drives that are out now may lack some of their data if they
    /// come back. Segments that were only reserved become free.
    fn seal_tail(&self, table: &Table) {
        let members = self.membership.borrow().members.clone();
        let there =
            |drive: u8| members.get(usize::from(drive)).is_some_and(|member| member.state.is_readable());
        let mut segments = self.segments.borrow_mut();
        for &id in &table.tail {
            let empty = |id: SegmentId| segments.get(id).used_rows == 0 && segments.get(id).live == 0;
            if empty(id) {
                segments.release(id);
                continue;
            }
            let segment = segments.get_mut(id);
            segment.last = segment.last.max(Sequence(1));
            let columns = segment.columns.clone();
            for (index, column) in columns.columns.iter().enumerate() {
                if column.is_some_and(|column| !there(column.drive)) {
                    segment.lacking.add(index);
                }
            }
        }
    }
}
