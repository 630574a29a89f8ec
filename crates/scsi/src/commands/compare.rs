//! COMPARE AND WRITE (SBC-3 §5.2): the atomic test-and-set that VMware uses for locks.

use base::Lba;
use block::BlockRequest;
use wire::scsi::cdb::FUA;

use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Pending, Step};

const BLOCKS_BYTE: usize = 13;

pub(crate) fn compare_and_write(call: &mut Call<'_>) -> Result<Step, Fault> {
    let lba = call.fields().lba;
    let blocks = call.cdb[BLOCKS_BYTE];
    call.unit.check_range(lba, u64::from(blocks))?;
    if blocks > call.unit.compare_and_write_blocks_max() {
        return Err(Fault::cdb(BLOCKS_BYTE as u16));
    }
    let half = usize::from(blocks) * call.block_bytes();
    // more data than the CDB counts: the count is wrong, the rest might be what was to be written
    if call.data_out.len() > 2 * half {
        call.data_out_bytes = Some(2 * half);
        return Err(Fault::cdb(BLOCKS_BYTE as u16));
    }
    let data = call.take_data_out(2 * half)?;
    if blocks == 0 {
        return call.good();
    }
    let (expected, new) = (data.slice(0..half), data.slice(half..2 * half));
    let durable = call.cdb[1] & FUA != 0;
    let expected = Box::new(expected);
    let request = BlockRequest::CompareAndWrite { lba: Lba(lba), expected, data: new, durable };
    call.block(request, Pending::Last { writing: true })
}
