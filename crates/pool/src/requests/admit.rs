//! From a write to the log: what every write waits for before it appends its blocks, and the append itself.
//!
//! ```text
//!   admit ─► pinned, promised ─► appended, in the same step
//!                            └─► abandoned, if something changed meanwhile
//! ```
//!
//! What always holds: between admitting blocks and appending them, nothing is awaited except the blocks of further
//! pages. After such a wait, the map is compared with its state before.

use std::rc::Rc;

use base::LayerId;
use smallvec::SmallVec;

use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::page::PageKey;
use crate::lane::Lane;
use crate::layers::names::CATALOG_LAYER;
use crate::log::queue::{Pending, Source, Ticket};
use crate::map::pages::{Entries, Resolved};
use crate::map::tree::{leaf, within_leaf};
use crate::requests::hold_table::HoldId;

/// Blocks of one leaf page that may be appended now: the page is in memory, and space is promised for new blocks.
pub(crate) struct Admitted {
    page: PageKey,
    block: u64,
    blocks: u64,
    fresh: Fresh,
}

impl Admitted {
    /// Blocks for which space is promised.
    pub fn promised(&self) -> u64 {
        self.fresh.0.len() as u64
    }
}

impl Lane {
    /// Waits for space and until nobody except `by` holds the blocks, loads the leaf page, and promises space for new
    /// blocks. Between this and appending there must be no await.
    pub(crate) async fn admit(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
        by: Option<HoldId>,
    ) -> Result<Admitted, LaneError> {
        let (key, _) = leaf(layer, block);
        // deleting changes the catalog: this must be possible in a full pool
        let always = layer == CATALOG_LAYER;
        loop {
            match always {
                true => self.wait_for_scraps().await?,
                false => self.wait_for_space().await?,
            }
            let exists = self.ensure_for_change(key).await?;
            self.check_writable(layer, block)?;
            if !always && self.must_wait_for_space() {
                continue;
            }
            if self.holds.borrow().keep_out(layer, block, blocks, by) {
                self.committed.wait().await;
                continue;
            }
            let Some(fresh) = self.fresh(key, exists, block..block + blocks) else { continue };
            if !self.promise(fresh.0.len() as u64, always) {
                return Err(LaneError::OutOfSpace);
            }
            return Ok(Admitted { page: key, block, blocks, fresh });
        }
    }

    /// The blocks of a range that are neither mapped nor on their way. `None` if the page has been evicted.
    fn fresh(&self, key: PageKey, exists: bool, blocks: std::ops::Range<u64>) -> Option<Fresh> {
        let mut map = self.map.borrow_mut();
        if !exists {
            map.create(key);
        }
        let page = map.cached(key)?;
        let log = self.log.borrow();
        let (_, first) = leaf(key.layer, blocks.start);
        let start = blocks.start;
        let new = |block: &u64| {
            let entry = page.entry(first + (block - start) as usize);
            !entry.position.is_stored() && !log.is_pending_write(key.layer, *block)
        };
        Some(Fresh(blocks.filter(new).collect()))
    }

    /// Appends blocks that were admitted in this step. `source` gives the bytes of a block and is called in order.
    pub(crate) fn append_admitted(
        &self,
        admitted: &Admitted,
        durable: bool,
        ticket: &Rc<Ticket>,
        source: impl FnMut(u64) -> Source,
    ) {
        self.map.borrow_mut().pin(admitted.page, admitted.blocks as u32);
        self.append_pinned(admitted, durable, ticket, source);
    }

    fn append_pinned(
        &self,
        admitted: &Admitted,
        durable: bool,
        ticket: &Rc<Ticket>,
        mut source: impl FnMut(u64) -> Source,
    ) {
        let &Admitted { page, block, blocks, ref fresh } = admitted;
        let mut log = self.log.borrow_mut();
        for block in block..block + blocks {
            log.append(Pending {
                entry: Entry::Data { layer: page.layer, block, crc: 0 },
                source: Some(source(block)),
                durable,
                ticket: ticket.clone(),
                tag: None,
                pinned: Some(page),
                promised: fresh.get(&block),
                serial: 0,
            });
        }
        self.log_work.notify();
    }

    /// Appends blocks of several leaf pages in one step, provided they are unchanged; `None` if they are not. The pages
    /// are pinned meanwhile, so that the first are still there when the last is admitted.
    pub(crate) async fn append_if_unchanged(
        &self,
        (layer, block, blocks): (LayerId, u64, u64),
        before: Option<Entries>,
        durable: bool,
        mut source: impl FnMut(u64) -> Source,
    ) -> Result<Option<Rc<Ticket>>, LaneError> {
        self.log_room().await?;
        let mut all: SmallVec<[Admitted; 2]> = SmallVec::new();
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            match self.admit(layer, block + at, count, None).await {
                Ok(admitted) => {
                    self.map.borrow_mut().pin(admitted.page, count as u32);
                    all.push(admitted);
                }
                Err(error) => {
                    self.give_up(&all);
                    return Err(error);
                }
            }
            at += count;
        }
        let unchanged = self.is_unchanged(layer, block, &before);
        if unchanged != Ok(true) {
            self.give_up(&all);
            return unchanged.map(|_| None);
        }
        let ticket = Ticket::new(&self.io);
        all.iter().for_each(|admitted| self.append_pinned(admitted, durable, &ticket, &mut source));
        Ok(Some(ticket))
    }

    /// Releases admitted blocks, and the pins of their pages, because they are not appended after all.
    fn give_up(&self, admitted: &[Admitted]) {
        for admitted in admitted {
            self.take_back(admitted.promised());
            (0..admitted.blocks).for_each(|_| self.map.borrow_mut().unpin(admitted.page));
        }
    }

    /// Whether the map still says `before` of blocks, and no entry for them is on its way. Blocks that were unknown
    /// before may have changed.
    pub(crate) fn is_unchanged(
        &self,
        layer: LayerId,
        block: u64,
        before: &Option<Entries>,
    ) -> Result<bool, LaneError> {
        let Some(entries) = before else { return Ok(false) };
        let blocks = entries.len() as u64;
        let pending = || (block..block + blocks).any(|block| self.log.borrow().is_pending(layer, block));
        Ok(&self.current(layer, block, blocks)? == before && !pending())
    }

    /// The map entries of blocks, as far as they are known without reading the log. `None` if a page would have to be
    /// read; then the reader of the blocks reads it.
    pub(crate) fn current(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<Option<Entries>, LaneError> {
        match self.try_resolve(layer, block, blocks)? {
            Resolved::Entries(entries) => Ok(Some(entries)),
            Resolved::Load(..) | Resolved::Base(..) => Ok(None),
        }
    }
}

/// Blocks of one leaf page that a write adds to the layer.
struct Fresh(Vec<u64>);

impl Fresh {
    /// Promised blocks of this block's entry.
    fn get(&self, block: &u64) -> u32 {
        u32::from(self.0.binary_search(block).is_ok())
    }
}
