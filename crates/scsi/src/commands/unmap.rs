//! UNMAP (SBC-3 §5.28). The whole parameter list is checked before anything is unmapped.

use base::Lba;
use base::limits::{UNMAP_BYTES_MAX, UNMAP_DESCRIPTORS_MAX};
use block::BlockRequest;
use wire::scsi::provisioning::{UNMAP_DESCRIPTOR_BYTES, UNMAP_HEADER_BYTES, UnmapRange, parse_unmap};

use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Pending, Step};
use crate::unit::LogicalUnit;

pub(crate) fn unmap(call: &mut Call<'_>) -> Result<Step, Fault> {
    let length = call.fields().length as usize;
    let list = call.take_data_out(length)?;
    if length == 0 {
        return call.good();
    }
    if length < UNMAP_HEADER_BYTES {
        return Err(Fault::ParameterListLength);
    }
    let ranges = parse_unmap(&list.to_vec()).ok_or(Fault::ParameterListLength)?;
    let rest = check(call.unit, ranges)?;
    match next(rest) {
        Some((request, pending)) => call.block(request, pending),
        None => call.good(),
    }
}

/// The ranges that are not empty, merged where they follow each other, last first.
fn check(unit: &LogicalUnit, ranges: Vec<UnmapRange>) -> Result<Vec<UnmapRange>, Fault> {
    if ranges.len() > UNMAP_DESCRIPTORS_MAX {
        return Err(Fault::FieldInParameters { byte: 2, bit: None });
    }
    let mut total = 0;
    for (index, range) in ranges.iter().enumerate() {
        if range.blocks == 0 {
            continue;
        }
        unit.check_range(range.lba, u64::from(range.blocks))?;
        total += u64::from(range.blocks);
        if total > u64::from(unit.unmap_blocks_max()) {
            let byte = UNMAP_HEADER_BYTES + index * UNMAP_DESCRIPTOR_BYTES + 8;
            return Err(Fault::FieldInParameters { byte: byte as u16, bit: None });
        }
    }
    let mut merged = merge(ranges);
    merged.reverse();
    Ok(merged)
}

/// Ranges that follow each other become one: what they cut into pieces within a block is then whole again.
fn merge(ranges: Vec<UnmapRange>) -> Vec<UnmapRange> {
    let mut merged: Vec<UnmapRange> = Vec::with_capacity(ranges.len());
    for range in ranges.into_iter().filter(|range| range.blocks > 0) {
        match merged.last_mut() {
            // all of them together are within the limit that was just checked
            Some(last) if last.lba + u64::from(last.blocks) == range.lba => last.blocks += range.blocks,
            _ => merged.push(range),
        }
    }
    merged
}

/// The next range to unmap, if any.
pub(crate) fn next(mut rest: Vec<UnmapRange>) -> Option<(BlockRequest, Pending)> {
    let range = rest.pop()?;
    let request = BlockRequest::Unmap { lba: Lba(range.lba), blocks: u64::from(range.blocks) };
    Some((request, Pending::Unmap { rest }))
}

impl LogicalUnit {
    /// MAXIMUM UNMAP LBA COUNT of the block limits page, where the volume is thin.
    pub(crate) fn unmap_blocks_max(&self) -> u32 {
        (UNMAP_BYTES_MAX / self.geometry.block_bytes as usize) as u32
    }
}
