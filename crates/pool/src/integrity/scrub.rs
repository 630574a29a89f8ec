//! Scrubbing: reads every drive's newest root, then all cells of every batch, and compares them with the batch's
//! header: header copies, data, parity. If something in a segment is wrong but can be rebuilt, cleaning writes the
//! segment anew. A segment that waits for this, or that could not be moved, is read again, because its lost blocks may
//! no longer be in use or may be readable again.

use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{DriveHandle, IoError};

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::{BatchHeader, Entry};
use crate::format::root::Root;
use crate::format::{ROOT_SLOT_BYTES, root_offset_bytes};
use crate::geometry::position::SegmentId;
use crate::integrity::scrubber::ScrubStats;
use crate::lane::Lane;
use crate::map::pages::SegmentPins;
use crate::reading::verify::{BatchCheck, Expect};
use crate::space::lacking::Lacking;
use crate::space::segments::{Segment, SegmentState};

impl Lane {
    /// Begins to read everything; has no effect if a scrub is running.
    pub fn start_scrub(self: &Rc<Self>) {
        if self.scrubber.begin(self.check_running().is_ok()) {
            self.spawn(self.clone().run_scrub());
        }
    }

    /// Stops the running scrub.
    pub fn stop_scrub(&self) {
        self.scrubber.stop();
    }

    pub fn scrub_stats(&self) -> ScrubStats {
        self.scrubber.stats()
    }

    async fn run_scrub(self: Rc<Self>) {
        self.scrub_roots().await;
        self.seal_what_is_open();
        let ids: Vec<SegmentId> = self.segments.borrow().iter().map(|(&id, _)| id).collect();
        self.scrubber.note(|stats| stats.segments_total = ids.len());
        for id in ids {
            let stopped = self.scrubber.is_stopped() || self.check_running().is_err();
            if stopped {
                break;
            }
            let pause = self.begin_repair();
            // a lane that cannot continue is handled above
            let _ = self.scrub_segment(id).await;
            self.scrubber.note(|stats| stats.segments_done += 1);
            self.end_repair(pause).await;
        }
        if !self.scrubber.is_stopped() {
            let _ = self.recount().await;
        }
        self.scrubber.note(|stats| stats.running = false);
        self.background.notify();
    }

    /// Checks the roots. Otherwise roots are read only at starts, which may be years apart. If a drive's newest root is
    /// not what was written, a checkpoint writes it anew on all drives.
    async fn scrub_roots(&self) {
        let mut wrong = 0;
        for (drive, _) in self.online_drives() {
            // unless the drive was retired while others were read
            let handle = self.membership.borrow().handle(drive);
            if let Some(handle) = handle {
                wrong += u64::from(!self.root_is_right(drive, handle).await);
            }
        }
        if wrong > 0 {
            Decision::RootRotten.taken();
            self.scrubber.note(|stats| stats.batches_repaired += wrong);
            if self.write_checkpoint().await.is_err() {
                self.want_checkpoint();
            }
        }
    }

    /// Whether a drive's newest root is correct, or was replaced while it was read.
    async fn root_is_right(&self, drive: u8, handle: DriveHandle) -> bool {
        let newest = || (self.checkpointer.generation(), self.checkpointer.slot(handle));
        let (generation, Some(slot)) = newest() else { return true };
        let offset_bytes = root_offset_bytes(usize::from(self.number), slot);
        let buffer = AlignedBuffer::zeroed(ROOT_SLOT_BYTES as usize / BLOCK_BYTES);
        let (buffer, result) = self.io.drive_read(handle, offset_bytes, buffer).await;
        if newest() != (generation, Some(slot)) {
            return true;
        }
        let pool = self.membership.borrow().pool;
        let is_ours = |root: &Root| root.pool == pool && root.lane == self.number;
        match result {
            Ok(())
                if Root::parse(&buffer).is_ok_and(|root| is_ours(&root) && root.generation >= generation) =>
            {
                return true;
            }
            Ok(()) => self.counters.borrow_mut().drive(drive).checksum += 1,
            Err(IoError::Media) => self.counters.borrow_mut().drive(drive).read += 1,
            // a drive that does not answer is handled elsewhere
            Err(_) => return true,
        }
        // the next root overwrites the wrong one
        self.checkpointer.set_slot(handle, 1 - slot);
        false
    }

