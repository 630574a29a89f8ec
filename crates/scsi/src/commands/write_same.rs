//! WRITE SAME (SBC-3 §5.43, §5.44): writes one block to a whole range.
//!
//! A block of zeros, or no block (NDOB), becomes one `WriteZeroes` of the whole range, with or without UNMAP, because
//! unmapped blocks read as zeros here. Any other pattern is written in pieces.

use base::Lba;
use base::limits::{WRITE_SAME_BYTES_MAX, WRITE_SAME_PIECE_BYTES};
use block::{BlockRequest, Payload};
use bytes::Bytes;
use wire::scsi::cdb::length_byte;

use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Pending, Step};
use crate::unit::LogicalUnit;

const UNMAP: u8 = 0x08;
const NDOB: u8 = 0x01;

pub(crate) fn write_same(call: &mut Call<'_>) -> Result<Step, Fault> {
    let fields = call.fields();
    let blocks = u64::from(fields.length);
    if fields.flags & UNMAP != 0 && !call.unit.geometry.thin {
        return Err(Fault::cdb_bit(1, 3));
    }
    call.unit.check_range(fields.lba, blocks)?;
    // WSNZ: zero blocks, "up to the last", is not supported
    if blocks == 0 || blocks > call.unit.write_same_blocks_max() {
        return Err(Fault::cdb(length_byte(call.cdb.len())));
    }
    let no_data = fields.flags & NDOB != 0;
    let block_bytes = call.block_bytes();
    let block = call.take_exact_data_out(if no_data { 0 } else { block_bytes })?;
    let zeros = block.pieces().iter().all(|piece| piece.iter().all(|&byte| byte == 0));
    if zeros {
        let request = BlockRequest::WriteZeroes { lba: Lba(fields.lba), blocks };
        return call.block(request, Pending::Last { writing: true });
    }
    let pattern = Bytes::from(block.to_vec());
    let (request, pending) = next(call.unit, Box::new(Rest { lba: fields.lba, blocks, pattern }))
        .expect("at least one block is to be written");
    call.block(request, pending)
}

/// What is still to be written.
#[derive(Debug)]
pub(crate) struct Rest {
    lba: u64,
    blocks: u64,
    pattern: Bytes,
}

/// The next piece of the range that is left, if any.
pub(crate) fn next(unit: &LogicalUnit, mut rest: Box<Rest>) -> Option<(BlockRequest, Pending)> {
    let Rest { lba, blocks, ref pattern } = *rest;
    if blocks == 0 {
        return None;
    }
    let block_bytes = unit.geometry.block_bytes as usize;
    let now = blocks.min((WRITE_SAME_PIECE_BYTES / block_bytes) as u64);
    // one 64 KiB stretch of the pattern is shared by all of the piece
    let stretch = Bytes::from(pattern.repeat((64 << 10) / block_bytes));
    let mut data = Payload::new();
    let mut left = now as usize * block_bytes;
    while left > 0 {
        let take = left.min(stretch.len());
        data.push(stretch.slice(..take));
        left -= take;
    }
    let request = BlockRequest::Write { lba: Lba(lba), data, durable: false };
    (rest.lba, rest.blocks) = (lba + now, blocks - now);
    Some((request, Pending::WriteSame(rest)))
}

impl LogicalUnit {
    /// MAXIMUM WRITE SAME LENGTH of the block limits page.
    pub(crate) fn write_same_blocks_max(&self) -> u64 {
        WRITE_SAME_BYTES_MAX as u64 / u64::from(self.geometry.block_bytes)
    }
}
