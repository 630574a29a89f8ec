//! READ CAPACITY (10) and (16) parameter data (SBC-3 §5.15, §5.16).

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Layout10 {
    last_lba: U32,
    block_bytes: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Layout16 {
    last_lba: U64,
    block_bytes: U32,
    protection: u8,
    exponents: u8,
    /// Bit 15 LBPME, bit 14 LBPRZ, bits 13-0 the lowest aligned LBA.
    provisioning: U16,
    reserved: [u8; 16],
}

const _: () = assert!(size_of::<Layout10>() == 8 && size_of::<Layout16>() == Capacity::BYTES_16);

/// How large a logical unit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    pub last_lba: u64,
    pub block_bytes: u32,
    /// Logical blocks per physical block, as a power of two: 3 for 512-byte blocks on 4 KiB.
    pub physical_exponent: u8,
    /// LBPME, and LBPRZ with it: thin, and unmapped blocks read as zeros.
    pub thin: bool,
}

impl Capacity {
    pub const BYTES_16: usize = 32;

    /// The short form: more than 2^32 - 1 blocks are told as FFFF_FFFFh, "use READ CAPACITY (16)".
    pub fn emit_10(&self) -> Vec<u8> {
        let last_lba = u32::try_from(self.last_lba).unwrap_or(u32::MAX);
        Layout10 { last_lba: U32::new(last_lba), block_bytes: U32::new(self.block_bytes) }.as_bytes().to_vec()
    }

    pub fn emit_16(&self) -> Vec<u8> {
        Layout16 {
            last_lba: U64::new(self.last_lba),
            block_bytes: U32::new(self.block_bytes),
            protection: 0,
            exponents: self.physical_exponent & 0x0F,
            provisioning: U16::new(if self.thin { 0xC000 } else { 0 }),
            reserved: [0; 16],
        }
        .as_bytes()
        .to_vec()
    }

    pub fn parse_16(bytes: &[u8]) -> Option<Capacity> {
        let (view, _) = Layout16::ref_from_prefix(bytes).ok()?;
        Some(Capacity {
            last_lba: view.last_lba.get(),
            block_bytes: view.block_bytes.get(),
            physical_exponent: view.exponents & 0x0F,
            thin: view.provisioning.get() & 0x8000 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let capacity = Capacity { last_lba: 0x0102_0304, block_bytes: 512, physical_exponent: 3, thin: true };
        assert_eq!(capacity.emit_10(), [1, 2, 3, 4, 0, 0, 2, 0]);
        let long = capacity.emit_16();
        assert_eq!(long[..16], [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 2, 0, 0, 3, 0xC0, 0]);
        assert_eq!(long[16..], [0; 16]);
        let large = Capacity { last_lba: 1 << 32, ..capacity };
        assert_eq!(large.emit_10()[..4], [0xFF; 4]);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(last_lba: u64, block_bytes: u32, physical_exponent in 0u8..16, thin: bool) {
            let capacity = Capacity { last_lba, block_bytes, physical_exponent, thin };
            prop_assert_eq!(Capacity::parse_16(&capacity.emit_16()), Some(capacity));
        }
    }
}