    /// Seals the open segment, so that its blocks can be read or moved, too. If hosts wait for space, no space is spent
    /// on this. Returns whether there was an open segment that is now sealed.
    pub(crate) fn seal_what_is_open(&self) -> bool {
        let place = self.log.borrow().place;
        let place = place.filter(|&(_, row)| row > 0 && !self.must_wait_for_space());
        if let Some((id, row)) = place {
            self.seal(id, row);
        }
        place.is_some()
    }

    /// Waits until everything in a segment is committed.
    async fn settle_segment(&self, id: SegmentId) -> Result<(), LaneError> {
        loop {
            self.check_running()?;
            let committed = self.log.borrow().committed;
            if self.segments.borrow().find(id).is_none_or(|segment| segment.last <= committed) {
                return Ok(());
            }
            self.committed.wait().await;
        }
    }

    async fn scrub_segment(&self, id: SegmentId) -> Result<(), LaneError> {
        let sealed = |segment: &Segment| segment.state == SegmentState::Sealed;
        // nothing can be found in an empty segment
        if !self.segments.borrow().find(id).is_some_and(sealed) {
            return Ok(());
        }
        self.settle_segment(id).await?;
        let mut pins = SegmentPins::new(self);
        let (columns, used_rows, last, known) = {
            let segments = self.segments.borrow();
            let Some(segment) = segments.find(id).filter(|segment| sealed(segment)) else { return Ok(()) };
            (segment.columns.clone(), segment.used_rows as usize, segment.last, segment.lacking)
        };
        pins.pin(id);
        let (mut row, mut lost) = (0, false);
        while row < used_rows {
            self.check_running()?;
            let header = self.read_last_header(&columns, row).await.filter(|header| header.sequence <= last);
            let Some(header) = header else {
                // the content of this batch, and of those behind it, is unknown
                if self.segments.borrow().get(id).live > 0 {
                    self.found_loss(id);
                }
                return Ok(());
            };
            match self.check_batch(&columns, &header, Expect::WhatIsThere).await {
                BatchCheck::Whole => {}
                BatchCheck::Torn(slots) if self.is_missed(&header, &slots).await => {
                    lost = true;
                    self.found_loss(id);
                }
                BatchCheck::Repairable(_, lacking) if known.is_nothing() => {
                    self.found_damage(id, &header, lacking);
                }
                BatchCheck::Torn(_) if known.is_nothing() => {
                    self.found_damage(id, &header, Lacking::SOMEWHERE);
                }
                // it is known that the segment will be written anew; it may be new that more of it lacks something
                BatchCheck::Repairable(_, lacking) => self.lacks(id, lacking),
                BatchCheck::Torn(_) => self.lacks(id, Lacking::SOMEWHERE),
            }
            row += usize::from(header.rows);
        }
        if !lost {
            self.forget_loss(id);
        }
        Ok(())
    }

    fn found_loss(&self, id: SegmentId) {
        self.scrubber.note(|stats| stats.batches_unreadable += 1);
        // blocks that can be read are moved
        self.note_loss(id);
    }

    /// Something is wrong, but nothing in use is lost.
    fn found_damage(&self, id: SegmentId, header: &BatchHeader, lacking: Lacking) {
        // only what a checkpoint has settled can be written anew; and a table may be the newest
        let settled = self.segments.borrow().get(id).last <= self.checkpointer.sequence();
        if !settled || header.data().any(|(_, entry)| matches!(entry, Entry::Table { .. })) {
            self.want_checkpoint();
        }
        Decision::ScrubRepaired.taken();
        self.scrubber.note(|stats| stats.batches_repaired += 1);
        self.lacks(id, lacking);
        self.want_repairs();
    }

    fn lacks(&self, id: SegmentId, lacking: Lacking) {
        self.segments.borrow_mut().get_mut(id).lacking.add_all(lacking);
    }
}
