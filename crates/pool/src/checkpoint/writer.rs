//! Writes checkpoints: the map's dirty pages go into the log, level by level, then the table, then the roots.
//!
//! A checkpoint holds exactly what was committed at its *cut*. Commits continue while the checkpoint is written, but it
//! takes the pages and the segments' counts as they were at the cut. Replay begins after the cut.
//!
//! ```text
//!  cut ─► leaf pages ─► level 2 ... root pages ─► table ─► flush ─► roots on all drives ─► segments freed
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, LayerId, Sequence};
use bytes::Bytes;
use env::DriveHandle;
use task::join_all;

use crate::decision::Decision;
use crate::drives::full::NO_SPACE_RETRY;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::page::{LEVEL_MAX, MapEntry, Page, PageKey, stored};
use crate::format::root::{Root, TABLE_BLOCKS_MAX};
use crate::format::root_offset_bytes;
use crate::format::table::{LayerRecord, SegmentColumns, SegmentRecord, Table};
use crate::geometry::position::SegmentId;
use crate::lane::Lane;
use crate::layers::layer::Layer;
use crate::log::queue::{Pending, Source, Ticket};
use crate::space::segments::SegmentState;

/// Pages appended to the log at once.
const PAGES_AT_ONCE: usize = 256;

/// What was committed at one instant.
struct Cut {
    sequence: Sequence,
    tail_row: usize,
    leaves: Vec<(PageKey, Rc<Page>)>,
    layers: BTreeMap<LayerId, Layer>,
    referred: Vec<(LayerId, u64)>,
    live: BTreeMap<SegmentId, u32>,
    /// Sealed segments that contain nothing that replay would need.
    settled: Vec<SegmentId>,
}

impl Lane {
    pub(crate) fn want_checkpoint(&self) {
        self.checkpointer.want();
        self.background.notify();
    }

    /// Whether a checkpoint now would free or reserve segments.
    pub(crate) fn checkpoint_could_help(&self) -> bool {
        let segments = self.segments.borrow();
        // if the queue is empty, the next checkpoint reserves what the newest one freed but could not reserve
        let aside = segments.queue().is_empty() && segments.free_segments() > self.shares().checkpoint;
        self.checkpointer.is_outdated(self.log.borrow().committed, segments.free_segments())
            || aside
            || segments.has_given_up()
    }

    /// Runs until the lane fails or is closed: writes a checkpoint when one is wanted, or due.
    pub(crate) async fn run_checkpoints(self: Rc<Self>) {
        while !self.has_ended() {
            if let Some(drive) = self.health.take_condemned() {
                // recording it takes up to two seconds: checkpoints do not wait for it
                let lane = self.clone();
                self.spawn(async move {
                    lane.report_condemned_drive(drive).await;
                });
            }
            if self.checkpointer.take_wanted() {
                if self.write_checkpoint().await.is_err() {
                    Decision::CheckpointFailed.taken();
                    self.io.sleep(base::Nanos::from_millis(100)).await;
                    self.checkpointer.want();
                }
                continue;
            }
            let timer = self.io.sleep(self.options.get().checkpoint_interval);
            if task::race(self.background.wait(), timer).await.is_err() {
                let changed = self.log.borrow().changed;
                if changed > self.checkpointer.sequence() {
                    self.checkpointer.want();
                }
            }
        }
    }

    /// Writes a checkpoint of everything that is committed now. Only one runs at a time.
    pub(crate) async fn write_checkpoint(&self) -> Result<(), LaneError> {
        let one = self.checkpointer.turn().await;
        if self.has_ended() {
            return Err(LaneError::Unavailable);
        }
        let result = self.write_all().await;
        self.map.borrow_mut().end_checkpoint();
        drop(one);
        self.log_work.notify();
        result
    }

    /// Ensures that all pages have a place in the trees. Refused if nothing can be written, because a checkpoint would
    /// wait.
    pub(crate) async fn give_pages_places(&self) -> Result<(), LaneError> {
        self.check_running()?;
        // a running checkpoint may have taken pages that have no place yet
        let one = self.checkpointer.turn().await;
        if self.map.borrow().dirty_pages() == 0 {
            return Ok(());
        }
        drop(one);
        self.write_checkpoint().await
    }

