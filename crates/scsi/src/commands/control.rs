//! Commands about the unit as a whole: readiness, pending sense, capacity, cache, start and stop.

use base::Lba;
use block::BlockRequest;
use wire::scsi::Sense;
use wire::scsi::capacity::Capacity;
use wire::scsi::{SenseFormat, SenseKey};

use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Pending, Step};
use crate::unit::LogicalUnit;

/// SPC-4 §6.47. The target is asked about one block's mapping: hosts choose paths by this command, so that it
/// must not say "ready" of a volume whose pool cannot be served.
pub(crate) fn test_unit_ready(call: &mut Call<'_>) -> Result<Step, Fault> {
    if call.unit.geometry.blocks == 0 {
        return call.good();
    }
    call.block(BlockRequest::MapStatus { lba: Lba(0), blocks: 1 }, Pending::Ready)
}

/// SPC-4 §6.39: a pending unit attention as parameter data, which is then no longer pending.
pub(crate) fn request_sense(call: &mut Call<'_>) -> Result<Step, Fault> {
    const DESC: u8 = 0x01;
    let format = if call.cdb[1] & DESC != 0 { SenseFormat::Descriptor } else { SenseFormat::Fixed };
    let attention = call.nexus.take_attention();
    let sense =
        attention.map_or(Sense::NONE, |attention| Sense::new(SenseKey::UnitAttention, attention.code()));
    call.parameters(sense.emit(format).to_vec(), usize::from(call.cdb[4]))
}

/// SBC-3 §5.15.
pub(crate) fn read_capacity_10(call: &mut Call<'_>) -> Result<Step, Fault> {
    const PMI: u8 = 0x01;
    let lba = u32::from_be_bytes([call.cdb[2], call.cdb[3], call.cdb[4], call.cdb[5]]);
    check_partial_medium(call, u64::from(lba), call.cdb[8] & PMI != 0)?;
    call.parameters(call.unit.capacity().emit_10(), 8)
}

/// SBC-3 §5.16.
pub(crate) fn read_capacity_16(call: &mut Call<'_>) -> Result<Step, Fault> {
    const PMI: u8 = 0x01;
    let fields = call.fields();
    check_partial_medium(call, fields.lba, call.cdb[14] & PMI != 0)?;
    call.parameters(call.unit.capacity().emit_16(), fields.length as usize)
}

/// PMI, obsolete since SBC-3: an LBA makes sense with it only, and the last LBA is the answer in either case.
fn check_partial_medium(call: &Call<'_>, lba: u64, partial: bool) -> Result<(), Fault> {
    if partial {
        return call.unit.check_range(lba, 1);
    }
    if lba == 0 { Ok(()) } else { Err(Fault::cdb(2)) }
}

impl LogicalUnit {
    pub(crate) fn capacity(&self) -> Capacity {
        Capacity {
            last_lba: self.geometry.blocks.saturating_sub(1),
            block_bytes: self.geometry.block_bytes,
            physical_exponent: self.physical_exponent(),
            thin: self.geometry.thin,
        }
    }

    /// Logical blocks of a 4 KiB block as a power of two.
    pub(crate) fn physical_exponent(&self) -> u8 {
        (base::BLOCK_BYTES as u32 / self.geometry.block_bytes).trailing_zeros() as u8
    }
}

/// SBC-3 §5.26, §5.27. IMMED makes no difference: the answer comes when it is done.
pub(crate) fn synchronize_cache(call: &mut Call<'_>) -> Result<Step, Fault> {
    let fields = call.fields();
    call.unit.check_range(fields.lba, u64::from(fields.length))?;
    call.flush()
}

/// SBC-3 §5.8, §5.9. There is no cache to fetch into, so that GOOD, not CONDITION MET, is the answer.
pub(crate) fn prefetch(call: &mut Call<'_>) -> Result<Step, Fault> {
    let fields = call.fields();
    call.unit.check_range(fields.lba, u64::from(fields.length))?;
    call.good()
}

/// SBC-3 §5.25. The unit does not stop for one of many hosts; what that host has written is made durable.
pub(crate) fn start_stop(call: &mut Call<'_>) -> Result<Step, Fault> {
    const LOEJ: u8 = 0x02;
    const START: u8 = 0x01;
    const NO_FLUSH: u8 = 0x04;
    let flags = call.cdb[4];
    if flags >> 4 != 0 {
        return Err(Fault::cdb_bit(4, 7));
    }
    if flags & LOEJ != 0 {
        return Err(Fault::cdb_bit(4, 1));
    }
    if flags & (START | NO_FLUSH) == 0 { call.flush() } else { call.good() }
}

/// SBC-3 §5.10. The medium cannot be removed, whatever is allowed.
pub(crate) fn prevent_allow(call: &mut Call<'_>) -> Result<Step, Fault> {
    call.good()
}

/// SBC-3 §5.17, §5.18: the lists asked for, in the format asked for, and nothing in them: the array replaces what is
/// defective by itself.
pub(crate) fn read_defect_data(call: &mut Call<'_>) -> Result<Step, Fault> {
    let (flags, length) = match call.cdb.len() {
        10 => (call.cdb[2], u32::from(u16::from_be_bytes([call.cdb[7], call.cdb[8]]))),
        _ => (call.cdb[1], call.fields().length),
    };
    let mut data = vec![0, flags & 0x1F, 0, 0];
    if call.cdb.len() == 12 {
        data.extend_from_slice(&[0; 4]);
    }
    call.parameters(data, length as usize)
}

/// SPC-4 §6.42: the default self-test, which has nothing to test that is not tested all the time.
pub(crate) fn send_diagnostic(call: &mut Call<'_>) -> Result<Step, Fault> {
    const SELF_TEST: u8 = 0x04;
    if call.cdb[1] & SELF_TEST == 0 && call.cdb[1] != 0 {
        return Err(Fault::cdb_bit(1, 2));
    }
    call.good()
}
