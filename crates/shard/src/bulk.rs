//! Requests of the control plane for ranges of volumes, and the memory that they hold.
//!
//! ```text
//!   request ─► credit: waits, or is there ─► lanes ─► answer; its data holds the credit
//!                 ▲                                        │
//!   Budget ◄── swept when credit is needed, and every 10 ms ◄── the last slice is dropped, in any thread
//! ```
//!
//! What always holds: transfers hold at most [`SHARE`] of the budget, and one transfer at most
//! [`TRANSFER_BYTES_MAX_HELD`]. A request whose caller is gone begins nothing. Nothing here belongs to a transfer but
//! its requests and their credit.

use std::ops::Range;
use std::rc::Rc;

use api::{
    Bulk, BulkError, BulkOutput, BulkReply, BulkRequest, BulkResult, Credit, Extents, Lease, TransferId,
};
use base::limits::{BULK_BYTES_MAX, BULK_EXTENTS_MAX, BULK_REQUESTS_MAX, TRANSFER_BYTES_MAX_HELD};
use base::{BLOCK_BYTES, Lba, Nanos};
use block::{BlockError, BlockOutput, BlockRequest, BlockTarget, Payload};
use pool::PoolVolume;

use crate::bulk_credit::Lent;
use crate::context::{Context, Stage};
use crate::replica::Transfer;

/// Of the budget for the data of commands, all transfers together hold one part of so many.
const SHARE: usize = 4;
/// How often dropped data is looked for.
const SWEEP: Nanos = Nanos::from_millis(10);
/// How often a request looks for credit, and for how long.
const LOOK_AGAIN: Nanos = Nanos::from_millis(2);
const WAIT_MAX: Nanos = Nanos::from_secs(30);
/// How many answers of the pool one request for extents uses.
const MAP_REQUESTS_MAX: usize = 4 * BULK_EXTENTS_MAX;

impl Context {
    /// Carries out a request of a transfer, and answers it.
    pub fn serve_bulk(self: &Rc<Context>, bulk: Bulk, reply: BulkReply) {
        if self.bulk.at_work.get() >= BULK_REQUESTS_MAX {
            return reply(Err(BulkError::Unavailable));
        }
        self.bulk.at_work.set(self.bulk.at_work.get() + 1);
        let context = self.clone();
        self.io.spawn(async move {
            let answer = context.carry_out_bulk(bulk).await;
            context.bulk.at_work.set(context.bulk.at_work.get() - 1);
            reply(answer);
        });
    }

    async fn carry_out_bulk(self: &Rc<Context>, bulk: Bulk) -> BulkResult {
        let Bulk { transfer, request, caller } = bulk;
        match request {
            BulkRequest::Extents { from_bytes } => {
                let (known, volume) = self.way(transfer)?;
                check_direction(&known, false)?;
                extents(&volume, from_bytes).await.map(BulkOutput::Extents)
            }
            BulkRequest::Read { offset_bytes, length_bytes } => {
                let range = offset_bytes..offset_bytes.saturating_add(length_bytes as u64);
                let (known, _) = self.way(transfer)?;
                check_direction(&known, false)?;
                check_range(&known, &range)?;
                let credit = self.credit(transfer, length_bytes, &caller).await?;
                // the transfer may have ended while the request waited
                let (_, volume) = self.way(transfer)?;
                let read = BlockRequest::Read { lba: lba(range.start), blocks: blocks(&range) };
                match volume.execute(read).await.map_err(bulk_error)? {
                    BlockOutput::Data(data) => {
                        Ok(BulkOutput::Data(data.into_iter().map(|piece| credit.with(piece)).collect()))
                    }
                    other => unreachable!("a read gives data, not {other:?}"),
                }
            }
            BulkRequest::Credit { length_bytes } => {
                let (known, _) = self.way(transfer)?;
                check_direction(&known, true)?;
                if length_bytes == 0 || length_bytes > BULK_BYTES_MAX {
                    return Err(BulkError::OutOfRange);
                }
                self.credit(transfer, length_bytes, &caller).await.map(BulkOutput::Credit)
            }
            BulkRequest::Write { offset_bytes, data, credit } => {
                let data = Payload::from(data);
                let range = offset_bytes..offset_bytes.saturating_add(data.len() as u64);
                let (known, volume) = self.way(transfer)?;
                check_direction(&known, true)?;
                check_range(&known, &range)?;
                let write = BlockRequest::Write { lba: lba(range.start), data, durable: false };
                let written = volume.execute(write).await.map_err(bulk_error);
                drop(credit);
                written.map(|_| BulkOutput::Written)
            }
        }
    }

    fn way(&self, transfer: TransferId) -> Result<(Transfer, Rc<PoolVolume>), BulkError> {
        if self.stage.get() != Stage::Serving {
            return Err(BulkError::Unavailable);
        }
        let (known, volume) = self.units.transfer(transfer).ok_or(BulkError::Ended)?;
        Ok((known, volume.ok_or(BulkError::NotReady)?))
    }