    async fn write_all(&self) -> Result<(), LaneError> {
        let mut cut = self.cut();
        self.write_pages(&mut cut).await?;
        loop {
            let (table, free, extension) = self.plan_table(&cut);
            let named = self.write_table(&cut, &table).await;
            if let Ok(true) = named {
                self.finish_checkpoint(&cut, &table, free, extension);
                return Ok(());
            }
            let mut segments = self.segments.borrow_mut();
            extension.into_iter().for_each(|id| segments.release(id));
            named?;
        }
    }

    /// Whether the table calls a segment complete that lacks something: a drive has gone since, with data that it had
    /// not flushed.
    fn says_too_much(&self, table: &Table) -> bool {
        let segments = self.segments.borrow();
        let mut complete = table.segments.iter().filter(|record| !record.incomplete);
        complete.any(|record| segments.lacks_something(record.columns.id))
    }

    fn cut(&self) -> Cut {
        let mut log = self.log.borrow_mut();
        let segments = self.segments.borrow();
        let mut map = self.map.borrow_mut();
        let next = log.in_flight.front().map(|batch| {
            let header = batch.header.borrow();
            (header.segment, usize::from(header.row))
        });
        let next = next.or(log.place);
        while log.opened.front().is_some_and(|&id| next.is_none_or(|(start, _)| id != start)) {
            log.opened.pop_front();
        }
        let settled = segments
            .iter()
            .filter(|(id, segment)| {
                segment.state == SegmentState::Sealed
                    && segment.last <= log.committed
                    && !log.opened.contains(id)
            })
            .map(|(&id, _)| id)
            .collect();
        Cut {
            sequence: log.committed,
            tail_row: next.map_or(0, |(_, row)| row),
            leaves: map.begin_flush(1),
            layers: map.layers.clone(),
            referred: map.references.counts(),
            live: segments.iter().map(|(&id, segment)| (id, segment.live)).collect(),
            settled,
        }
    }

