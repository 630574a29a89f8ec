//! READ and WRITE of 6, 10, 12 and 16 bytes (SBC-3 §5.11-§5.13, §5.33-§5.35; the short ones SBC-2).

use base::Lba;
use block::BlockRequest;
use wire::scsi::cdb::FUA;

use crate::call::{Call, read_request};
use crate::fault::Fault;
use crate::response::{Pending, Step};

pub(crate) fn read(call: &mut Call<'_>) -> Result<Step, Fault> {
    let extent = call.extent()?;
    if extent.blocks == 0 {
        return call.good();
    }
    // DPO and FUA: every read is answered from stable storage or from what will get there
    let bytes = extent.blocks as usize * call.block_bytes();
    call.block(read_request(extent), Pending::Read { bytes })
}

pub(crate) fn write(call: &mut Call<'_>) -> Result<Step, Fault> {
    let extent = call.extent()?;
    let data = call.take_data_out(extent.blocks as usize * call.block_bytes())?;
    if extent.blocks == 0 {
        return call.good();
    }
    let durable = call.cdb.len() > 6 && call.cdb[1] & FUA != 0;
    let request = BlockRequest::Write { lba: Lba(extent.lba), data, durable };
    call.block(request, Pending::Last { writing: true })
}
