//! Scrubbing: every batch is read, all of it, and compared with what its header says: header copies, data,
//! parity. A segment in which something is wrong and can be rebuilt is written anew by cleaning.

use std::rc::Rc;

use crate::decision::Decision;
use crate::lane::{Lane, LaneError};
use crate::pages::SegmentPins;
use crate::position::SegmentId;
use crate::segments::{Segment, SegmentState};
use crate::verify::{BatchCheck, Expect};

/// A scrub: one that runs, or the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubStats {
    pub running: bool,
    pub segments_done: usize,
    pub segments_total: usize,
    /// Batches in which something was wrong; all of their data is there, and is being written anew.
    pub batches_repaired: u64,
    /// Batches of which some data can neither be read nor rebuilt.
    pub batches_unreadable: u64,
}

#[derive(Default)]
pub(crate) struct Scrub {
    pub stats: ScrubStats,
    stop: bool,
}

impl Lane {
    /// Begins to read everything; nothing happens where that is under way.
    pub fn start_scrub(self: &Rc<Self>) {
        let mut scrub = self.scrub.borrow_mut();
        scrub.stop = false;
        if !scrub.stats.running && self.check_running().is_ok() {
            scrub.stats = ScrubStats { running: true, ..ScrubStats::default() };
            self.spawn(self.clone().run_scrub());
        }
    }

    /// Ends a scrub where it is.
    pub fn stop_scrub(&self) {
        self.scrub.borrow_mut().stop = true;
    }

    pub fn scrub_stats(&self) -> ScrubStats {
        self.scrub.borrow().stats
    }

    async fn run_scrub(self: Rc<Self>) {
        self.seal_what_is_open();
        let ids: Vec<SegmentId> = self.segments.borrow().iter().map(|(&id, _)| id).collect();
        self.scrub.borrow_mut().stats.segments_total = ids.len();
        for id in ids {
            let stopped = self.scrub.borrow().stop || self.check_running().is_err();
            if stopped {
                break;
            }
            let pause = self.begin_repair();
            // a lane that cannot go on is noticed above
            let _ = self.scrub_segment(id).await;
            self.scrub.borrow_mut().stats.segments_done += 1;
            self.end_repair(pause).await;
        }
        self.scrub.borrow_mut().stats.running = false;
        self.background.notify();
    }

    /// What was written last is read, too. Where hosts wait for space, none is given away for it.
    fn seal_what_is_open(&self) {
        let place = self.log.borrow().place;
        if let Some((id, row)) = place.filter(|&(_, row)| row > 0 && !self.must_wait_for_space()) {
            self.seal(id, row);
        }
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
        let sealed = |segment: &Segment| segment.state == SegmentState::Sealed && !segment.incomplete;
        // one that is empty yet, and one that will be written anew as it is, have nothing to be found out
        if !self.segments.borrow().find(id).is_some_and(sealed) {
            return Ok(());
        }
        self.settle_segment(id).await?;
        let mut pins = SegmentPins::new(self);
        let (columns, used_rows, last) = {
            let segments = self.segments.borrow();
            let Some(segment) = segments.find(id).filter(|segment| sealed(segment)) else { return Ok(()) };
            (segment.columns.clone(), segment.used_rows as usize, segment.last)
        };
        pins.pin(id);
        let mut row = 0;
        while row < used_rows {
            self.check_running()?;
            let header = self.read_header(&columns, row).await.filter(|header| header.sequence <= last);
            let Some(header) = header else {
                self.scrub.borrow_mut().stats.batches_unreadable += 1;
                return Ok(());
            };
            match self.check_batch(&columns, &header, Expect::WhatIsThere).await {
                BatchCheck::Whole => {}
                BatchCheck::Repairable(_) => self.found_damage(id, true),
                BatchCheck::Torn => self.found_damage(id, false),
            }
            row += usize::from(header.rows);
        }
        Ok(())
    }

    fn found_damage(&self, id: SegmentId, repairable: bool) {
        let mut scrub = self.scrub.borrow_mut();
        if repairable {
            Decision::ScrubRepaired.taken();
            scrub.stats.batches_repaired += 1;
        } else {
            scrub.stats.batches_unreadable += 1;
        }
        // what can be read of it is moved, too
        self.segments.borrow_mut().get_mut(id).incomplete = true;
        self.want_repairs();
    }
}
