//! How full a lane is, who may use what is left, and who has to wait.
//!
//! ```text
//!  segments:  | in use ................ | free: hosts may use | for cleaning | for checkpoints |
//! ```
//!
//! Two bounds, never mixed: *capacity* (live blocks; beyond it writes that add blocks are refused) and *room*
//! (free segments; beyond it writes wait for cleaning). Capacity is set so that there is always garbage to
//! clean while a write waits for room.

use crate::lane::{Lane, LaneError};
use crate::segments::Segments;

/// Segments kept from hosts and cleaning: enough for a checkpoint of every page that may be dirty, the pages
/// above them, and the table.
pub(crate) fn checkpoint_reserve(segments: &Segments, budget_pages: usize) -> usize {
    1 + checkpoint_need(segments, dirty_max(segments, budget_pages))
}

/// Segments that a checkpoint of this many dirty pages takes at most.
pub(crate) fn checkpoint_need(segments: &Segments, dirty_pages: usize) -> usize {
    2 + (2 * dirty_pages).div_ceil(segments.packed_blocks().max(1))
}

/// Leaf pages that may be dirty: beyond it, writes wait for a checkpoint.
pub(crate) fn dirty_max(segments: &Segments, budget_pages: usize) -> usize {
    (budget_pages * 3 / 4).min((segments.total_segments() / 96).max(1) * segments.packed_blocks()).max(6)
}

/// Segments kept from hosts: for cleaning and for checkpoints.
fn host_reserve(segments: &Segments, budget_pages: usize) -> usize {
    2 * checkpoint_reserve(segments, budget_pages) + 3 + (segments.total_segments() / 32).min(64)
}

/// Free segments at which cleaning begins.
fn clean_start(segments: &Segments, budget_pages: usize) -> usize {
    host_reserve(segments, budget_pages) + (segments.total_segments() / 32).clamp(4, 128)
}

impl Lane {
    /// Blocks that can be live at most: what is left when the reserves are set aside, filled with full
    /// batches, less a twelfth so that cleaning finds garbage at a bearable rate.
    pub(crate) fn capacity_blocks(&self, segments: &Segments) -> u64 {
        let reserve = clean_start(segments, self.map.borrow().budget_pages());
        let usable = segments.total_segments().saturating_sub(reserve + 1);
        (usable * segments.packed_blocks() * 11 / 12) as u64
    }

    pub(crate) fn must_wait_for_space(&self) -> bool {
        let segments = self.segments.borrow();
        let queued = self.log.borrow().pending.len() / segments.packed_blocks().max(1);
        let room = segments.room();
        let map = self.map.borrow();
        room <= host_reserve(&segments, map.budget_pages()) + queued
            || map.dirty_pages() >= dirty_max(&segments, map.budget_pages())
    }

    pub(crate) fn wants_cleaning(&self) -> bool {
        let segments = self.segments.borrow();
        segments.room() <= clean_start(&segments, self.map.borrow().budget_pages())
    }

    /// So few segments are left that only cleaning may use them: unmaps wait too.
    pub(crate) fn is_scarce(&self) -> bool {
        let segments = self.segments.borrow();
        let room = segments.room();
        room <= checkpoint_reserve(&segments, self.map.borrow().budget_pages()) + 2
    }

    /// Waits until an unmap may go on: it frees space, but takes some first.
    pub(crate) async fn wait_for_scraps(&self) -> Result<(), LaneError> {
        while self.is_scarce() && !self.starved.get() {
            self.check_running()?;
            self.background.notify();
            self.space.wait().await;
        }
        self.check_running()
    }

    /// Dirty pages are near the bound: a checkpoint is due.
    pub(crate) fn wants_flush(&self) -> bool {
        let map = self.map.borrow();
        map.dirty_pages() * 2 >= dirty_max(&self.segments.borrow(), map.budget_pages())
    }

    /// Waits until a host's write may go on.
    pub(crate) async fn wait_for_space(&self) -> Result<(), LaneError> {
        loop {
            self.check_running()?;
            if self.wants_cleaning() {
                self.background.notify();
            }
            if !self.must_wait_for_space() {
                return Ok(());
            }
            if self.starved.get() {
                return Err(LaneError::OutOfSpace);
            }
            if self.wants_flush() {
                self.want_checkpoint();
            }
            self.space.wait().await;
        }
    }

    /// Sets space aside for blocks that a write adds. Refused where the pool is full.
    pub(crate) fn promise(&self, blocks: u64) -> bool {
        if blocks == 0 {
            return true;
        }
        let segments = self.segments.borrow();
        let after = segments.live() + self.promised.get() + blocks;
        if after > self.capacity_blocks(&segments) {
            return false;
        }
        self.promised.set(self.promised.get() + blocks);
        true
    }

    pub(crate) fn take_back(&self, blocks: u64) {
        self.promised.set(self.promised.get() - blocks);
    }
}
