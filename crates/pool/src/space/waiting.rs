//! Which writes wait for space, for how long, and which are refused. `shares.rs` computes the shares.

use crate::error::LaneError;
use crate::format::header::Entry;
use crate::lane::Lane;
use crate::layers::names::CATALOG_LAYER;
use crate::space::shares::Shares;

impl Lane {
    pub(crate) fn shares(&self) -> Shares {
        let mut shares = Shares::new(&self.segments.borrow(), &self.map.borrow());
        shares.lent = self.cleaner.lent(shares.packed);
        shares
    }

    pub(crate) fn must_wait_for_space(&self) -> bool {
        self.have_to_wait(&self.shares())
    }

    /// Whether hosts' writes have to wait with these shares.
    pub(crate) fn have_to_wait(&self, shares: &Shares) -> bool {
        let queued = self.log.borrow().pending.len() / shares.packed;
        shares.room <= shares.hosts_wait() + 1 + queued || self.dirty_enough(shares)
    }

    fn dirty_enough(&self, shares: &Shares) -> bool {
        self.map.borrow().exposed_pages() >= shares.dirty_max
    }

    pub(crate) fn wants_cleaning(&self) -> bool {
        let shares = self.shares();
        shares.room <= shares.cleaning_begins()
    }

    /// Waits until a change may continue that frees space, or that must be possible in a full pool. It waits for
    /// cleaning as long as cleaning makes progress.
    pub(crate) async fn wait_for_scraps(&self) -> Result<(), LaneError> {
        loop {
            self.check_running()?;
            let shares = self.shares();
            let starved = self.cleaner.is_starved() && shares.room > shares.checkpoint + 1;
            if !self.dirty_enough(&shares) && (starved || shares.room > shares.hosts_wait()) {
                return Ok(());
            }
            if self.cleaner.is_starved() && !starved {
                return Err(LaneError::OutOfSpace);
            }
            self.background.notify();
            if self.wants_flush() {
                self.want_checkpoint();
            }
            self.space.wait().await;
        }
    }

    /// Dirty pages are near the bound: a checkpoint is due.
    pub(crate) fn wants_flush(&self) -> bool {
        self.map.borrow().exposed_pages() * 2 >= self.shares().dirty_max
    }

    /// Waits until a host's write may continue.
    pub(crate) async fn wait_for_space(&self) -> Result<(), LaneError> {
        loop {
            self.check_running()?;
            if self.wants_cleaning() {
                self.background.notify();
            }
            match self.must_wait_for_space() {
                false if !self.is_ahead_of_cleaning() => return Ok(()),
                true if self.cleaner.is_starved() => return Err(LaneError::OutOfSpace),
                _ => {}
            }
            if self.wants_flush() {
                self.want_checkpoint();
            }
            self.space.wait().await;
        }
    }

    /// Promises space for blocks that a write adds. Refused if the pool is full, except for blocks that must `always`
    /// be possible.
    pub(crate) fn promise(&self, blocks: u64, always: bool) -> bool {
        let after = self.segments.borrow().live() + self.promises.blocks() + blocks;
        if blocks > 0 && !always && after > self.shares().capacity_blocks {
            return false;
        }
        self.promises.give(blocks);
        true
    }

    pub(crate) fn take_back(&self, blocks: u64) {
        self.promises.take_back(blocks);
    }

    /// Nothing can be cleaned and no checkpoint would help: writes are refused until something is unmapped, and those
    /// that wait in the log are abandoned.
    pub(crate) fn starve(&self) {
        self.cleaner.starve();
        let refused = |entry: &Entry| match *entry {
            Entry::Data { layer, .. } => layer != CATALOG_LAYER,
            _ => matches!(entry, Entry::Refer { .. }),
        };
        self.give_up_pending(refused);
        self.space.notify();
        self.log_work.notify();
    }

    /// Something was freed: hosts whose writes were refused may try again.
    pub(crate) fn relieve(&self) {
        if self.cleaner.relieve() {
            self.space.notify();
            self.background.notify();
        }
    }
}
