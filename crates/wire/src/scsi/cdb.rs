//! Command descriptor blocks (SPC-4 §4.2, SBC-3 §5): the places of the fields for each length.
//!
//! ```text
//!        0       1        2   3   4   5   6   7   8   9   10  11  12  13  14     15
//!   6    opcode  LBA (21 bits)    len control
//!   10   opcode  flags    LBA             group len     control
//!   12   opcode  flags    LBA             length          group control
//!   16   opcode  flags    LBA                             length          group  control
//! ```
//! A view returns the fields. Their meaning for one opcode is decided elsewhere.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The longest CDB that we serve. Transports pad shorter ones to it.
pub const CDB_BYTES_MAX: usize = 16;
/// Force unit access, in byte 1 of WRITE and its kin: on stable storage before the answer (SBC-3 §4.10).
pub const FUA: u8 = 0x08;

/// The length that the group code in an opcode's upper three bits promises (SPC-4 table 27); `None` for
/// variable-length and vendor-specific groups.
pub const fn cdb_length(opcode: u8) -> Option<usize> {
    match opcode >> 5 {
        0 => Some(6),
        1 | 2 => Some(10),
        4 => Some(16),
        5 => Some(12),
        _ => None,
    }
}

/// Six bytes: READ (6) and its kin.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Cdb6 {
    pub opcode: u8,
    /// Bits 4-0: the LBA's highest five bits.
    pub lba_high: u8,
    pub lba_low: U16,
    pub length: u8,
    pub control: u8,
}

/// Ten bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Cdb10 {
    pub opcode: u8,
    pub flags: u8,
    pub lba: U32,
    pub group: u8,
    pub length: U16,
    pub control: u8,
}

/// Twelve bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Cdb12 {
    pub opcode: u8,
    pub flags: u8,
    pub lba: U32,
    pub length: U32,
    pub group: u8,
    pub control: u8,
}

/// Sixteen bytes, also with a service action in the flags (SERVICE ACTION IN (16)).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Cdb16 {
    pub opcode: u8,
    pub flags: u8,
    pub lba: U64,
    pub length: U32,
    pub group: u8,
    pub control: u8,
}

const _: () = assert!(size_of::<Cdb6>() == 6 && size_of::<Cdb10>() == 10);
const _: () = assert!(size_of::<Cdb12>() == 12 && size_of::<Cdb16>() == 16);

/// The fields that block commands of every length share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockFields {
    /// Byte 1; of a six-byte CDB only the upper three bits.
    pub flags: u8,
    pub lba: u64,
    /// The TRANSFER, VERIFICATION, PREFETCH, PARAMETER LIST or ALLOCATION LENGTH as it stands: READ (6)'s
    /// zero is still zero.
    pub length: u32,
}

impl BlockFields {
    /// Reads a CDB of 6, 10, 12 or 16 bytes; `None` for any other length.
    pub fn parse(cdb: &[u8]) -> Option<BlockFields> {
        match cdb.len() {
            6 => Cdb6::read_from_bytes(cdb).ok().map(|view| BlockFields {
                flags: view.lba_high & 0xE0,
                lba: u64::from(view.lba_high & 0x1F) << 16 | u64::from(view.lba_low.get()),
                length: u32::from(view.length),
            }),
            10 => Cdb10::read_from_bytes(cdb).ok().map(|view| BlockFields {
                flags: view.flags,
                lba: u64::from(view.lba.get()),
                length: u32::from(view.length.get()),
            }),
            12 => Cdb12::read_from_bytes(cdb).ok().map(|view| BlockFields {
                flags: view.flags,
                lba: u64::from(view.lba.get()),
                length: view.length.get(),
            }),
            16 => Cdb16::read_from_bytes(cdb).ok().map(|view| BlockFields {
                flags: view.flags,
                lba: view.lba.get(),
                length: view.length.get(),
            }),
            _ => None,
        }
    }

    /// The inverse, for a CDB of `bytes` bytes with this opcode. `None` where a field does not fit or there
    /// is no such length.
    pub fn emit(&self, opcode: u8, bytes: usize) -> Option<Vec<u8>> {
        let (flags, control) = (self.flags, 0);
        Some(match bytes {
            6 => {
                if self.lba >= 1 << 21 || flags & 0x1F != 0 {
                    return None;
                }
                let (lba_high, lba_low) = (flags | (self.lba >> 16) as u8, U16::new(self.lba as u16));
                let length = u8::try_from(self.length).ok()?;
                Cdb6 { opcode, lba_high, lba_low, length, control }.as_bytes().to_vec()
            }
            10 => {
                let (lba, length) = (u32::try_from(self.lba).ok()?, u16::try_from(self.length).ok()?);
                let (lba, length) = (U32::new(lba), U16::new(length));
                Cdb10 { opcode, flags, lba, group: 0, length, control }.as_bytes().to_vec()
            }
            12 => {
                let (lba, length) = (U32::new(u32::try_from(self.lba).ok()?), U32::new(self.length));
                Cdb12 { opcode, flags, lba, length, group: 0, control }.as_bytes().to_vec()
            }
            16 => {
                let (lba, length) = (U64::new(self.lba), U32::new(self.length));
                Cdb16 { opcode, flags, lba, length, group: 0, control }.as_bytes().to_vec()
            }
            _ => return None,
        })
    }
}

