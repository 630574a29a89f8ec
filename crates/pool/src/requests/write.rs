//! Writing blocks of a layer: whole ones, parts of them, unmapping, comparing.
//!
//! Parts of a block (volumes with 512-byte logical blocks) and compare-and-write read the block first and
//! append the merged one in the same step in which they find that nothing else is on its way to it.

use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId};
use block::Payload;
use bytes::{Bytes, BytesMut};

use crate::format::header::Entry;
use crate::format::page::{MapEntry, PageKey};
use crate::geometry::position::Position;
use crate::lane::{CATALOG_LAYER, Lane, LaneError};
use crate::layers::references::{Known, told};
use crate::log::apply::within_leaf;
use crate::log::queue::{Blocks, Pending, Source, Ticket};
use crate::map::pages::{Entries, Resolved};
use crate::map::tree::leaf;
use crate::requests::hold::HoldId;

impl Lane {
    /// A layer that may be written.
    pub(crate) fn check_writable(&self, layer: LayerId, block: u64) -> Result<(), LaneError> {
        self.check_running()?;
        let map = self.map.borrow();
        match map.layers.get(&layer) {
            Some(found) if found.is_writable() => {
                // a volume lies within its layer, unless the layer's record is wrong
                if map.covers(layer, block) { Ok(()) } else { Err(LaneError::Unreadable { block }) }
            }
            Some(found) if !found.dropping => Err(LaneError::Frozen),
            _ => Err(LaneError::NoSuchLayer),
        }
    }

