//! GET LBA STATUS (SBC-3 §5.4).

use base::Lba;
use base::limits::{LBA_STATUS_DESCRIPTORS_MAX, LBA_STATUS_REQUESTS_MAX};
use block::BlockRequest;
use wire::scsi::provisioning::{LbaStatus, emit_lba_status};

use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Pending, Response, Step};

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;

pub(crate) fn get_lba_status(call: &mut Call<'_>) -> Result<Step, Fault> {
    let fields = call.fields();
    let end = call.unit.geometry.blocks;
    if fields.lba >= end {
        return Err(Fault::LbaOutOfRange);
    }
    let allocation_bytes = fields.length as usize;
    let fitting = allocation_bytes.saturating_sub(HEADER_BYTES) / DESCRIPTOR_BYTES;
    let fitting = fitting.clamp(1, LBA_STATUS_DESCRIPTORS_MAX);
    let lba = fields.lba;
    let left = LBA_STATUS_REQUESTS_MAX;
    let rest = Rest { lba, end, list: Vec::new(), fitting, left, allocation_bytes };
    call.block(request(lba, end), Pending::LbaStatus(Box::new(rest)))
}

fn request(lba: u64, end: u64) -> BlockRequest {
    BlockRequest::MapStatus { lba: Lba(lba), blocks: end - lba }
}

/// The remaining work: ask about `lba` to `end`, at most `left` more times, and stop when there is one more descriptor than the
/// `fitting` ones.
#[derive(Debug)]
pub(crate) struct Rest {
    lba: u64,
    end: u64,
    list: Vec<LbaStatus>,
    fitting: usize,
    left: usize,
    allocation_bytes: usize,
}

pub(crate) enum Progress {
    More(BlockRequest, Pending),
    Done(Response),
}

/// Takes the answer about the next range. Adjacent ranges in the same state become one descriptor, also for an initiator
/// that has room for only one. The number of queries is bounded, so a command on a large volume ends; the initiator
/// continues where the answer ends.
pub(crate) fn on_status(mut rest: Box<Rest>, mapped: bool, blocks: u64) -> Progress {
    let Rest { lba, end, ref mut list, fitting, left, allocation_bytes } = *rest;
    assert!(blocks > 0 && blocks <= end - lba, "a map status says something, within its range");
    // a descriptor counts 32 bits of blocks
    let now = blocks.min(u64::from(u32::MAX)) as u32;
    let joined = match list.last_mut() {
        Some(last) if last.mapped == mapped && last.blocks.checked_add(now).is_some() => {
            last.blocks += now;
            true
        }
        _ => false,
    };
    let has_room = joined || list.len() < fitting;
    if !joined && has_room {
        list.push(LbaStatus { lba, blocks: now, mapped });
    }
    let next = lba + u64::from(now);
    if has_room && next < end && left > 1 {
        (rest.lba, rest.left) = (next, left - 1);
        return Progress::More(request(next, end), Pending::LbaStatus(rest));
    }
    let mut data = emit_lba_status(list);
    data.truncate(allocation_bytes);
    Progress::Done(Response::with_data(data.into()))
}