/// Where the LBA field of a block command of this length begins.
pub const fn lba_byte(cdb_bytes: usize) -> u16 {
    if cdb_bytes == 6 { 1 } else { 2 }
}

/// Where the length field of a block command of this length begins.
pub const fn length_byte(cdb_bytes: usize) -> u16 {
    match cdb_bytes {
        6 => 4,
        10 => 7,
        12 => 6,
        _ => 10,
    }
}

/// INQUIRY (SPC-4 §6.6).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct InquiryCdb {
    pub opcode: u8,
    /// Bit 0: EVPD.
    pub flags: u8,
    pub page: u8,
    pub allocation_length: U16,
    pub control: u8,
}

/// REPORT LUNS (SPC-4 §6.33).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ReportLunsCdb {
    pub opcode: u8,
    pub reserved1: u8,
    pub select_report: u8,
    pub reserved3: [u8; 3],
    pub allocation_length: U32,
    pub reserved10: u8,
    pub control: u8,
}

/// REPORT SUPPORTED OPERATION CODES (SPC-4 §6.35); the other MAINTENANCE IN and OUT commands share its lengths.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MaintenanceInCdb {
    pub opcode: u8,
    /// Bits 7-5: PARAMETER DATA FORMAT of REPORT TARGET PORT GROUPS; bits 4-0: SERVICE ACTION.
    pub service_action: u8,
    /// Bit 7: RCTD; bits 2-0: REPORTING OPTIONS.
    pub options: u8,
    pub requested_opcode: u8,
    pub requested_service_action: U16,
    pub allocation_length: U32,
    pub reserved10: u8,
    pub control: u8,
}

const _: () = assert!(size_of::<InquiryCdb>() == 6);
const _: () = assert!(size_of::<ReportLunsCdb>() == 12 && size_of::<MaintenanceInCdb>() == 12);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_cdbs() {
        let read = BlockFields::parse(&[0x08, 0x1F, 0x12, 0x34, 7, 0]).unwrap();
        assert_eq!(read, BlockFields { flags: 0, lba: 0x1F_1234, length: 7 });
        let read = BlockFields::parse(&[0x28, 0x08, 1, 2, 3, 4, 0, 5, 6, 0]).unwrap();
        assert_eq!(read, BlockFields { flags: 8, lba: 0x0102_0304, length: 0x0506 });
        let read = BlockFields::parse(&[0xA8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]).unwrap();
        assert_eq!(read, BlockFields { flags: 0, lba: 0x0102_0304, length: 0x0506_0708 });
        let read = BlockFields::parse(&[0x88, 0x18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0]).unwrap();
        assert_eq!(read, BlockFields { flags: 0x18, lba: 0x0102_0304_0506_0708, length: 0x090A_0B0C });
        assert_eq!(BlockFields::parse(&[0x28; 9]), None);
    }

    #[test]
    fn group_codes_give_lengths() {
        assert_eq!([0x12, 0x28, 0x5A, 0x88, 0xA8].map(cdb_length), [6, 10, 10, 16, 12].map(Some));
        assert_eq!((cdb_length(0x7F), cdb_length(0xC0)), (None, None));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(flags: u8, lba: u64, length: u32, opcode: u8) {
            for (bytes, lba_bits, length_bits, flag_bits) in [(6, 21, 8, 0xE0), (10, 32, 16, 0xFF), (12, 32, 32, 0xFF), (16, 64, 32, 0xFF)] {
                let fields = BlockFields {
                    flags: flags & flag_bits,
                    lba: lba >> (64 - lba_bits),
                    length: length >> (32 - length_bits),
                };
                let cdb = fields.emit(opcode, bytes).unwrap();
                prop_assert_eq!((cdb.len(), cdb[0]), (bytes, opcode));
                prop_assert_eq!(BlockFields::parse(&cdb), Some(fields));
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(BlockFields::parse(&bytes).is_some(), [6, 10, 12, 16].contains(&bytes.len()));
        }
    }
}