    async fn write_pages(&self, cut: &mut Cut) -> Result<(), LaneError> {
        for level in 1..=LEVEL_MAX {
            let pages = match level {
                1 => std::mem::take(&mut cut.leaves),
                _ => self.map.borrow_mut().begin_flush(level),
            };
            for index in (0..pages.len()).step_by(PAGES_AT_ONCE) {
                let some = &pages[index..pages.len().min(index + PAGES_AT_ONCE)];
                if let Err(error) = self.write_some_pages(cut, some).await {
                    let mut map = self.map.borrow_mut();
                    pages[index..].iter().for_each(|(key, _)| map.end_flush(*key, false));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    async fn write_some_pages(&self, cut: &mut Cut, pages: &[(PageKey, Rc<Page>)]) -> Result<(), LaneError> {
        let ticket = Ticket::new(&self.io);
        for (tag, (key, page)) in pages.iter().enumerate().filter(|(_, (_, page))| !page.is_empty()) {
            let entry = Entry::Page { layer: key.layer, level: key.level, index: key.index, crc: 0 };
            self.append(own_entry(entry, Bytes::copy_from_slice(page.bytes()), tag, &ticket));
            self.counters.borrow_mut().map_blocks_written += 1;
        }
        ticket.wait().await?;
        let mut placed = vec![MapEntry::ABSENT; pages.len()];
        for &(tag, entry) in ticket.placed.borrow().iter() {
            placed[tag] = entry;
        }
        // parents first, so that the step that changes them cannot fail half-way
        let children = || pages.iter().filter(|(key, _)| key.level < cut.layers[&key.layer].height);
        for (pinned, (key, _)) in children().enumerate() {
            if let Err(error) = self.pin_page(key.parent(), 1).await {
                children().take(pinned).for_each(|(key, _)| self.map.borrow_mut().unpin(key.parent()));
                return Err(error);
            }
        }
        for ((key, page), entry) in pages.iter().zip(placed) {
            self.place_page(cut, *key, page, entry);
        }
        Ok(())
    }

    /// Records a page's new position in its parent (or the layer).
    fn place_page(&self, cut: &mut Cut, key: PageKey, page: &Page, entry: MapEntry) {
        let mut map = self.map.borrow_mut();
        let layer = cut.layers.get_mut(&key.layer).expect("pages belong to layers of the cut");
        let old = if key.level == layer.height {
            layer.root = entry;
            map.set_root(key.layer, entry)
        } else {
            let old = map.set(key.parent(), key.entry_in_parent(), entry, page.birth());
            map.unpin(key.parent());
            old
        };
        let mut segments = self.segments.borrow_mut();
        if let Some(old) = stored(old) {
            segments.remove_live(old.segment());
            if let Some(live) = cut.live.get_mut(&old.segment()) {
                *live = live.saturating_sub(1);
            }
        }
        if let Some(new) = stored(entry) {
            segments.add_live(new.segment());
            *cut.live.entry(new.segment()).or_default() += 1;
        }
        map.end_flush(key, true);
    }

    /// The table, the segments that it frees, and the segments that it reserves.
    fn plan_table(&self, cut: &Cut) -> (Table, Vec<SegmentId>, Vec<SegmentId>) {
        let extension = self.reserve();
        let segments = self.segments.borrow();
        let log = self.log.borrow();
        let live = |id: &SegmentId| cut.live.get(id).copied().unwrap_or(0);
        // a doubted count frees nothing
        let settled = cut.settled.iter().copied().filter(|_| !segments.doubted);
        let free: Vec<SegmentId> = settled.filter(|id| live(id) == 0).collect();
        let tail: Vec<SegmentId> =
            log.opened.iter().chain(segments.queue()).chain(&extension).copied().collect();
        let records = segments
            .iter()
            .filter(|(id, _)| free.binary_search(id).is_err())
            .map(|(id, segment)| SegmentRecord {
                columns: SegmentColumns::clone(&segment.columns),
                live: live(id),
                used_rows: segment.used_rows,
                last: segment.last,
                incomplete: !segment.lacking.is_nothing(),
                open: segment.state != SegmentState::Sealed,
            })
            .collect();
        // a layer stays as long as another layer is being merged into it
        let targets: BTreeSet<LayerId> = cut.layers.values().filter_map(|layer| layer.merging).collect();
        let keeps = |id: &LayerId, layer: &Layer| {
            targets.contains(id) || !(layer.is_to_be_emptied() && layer.is_empty())
        };
        let layers = cut
            .layers
            .iter()
            .filter(|(id, layer)| keeps(id, layer))
            .map(|(&id, layer)| LayerRecord {
                id,
                parent: layer.parent,
                height: layer.height,
                dropping: layer.dropping,
                mapped: layer.mapped,
                root: layer.root,
                name: layer.name,
                merging: layer.merging,
            })
            .collect();
        let table = Table {
            next_segment: segments.next_id(),
            tail_row: cut.tail_row as u32,
            tail,
            segments: records,
            layers,
            referred: cut.referred.clone(),
        };
        (table, free, extension)
    }

    /// Reserves more segments for the log: as many as hosts and cleaning may use until the next checkpoint.
    fn reserve(&self) -> Vec<SegmentId> {
        let shares = self.shares();
        let mut segments = self.segments.borrow_mut();
        let target = (segments.total_segments() / 8).clamp(4, 64).max(shares.working());
        let mut extension = Vec::new();
        while segments.queue().len() + extension.len() < target
            && segments.free_segments() > shares.checkpoint
        {
            let Some(id) = segments.allocate() else { break };
            extension.push(id);
        }
        extension
    }

    /// Writes the table into the log, and the roots that name it. `false` if no root was written because the table is
    /// no longer true.
    async fn write_table(&self, cut: &Cut, table: &Table) -> Result<bool, LaneError> {
        let bytes = table.emit();
        let blocks: Vec<&[u8]> = bytes.chunks(BLOCK_BYTES).collect();
        assert!(blocks.len() <= TABLE_BLOCKS_MAX, "a table of {} bytes", bytes.len());
        let ticket = Ticket::new(&self.io);
        for (index, block) in blocks.iter().enumerate() {
            let content = AlignedBuffer::copied_from(block).into_bytes();
            self.append(own_entry(Entry::Table { index: index as u64, crc: 0 }, content, index, &ticket));
            self.counters.borrow_mut().map_blocks_written += 1;
        }
        ticket.wait().await?;
        let mut placed = ticket.placed.borrow().clone();
        placed.sort_unstable_by_key(|&(index, _)| index);
        let entries: Vec<MapEntry> = placed.into_iter().map(|(_, entry)| entry).collect();
        if self.log.borrow().has_volatile() {
            self.flush_drives().await?;
        }
        if self.says_too_much(table) {
            Decision::TableOutdated.taken();
            return Ok(false);
        }
        let root = {
            let segments = self.segments.borrow();
            let ids: BTreeSet<SegmentId> = entries.iter().map(|entry| entry.position.segment()).collect();
            let membership = self.membership.borrow();
            Root {
                pool: membership.pool,
                lane: self.number,
                epoch: membership.epoch,
                generation: self.checkpointer.generation() + 1,
                sequence: cut.sequence,
                end: Root::NO_END,
                table_bytes: bytes.len() as u32,
                table: entries,
                segments: ids
                    .into_iter()
                    .map(|id| SegmentColumns::clone(&segments.get(id).columns))
                    .collect::<Vec<SegmentColumns>>(),
            }
        };
        self.write_root(&root, &[]).await.map(|()| true)
    }

    /// Writes a root to every drive except some. Drives that refuse it are taken out.
    pub(crate) async fn write_root(&self, root: &Root, except: &[u8]) -> Result<(), LaneError> {
        let content = AlignedBuffer::copied_from(&root.emit()).into_bytes();
        let mut drives = self.online_drives();
        drives.retain(|(drive, _)| !except.contains(drive));
        let writes = drives.iter().map(|&(_, handle)| self.write_root_copy(handle, content.clone()));
        let results = join_all(writes).await;
        for ((drive, _), result) in drives.into_iter().zip(results) {
            let Err(error) = result else { continue };
            self.counters.borrow_mut().failed_write(drive, error);
            if error == env::IoError::NoSpace {
                return Err(LaneError::Unavailable);
            }
            if !self.report_failed_drive(drive, error).await {
                self.fail();
                return Err(LaneError::Unavailable);
            }
        }
        Ok(())
    }

    /// Retries while the file system under the drive is full, unless the lane is being closed.
    async fn write_root_copy(&self, drive: DriveHandle, content: Bytes) -> Result<(), env::IoError> {
        let slot = self.checkpointer.next_slot(drive);
        let offset_bytes = root_offset_bytes(usize::from(self.number), slot);
        loop {
            let result = self.io.drive_write(drive, offset_bytes, vec![content.clone()], true).await;
            if result.is_ok() {
                self.checkpointer.set_slot(drive, slot);
            }
            if result != Err(env::IoError::NoSpace) || self.life.is_closing() || self.has_ended() {
                return result;
            }
            self.full.notify();
            self.io.sleep(NO_SPACE_RETRY).await;
        }
    }

    fn finish_checkpoint(&self, cut: &Cut, table: &Table, free: Vec<SegmentId>, extension: Vec<SegmentId>) {
        self.checkpointer.note_written(cut.sequence, table.tail.iter().copied().collect());
        let place = self.log.borrow().place;
        let unlisted = place.filter(|&(id, _)| !self.checkpointer.lists(id));
        if let Some((id, row)) = unlisted {
            self.seal(id, row);
        }
        let freed = !free.is_empty();
        {
            let mut segments = self.segments.borrow_mut();
            extension.into_iter().for_each(|id| segments.enqueue(id));
            free.into_iter().for_each(|id| segments.release(id));
            let committed = self.log.borrow().committed;
            self.checkpointer.note_effect(segments.queue().len(), segments.free_segments(), committed);
        }
        let kept: BTreeSet<LayerId> = table.layers.iter().map(|layer| layer.id).collect();
        let gone: Vec<LayerId> = cut.layers.keys().filter(|id| !kept.contains(id)).copied().collect();
        let mut map = self.map.borrow_mut();
        gone.into_iter()
            .filter(|&id| map.is_unused(id))
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|id| map.forget_layer(id));
        drop(map);
        self.counters.borrow_mut().checkpoints += 1;
        if freed {
            self.relieve();
        }
        // a drive may have gone or come back since segments were reserved
        self.leave_unusable();
        self.cleaner.look_anew();
        self.space.notify();
        self.log_work.notify();
        self.background.notify();
    }
}

/// An entry that belongs to a checkpoint.
fn own_entry(entry: Entry, content: Bytes, tag: usize, ticket: &Rc<Ticket>) -> Pending {
    Pending { source: Some(Source::Block(content)), tag: Some(tag), ..Pending::bare(entry, None, ticket) }
}