    /// Waits for memory, as long as the caller does.
    async fn credit(
        self: &Rc<Context>,
        transfer: TransferId,
        bytes: usize,
        caller: &Lease,
    ) -> Result<Credit, BulkError> {
        let deadline = self.io.now() + WAIT_MAX;
        loop {
            if caller.is_gone() || self.units.transfer(transfer).is_none() {
                return Err(BulkError::Ended);
            }
            if let Some(credit) = self.try_credit(transfer, bytes) {
                return Ok(credit);
            }
            if self.stage.get() != Stage::Serving {
                return Err(BulkError::Unavailable);
            }
            if self.io.now() >= deadline {
                return Err(BulkError::NoCredit);
            }
            self.io.sleep(LOOK_AGAIN).await;
        }
    }

    fn try_credit(self: &Rc<Context>, transfer: TransferId, bytes: usize) -> Option<Credit> {
        self.bulk.sweep();
        let (own, all) = self.bulk.lent_bytes(transfer);
        if own + bytes > TRANSFER_BYTES_MAX_HELD || all + bytes > self.budget.bytes_max() / SHARE {
            return None;
        }
        let _held = self.budget.try_hold(bytes)?;
        let (credit, token) = Credit::new();
        self.bulk.lent.borrow_mut().push(Lent { transfer, bytes, token, _held });
        if !self.bulk.is_sweeping.replace(true) {
            self.io.spawn(self.clone().sweep_until_all_is_back());
        }
        Some(credit)
    }

    /// What was dropped comes back to hosts' commands even if no transfer asks for more.
    async fn sweep_until_all_is_back(self: Rc<Context>) {
        while !self.bulk.lent.borrow().is_empty() {
            self.io.sleep(SWEEP).await;
            self.bulk.sweep();
        }
        self.bulk.is_sweeping.set(false);
    }

    /// Bytes of the budget that transfers hold, for those who check that it is bounded.
    pub fn bulk_held_bytes(&self) -> usize {
        self.bulk.lent.borrow().iter().map(|lent| lent.bytes).sum()
    }
}

fn lba(offset_bytes: u64) -> Lba {
    Lba(offset_bytes / BLOCK_BYTES as u64)
}

fn blocks(range: &Range<u64>) -> u32 {
    ((range.end - range.start) / BLOCK_BYTES as u64) as u32
}

fn check_direction(transfer: &Transfer, writes: bool) -> Result<(), BulkError> {
    if transfer.writes.is_some() == writes { Ok(()) } else { Err(BulkError::WrongDirection) }
}

fn check_range(transfer: &Transfer, range: &Range<u64>) -> Result<(), BulkError> {
    let is_whole = |bytes: u64| bytes.is_multiple_of(BLOCK_BYTES as u64);
    let fits = range.start < range.end && range.end <= transfer.size_bytes;
    let is_short = fits && range.end - range.start <= BULK_BYTES_MAX as u64;
    if is_short && is_whole(range.start) && is_whole(range.end) { Ok(()) } else { Err(BulkError::OutOfRange) }
}

fn bulk_error(error: BlockError) -> BulkError {
    match error {
        BlockError::Medium { lba } => BulkError::Medium { offset_bytes: lba.0 * BLOCK_BYTES as u64 },
        BlockError::OutOfSpace => BulkError::OutOfSpace,
        BlockError::NotReady | BlockError::WriteProtected | BlockError::Aborted => BulkError::NotReady,
        BlockError::Miscompare { .. } | BlockError::Unsupported => {
            unreachable!("a read or write of a pool does not give {error:?}")
        }
    }
}

/// Which ranges from an offset on are mapped, as far as one answer goes.
async fn extents(volume: &PoolVolume, from_bytes: u64) -> Result<Extents, BulkError> {
    let geometry = volume.geometry();
    if from_bytes > geometry.size_bytes() || !from_bytes.is_multiple_of(BLOCK_BYTES as u64) {
        return Err(BulkError::OutOfRange);
    }
    let mut found = Extents { ranges: Vec::new(), until_bytes: from_bytes };
    for _ in 0..MAP_REQUESTS_MAX {
        let at = lba(found.until_bytes);
        if at.0 == geometry.blocks || found.ranges.len() == BULK_EXTENTS_MAX {
            break;
        }
        let status = BlockRequest::MapStatus { lba: at, blocks: geometry.blocks - at.0 };
        let (mapped, alike) = match volume.execute(status).await.map_err(bulk_error)? {
            BlockOutput::MapStatus { mapped, blocks } => (mapped, blocks),
            other => unreachable!("a map status gives a map status, not {other:?}"),
        };
        let range = found.until_bytes..found.until_bytes + alike * BLOCK_BYTES as u64;
        found.until_bytes = range.end;
        match found.ranges.last_mut() {
            _ if !mapped => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => found.ranges.push(range),
        }
    }
    Ok(found)
}
