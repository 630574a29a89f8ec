//! Writes blocks of a layer: whole blocks, parts of blocks, unmapping, compare-and-write.
//!
//! Writes of a part of a block (volumes with 512-byte logical blocks) and compare-and-write read the block first. They
//! append the merged block in the same step in which they find that no other write to it is under way. `admit.rs`
//! appends.

use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId};
use block::Payload;
use bytes::{Bytes, BytesMut};

use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::page::PageKey;
use crate::geometry::position::Position;
use crate::lane::Lane;
use crate::layers::references::ReferencedContent;
use crate::log::queue::{Blocks, Pending, Source, Ticket};
use crate::map::tree::{leaf, within_leaf};
use crate::reading::read::with_known;
use crate::requests::hold_table::HoldId;

impl Lane {
    /// Checks that a layer may be written.
    pub(crate) fn check_writable(&self, layer: LayerId, block: u64) -> Result<(), LaneError> {
        self.check_running()?;
        let map = self.map.borrow();
        match map.layers.get(&layer) {
            Some(found) if found.is_writable() => {
                // a volume is within its layer, unless the layer's record is wrong
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
        let ticket = self.tickets.take();
        let appended = self.append_blocks((layer, block, blocks), &data.into(), None, durable, &ticket).await;
        ticket.end(appended).await
    }

    /// Appends whole blocks, one leaf page after the other. If a page is refused, the pages before it stay appended.
    pub(crate) async fn append_blocks(
        &self,
        (layer, block, blocks): (LayerId, u64, u64),
        data: &Blocks,
        by: Option<HoldId>,
        durable: bool,
        ticket: &Rc<Ticket>,
    ) -> Result<(), LaneError> {
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            self.log_room().await?;
            let admitted = self.admit(layer, block + at, count, by).await?;
            self.append_admitted(&admitted, durable, ticket, |of| data.source((of - block) as usize));
            at += count;
        }
        self.counters.borrow_mut().blocks_written += blocks;
        Ok(())
    }

    /// Writes part of one block: `data` at `offset_bytes` within it.
    pub(crate) async fn write_part(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        data: &Payload,
        known: &[ReferencedContent],
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

    /// Replaces a block by the result of `change`, atomically.
    async fn replace_block(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        known: &[ReferencedContent],
        durable: bool,
        change: impl Fn(&Bytes) -> Result<Bytes, LaneError>,
    ) -> Result<(), LaneError> {
        self.check_writable(layer, block)?;
        loop {
            self.wait_until_settled(layer, block, 1).await?;
            let before = self.current(layer, block, 1)?;
            let pieces = with_known(self.read_blocks(layer, block, 1).await?, known)?;
            let mut changed = change(&pieces.pieces()[0])?;
            if before.as_ref().is_some_and(|entries| !entries[0].position.is_mapped())
                && changed.iter().all(|&byte| byte == 0)
            {
                // zeros where nothing is mapped: they need no space
                return Ok(());
            }
            self.log_room().await?;
            let admitted = self.admit(layer, block, 1, None).await?;
            let unchanged = self.is_unchanged(layer, block, &before);
            if unchanged != Ok(true) {
                self.take_back(admitted.promised());
                unchanged?;
                continue;
            }
            let ticket = Ticket::new(&self.io);
            let source = |_| Source::Block(std::mem::take(&mut changed));
            self.append_admitted(&admitted, durable, &ticket, source);
            return ticket.wait().await;
        }
    }

    /// Waits until no entry for the blocks is on its way.
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

    /// Compares blocks with `expected`, and writes `data` if they are equal; no other write can come in between. A
    /// compare-and-write within one lane covers at most a leaf page.
    pub(crate) async fn compare_and_write(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        offset_bytes: usize,
        (expected, data): (&Payload, &Payload),
        known: &[ReferencedContent],
        durable: bool,
    ) -> Result<(), LaneError> {
        assert!(expected.len() == data.len() && !data.is_empty());
        let blocks = ((offset_bytes + data.len()).div_ceil(BLOCK_BYTES)) as u64;
        self.check_writable(layer, block + blocks - 1)?;
        loop {
            self.wait_until_settled(layer, block, blocks).await?;
            let before = self.current(layer, block, blocks)?;
            let pieces = with_known(self.read_blocks(layer, block, blocks).await?, known)?;
            let mut whole = BytesMut::with_capacity(blocks as usize * BLOCK_BYTES);
            pieces.pieces().iter().for_each(|piece| whole.extend_from_slice(piece));
            let range = offset_bytes..offset_bytes + data.len();
            let differs =
                whole[range.clone()].iter().zip(expected.to_vec()).position(|(&is, should)| is != should);
            if before.is_none() || self.current(layer, block, blocks)? != before {
                continue;
            }
            if let Some(at) = differs {
                return Err(LaneError::Miscompare { offset_bytes: at as u32 });
            }
            data.copy_to(0, &mut whole[range]);
            let whole = whole.freeze();
            let source = |of| {
                let start = (of - block) as usize * BLOCK_BYTES;
                Source::Block(whole.slice(start..start + BLOCK_BYTES))
            };
            let appended = self.append_if_unchanged((layer, block, blocks), before, durable, source).await?;
            if let Some(ticket) = appended {
                return ticket.wait().await;
            }
        }
    }

    /// Unmaps whole blocks: from then on they read as zeros. Ranges without a page cost nothing.
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
        let appended = self.append_unmaps((layer, block, blocks), durable, &ticket).await;
        ticket.end(appended).await
    }

    async fn append_unmaps(
        &self,
        (layer, block, blocks): (LayerId, u64, u64),
        durable: bool,
        ticket: &Rc<Ticket>,
    ) -> Result<(), LaneError> {
        let mut at = block;
        while at < block + blocks {
            let count = within_leaf(at, block + blocks - at);
            self.give_way().await;
            self.wait_for_scraps().await?;
            self.log_room().await?;
            if self.unmap_changes_something(layer, at, count).await? {
                let key = self.pin_range(layer, at, count, || Ok(())).await?;
                let entry = Entry::Unmap { layer, block: at, blocks: count as u32 };
                self.append(Pending { durable, ..Pending::bare(entry, Some(key), ticket) });
            }
            at += count;
        }
        Ok(())
    }

    /// Loads and pins the leaf page of a range that an entry is to change, when nobody holds its blocks, the layer can
    /// be written, and `also` succeeds. Between this and appending there must be no await.
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
            // looked up across an await: a write that came in between is after this unmap
            return Ok(false);
        }
        let map = self.map.borrow();
        let Some(page) = map.cached(key) else { return Ok(true) };
        Ok((0..blocks as usize).any(|index| page.entry(first + index).position != Position::ABSENT))
    }
}
