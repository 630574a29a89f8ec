//! Data of the REPORT commands (SPC-4 §6.33-§6.36): LUNs, operation codes, task management functions.

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::lun::Lun;

/// REPORT LUNS parameter data.
pub fn emit_luns(luns: &[Lun]) -> Vec<u8> {
    let length = u32::try_from(luns.len() * 8).expect("LUNs are few");
    let mut out = length.to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    luns.iter().for_each(|lun| out.extend_from_slice(&lun.emit().to_be_bytes()));
    out
}

/// The inverse; `None` where it is cut short or has a LUN that we cannot name.
pub fn parse_luns(bytes: &[u8]) -> Option<Vec<Lun>> {
    let (header, rest) = bytes.split_first_chunk::<8>()?;
    let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let lun = |field: &[u8]| Lun::parse(u64::from_be_bytes(field.try_into().ok()?)).ok();
    rest.get(..length)?.chunks_exact(8).map(lun).collect()
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct TimeoutsLayout {
    length: U16,
    reserved: u8,
    command_specific: u8,
    nominal_s: U32,
    recommended_s: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct CommandLayout {
    opcode: u8,
    reserved1: u8,
    service_action: U16,
    reserved4: u8,
    /// Bit 1: CTDP, bit 0: SERVACTV.
    flags: u8,
    cdb_length: U16,
}

const _: () = assert!(size_of::<TimeoutsLayout>() == 12 && size_of::<CommandLayout>() == 8);

fn emit_timeouts(recommended_s: u32) -> TimeoutsLayout {
    let (length, nominal_s, recommended_s) = (U16::new(10), U32::ZERO, U32::new(recommended_s));
    TimeoutsLayout { length, reserved: 0, command_specific: 0, nominal_s, recommended_s }
}

/// One row of REPORT SUPPORTED OPERATION CODES, all commands (SPC-4 §6.35.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandRow {
    pub opcode: u8,
    pub service_action: Option<u16>,
    pub cdb_bytes: u16,
}

/// All commands; with command timeouts descriptors where `recommended_s` is given (0: no figure).
pub fn emit_commands(rows: &[CommandRow], recommended_s: Option<u32>) -> Vec<u8> {
    let mut out = vec![0; 4];
    for row in rows {
        let flags = u8::from(row.service_action.is_some()) | u8::from(recommended_s.is_some()) << 1;
        let layout = CommandLayout {
            opcode: row.opcode,
            reserved1: 0,
            service_action: U16::new(row.service_action.unwrap_or(0)),
            reserved4: 0,
            flags,
            cdb_length: U16::new(row.cdb_bytes),
        };
        out.extend_from_slice(layout.as_bytes());
        if let Some(seconds) = recommended_s {
            out.extend_from_slice(emit_timeouts(seconds).as_bytes());
        }
    }
    let length = u32::try_from(out.len() - 4).expect("a table of commands is short");
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// The rows, whether or not they have timeouts; `None` where the list is cut short.
pub fn parse_commands(bytes: &[u8]) -> Option<Vec<CommandRow>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let mut rest = rest.get(..u32::from_be_bytes(*length) as usize)?;
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (view, next) = CommandLayout::ref_from_prefix(rest).ok()?;
        let service_action = (view.flags & 1 != 0).then_some(view.service_action.get());
        rows.push(CommandRow { opcode: view.opcode, service_action, cdb_bytes: view.cdb_length.get() });
        rest = if view.flags & 2 != 0 { next.get(size_of::<TimeoutsLayout>()..)? } else { next };
    }
    Some(rows)
}

/// One command of REPORT SUPPORTED OPERATION CODES (SPC-4 §6.35.3): its usage mask, or `None` where it is not
/// supported.
pub fn emit_command(usage: Option<&[u8]>, recommended_s: Option<u32>) -> Vec<u8> {
    const NOT_SUPPORTED: u8 = 1;
    const SUPPORTED: u8 = 3;
    let Some(usage) = usage else { return vec![0, NOT_SUPPORTED, 0, 0] };
    let timeouts = u8::from(recommended_s.is_some()) << 7;
    let mut out = vec![0, SUPPORTED | timeouts, 0, usage.len() as u8];
    out.extend_from_slice(usage);
    if let Some(seconds) = recommended_s {
        out.extend_from_slice(emit_timeouts(seconds).as_bytes());
    }
    out
}

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS data, without the repeated fields (SPC-4 §6.36): ABORT TASK,
/// ABORT TASK SET, CLEAR TASK SET and LOGICAL UNIT RESET.
pub const fn task_management_functions() -> [u8; 4] {
    // byte 0: ATS, ATSS, CACAS, CTSS, LURS, QTS, TRS, WAKES
    [0b1101_1000, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let luns = [Lun::new(3).unwrap(), Lun::new(300).unwrap()];
        let bytes = emit_luns(&luns);
        assert_eq!(bytes[..8], [0, 0, 0, 16, 0, 0, 0, 0]);
        assert_eq!(bytes[8..], [0, 3, 0, 0, 0, 0, 0, 0, 0x41, 0x2C, 0, 0, 0, 0, 0, 0]);

        let row = CommandRow { opcode: 0x9E, service_action: Some(0x10), cdb_bytes: 16 };
        assert_eq!(emit_commands(&[row], None), [0, 0, 0, 8, 0x9E, 0, 0, 0x10, 0, 1, 0, 16]);
        let timed = emit_commands(&[row], Some(60));
        assert_eq!(timed[..12], [0, 0, 0, 20, 0x9E, 0, 0, 0x10, 0, 3, 0, 16]);
        assert_eq!(timed[12..], [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60]);
        assert_eq!(emit_command(Some(&[0, 0, 0, 0, 0, 0]), None), [0, 3, 0, 6, 0, 0, 0, 0, 0, 0]);
        assert_eq!(emit_command(None, Some(1)), [0, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn luns_come_back(numbers in proptest::collection::vec(0u16..16384, 0..50)) {
            let luns: Vec<Lun> = numbers.into_iter().filter_map(Lun::new).collect();
            prop_assert_eq!(parse_luns(&emit_luns(&luns)), Some(luns));
        }

        #[test]
        fn commands_come_back(rows in proptest::collection::vec((any::<u8>(), proptest::option::of(any::<u16>()), 6u16..17), 0..20), timeout in proptest::option::of(any::<u32>())) {
            let rows: Vec<_> = rows.into_iter()
                .map(|(opcode, service_action, cdb_bytes)| CommandRow { opcode, service_action, cdb_bytes }).collect();
            prop_assert_eq!(parse_commands(&emit_commands(&rows, timeout)), Some(rows));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (parse_luns(&bytes), parse_commands(&bytes));
        }
    }
}