    /// Writes whole blocks from `offset_bytes` of the payload on; ends when they are committed.
    pub(crate) async fn write_blocks(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        data: Payload,
        durable: bool,
    ) -> Result<(), LaneError> {
        assert!(data.len().is_multiple_of(BLOCK_BYTES) && !data.is_empty());
        let blocks = (data.len() / BLOCK_BYTES) as u64;
        self.check_writable(layer, block + blocks - 1)?;
        let (data, ticket) = (Blocks::from(data), self.tickets.take());
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            self.log_room().await?;
            let key = self.admit(layer, block + at, count, None).await?;
            let mut log = self.log.borrow_mut();
            let mut pinned = self.map.borrow_mut();
            pinned.pin(key.0, count as u32);
            for index in at..at + count {
                log.append(Pending {
                    entry: Entry::Data { layer, block: block + index, crc: 0 },
                    source: Some(data.source(index as usize)),
                    durable,
                    ticket: ticket.clone(),
                    tag: None,
                    pinned: Some(key.0),
                    promised: key.1.get(&(block + index)),
                    serial: 0,
                });
            }
            self.log_work.notify();
            at += count;
        }
        self.counters.borrow_mut().blocks_written += blocks;
        ticket.wait().await
    }

    /// Waits for space and until nobody but `by` holds the blocks, has the leaf page in memory, and promises space
    /// for the blocks that are new. Between this and appending there must be no await.
    pub(crate) async fn admit(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
        by: Option<HoldId>,
    ) -> Result<(PageKey, Fresh), LaneError> {
        let (key, _) = leaf(layer, block);
        // deleting is a change of the catalog: it must be possible in a full pool
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
            return Ok((key, fresh));
        }
    }

    /// The blocks of a range that are not mapped yet, nor on their way. `None` where the page has left the cache.
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

    /// Writes part of one block: `data` at `offset_bytes` within it.
    pub(crate) async fn write_part(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        data: &Payload,
        known: &[Known],
        durable: bool,
    ) -> Result<(), LaneError> {
        assert!(offset_bytes + data.len() <= BLOCK_BYTES);
        let merge = |old: &Bytes| {
            let mut merged = BytesMut::from(&old[..]);
            data.copy_to(0, &mut merged[offset_bytes..offset_bytes + data.len()]);
            Ok(merged.freeze())
        };
        self.replace_block(layer, block, known, durable, merge).await
    }

    /// Replaces a block by what `change` makes of it, atomically.
    async fn replace_block(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        known: &[Known],
        durable: bool,
        change: impl Fn(&Bytes) -> Result<Bytes, LaneError>,
    ) -> Result<(), LaneError> {
        self.check_writable(layer, block)?;
        loop {
            self.wait_until_settled(layer, block, 1).await?;
            let before = self.current(layer, block)?;
            let pieces = told(self.read_blocks(layer, block, 1).await?, known)?;
            let changed = change(&pieces.pieces()[0])?;
            if before.is_some_and(|entry| !entry.position.is_mapped())
                && changed.iter().all(|&byte| byte == 0)
            {
                // zeros where nothing is: they need no space
                return Ok(());
            }
            self.log_room().await?;
            let (key, fresh) = self.admit(layer, block, 1, None).await?;
            if before.is_none()
                || self.current(layer, block)? != before
                || self.log.borrow().is_pending(layer, block)
            {
                self.take_back(fresh.0.len() as u64);
                continue;
            }
            let ticket = Ticket::new(&self.io);
            self.map.borrow_mut().pin(key, 1);
            self.append(Pending {
                entry: Entry::Data { layer, block, crc: 0 },
                source: Some(Source::Block(changed)),
                durable,
                ticket: ticket.clone(),
                tag: None,
                pinned: Some(key),
                promised: fresh.get(&block),
                serial: 0,
            });
            return ticket.wait().await;
        }
    }

    /// The block's map entry as far as it is known without reading the log; `None` where a page would have
    /// to be read (then it is, by whoever reads the block).
    fn current(&self, layer: LayerId, block: u64) -> Result<Option<MapEntry>, LaneError> {
        match self.try_resolve(layer, block, 1)? {
            Resolved::Entries(entries) => Ok(Some(entries[0])),
            Resolved::Load(..) | Resolved::Base(..) => Ok(None),
        }
    }

    /// Waits until nothing is on its way to the blocks.
    pub(crate) async fn wait_until_settled(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<(), LaneError> {
        let pending = || {
            let log = self.log.borrow();
            (block..block + blocks).any(|block| log.is_pending(layer, block))
        };
        while pending() {
            self.check_running()?;
            self.committed.wait().await;
        }
        Ok(())
    }

    /// Compares blocks with `expected`, and writes `data` where they are equal; nothing can come in between. A
    /// layer's compare-and-writes are at most a leaf page long.
    pub(crate) async fn compare_and_write(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        (expected, data): (&Payload, &Payload),
        known: &[Known],
        durable: bool,
    ) -> Result<(), LaneError> {
        assert!(expected.len() == data.len() && !data.is_empty());
        let blocks = ((offset_bytes + data.len()).div_ceil(BLOCK_BYTES)) as u64;
        self.check_writable(layer, block + blocks - 1)?;
        loop {
            self.wait_until_settled(layer, block, blocks).await?;
            let before = self.currents(layer, block, blocks)?;
            let pieces = told(self.read_blocks(layer, block, blocks).await?, known)?;
            let mut whole = BytesMut::with_capacity(blocks as usize * BLOCK_BYTES);
            pieces.pieces().iter().for_each(|piece| whole.extend_from_slice(piece));
            let range = offset_bytes..offset_bytes + data.len();
            let differs =
                whole[range.clone()].iter().zip(expected.to_vec()).position(|(&is, should)| is != should);
            if before.is_none() || self.currents(layer, block, blocks)? != before {
                continue;
            }
            if let Some(at) = differs {
                return Err(LaneError::Miscompare { offset_bytes: at as u32 });
            }
            data.copy_to(0, &mut whole[range]);
            if let Some(ticket) =
                self.append_if_unchanged(layer, block, &before, whole.freeze(), durable).await?
            {
                return ticket.wait().await;
            }
        }
    }

    /// Appends blocks in one step, provided the map still says `before` and nothing is on its way to them.
    async fn append_if_unchanged(
        &self,
        layer: LayerId,
        block: u64,
        before: &Option<Entries>,
        content: Bytes,
        durable: bool,
    ) -> Result<Option<Rc<Ticket>>, LaneError> {
        let blocks = (content.len() / BLOCK_BYTES) as u64;
        self.log_room().await?;
        let mut admitted = Vec::new();
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            match self.admit(layer, block + at, count, None).await {
                Ok((key, fresh)) => {
                    self.map.borrow_mut().pin(key, count as u32);
                    admitted.push((key, fresh, count));
                }
                Err(error) => {
                    self.give_up(admitted);
                    return Err(error);
                }
            }
            at += count;
        }
        let pending = || (block..block + blocks).any(|block| self.log.borrow().is_pending(layer, block));
        if &self.currents(layer, block, blocks)? != before || pending() {
            self.give_up(admitted);
            return Ok(None);
        }
        let ticket = Ticket::new(&self.io);
        let mut at = 0;
        for (key, fresh, count) in admitted {
            for index in at..at + count {
                self.append(Pending {
                    entry: Entry::Data { layer, block: block + index, crc: 0 },
                    source: Some(Source::Block(
                        content.slice(index as usize * BLOCK_BYTES..(index as usize + 1) * BLOCK_BYTES),
                    )),
                    durable,
                    ticket: ticket.clone(),
                    tag: None,
                    pinned: Some(key),
                    promised: fresh.get(&(block + index)),
                    serial: 0,
                });
            }
            at += count;
        }
        Ok(Some(ticket))
    }

    fn give_up(&self, admitted: Vec<(PageKey, Fresh, u64)>) {
        for (key, fresh, count) in admitted {
            self.take_back(fresh.0.len() as u64);
            (0..count).for_each(|_| self.map.borrow_mut().unpin(key));
        }
    }

    fn currents(&self, layer: LayerId, block: u64, blocks: u64) -> Result<Option<Entries>, LaneError> {
        match self.try_resolve(layer, block, blocks)? {
            Resolved::Entries(entries) => Ok(Some(entries)),
            Resolved::Load(..) | Resolved::Base(..) => Ok(None),
        }
    }

    /// Unmaps whole blocks: they read as zeros from then on. Ranges without a page cost nothing.
    pub(crate) async fn unmap_blocks(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
        durable: bool,
    ) -> Result<(), LaneError> {
        if blocks == 0 {
            return Ok(());
        }
        self.check_writable(layer, block + blocks - 1)?;
        let ticket = Ticket::new(&self.io);
        let mut at = block;
        while at < block + blocks {
            let count = within_leaf(at, block + blocks - at);
            self.give_way().await;
            self.wait_for_scraps().await?;
            self.log_room().await?;
            if self.unmap_changes_something(layer, at, count).await? {
                let key = self.pin_range(layer, at, count, || Ok(())).await?;
                let entry = Entry::Unmap { layer, block: at, blocks: count as u32 };
                self.append(Pending { durable, ..Pending::bare(entry, Some(key), &ticket) });
            }
            at += count;
        }
        ticket.wait().await
    }

    /// Has the leaf page in memory of a range that an entry is to change, when nobody holds its blocks, and the layer can be
    /// written, and `also` holds. Between this and appending there must be no await.
    pub(crate) async fn pin_range(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
        also: impl FnOnce() -> Result<(), LaneError>,
    ) -> Result<PageKey, LaneError> {
        let (key, _) = leaf(layer, block);
        self.pin_page(key, 1).await?;
        let free = self.wait_until_free(layer, block, blocks).await;
        let able = free.and_then(|()| self.check_writable(layer, block)).and_then(|()| also());
        if let Err(error) = able {
            self.map.borrow_mut().unpin(key);
            return Err(error);
        }
        Ok(key)
    }

    async fn unmap_changes_something(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<bool, LaneError> {
        let pending = {
            let log = self.log.borrow();
            (block..block + blocks).any(|block| log.is_pending(layer, block))
        };
        if pending || self.map.borrow().layers.get(&layer).is_some_and(|layer| layer.parent.is_some()) {
            return Ok(true);
        }
        let (key, first) = leaf(layer, block);
        if !self.ensure_page(key).await? {
            // looked up across an await: a write may have come in between, then it is after this unmap
            return Ok(false);
        }
        let map = self.map.borrow();
        let Some(page) = map.cached(key) else { return Ok(true) };
        Ok((0..blocks as usize).any(|index| page.entry(first + index).position != Position::ABSENT))
    }
}

/// Blocks of one leaf page that a write adds to the layer.
pub(crate) struct Fresh(Vec<u64>);

impl Fresh {
    /// Promised blocks of this block's entry.
    pub(crate) fn get(&self, block: &u64) -> u32 {
        u32::from(self.0.binary_search(block).is_ok())
    }
}
