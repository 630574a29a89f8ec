//! UNMAP parameter lists (SBC-3 §5.28.2) and GET LBA STATUS data (SBC-3 §5.6.2).

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct UnmapHeader {
    data_length: U16,
    descriptors_length: U16,
    reserved: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct UnmapLayout {
    lba: U64,
    blocks: U32,
    reserved: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StatusLayout {
    lba: U64,
    blocks: U32,
    provisioning: u8,
    reserved: [u8; 3],
}

/// Bytes before the first UNMAP block descriptor.
pub const UNMAP_HEADER_BYTES: usize = 8;
/// Bytes of one UNMAP block descriptor.
pub const UNMAP_DESCRIPTOR_BYTES: usize = 16;

const _: () = assert!(size_of::<UnmapHeader>() == UNMAP_HEADER_BYTES);
const _: () = assert!(size_of::<UnmapLayout>() == UNMAP_DESCRIPTOR_BYTES && size_of::<StatusLayout>() == 16);

/// A range to be unmapped, in logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnmapRange {
    pub lba: u64,
    pub blocks: u32,
}

/// The ranges of a parameter list of at least eight bytes; `None` where it is shorter. A descriptor that the
/// list has only a part of is ignored, as is what the list's own length leaves out (SBC-3 §5.28.2).
pub fn parse_unmap(list: &[u8]) -> Option<Vec<UnmapRange>> {
    let (header, rest) = UnmapHeader::ref_from_prefix(list).ok()?;
    let length = usize::from(header.descriptors_length.get()).min(rest.len());
    let descriptors = rest[..length].chunks_exact(UNMAP_DESCRIPTOR_BYTES);
    let range = |bytes: &[u8]| {
        let view = UnmapLayout::ref_from_bytes(bytes).ok()?;
        Some(UnmapRange { lba: view.lba.get(), blocks: view.blocks.get() })
    };
    descriptors.map(range).collect()
}

/// The inverse. At most 4,095 ranges fit.
pub fn emit_unmap(ranges: &[UnmapRange]) -> Vec<u8> {
    let length = u16::try_from(ranges.len() * UNMAP_DESCRIPTOR_BYTES).expect("at most 4,095 ranges");
    let (data_length, descriptors_length) = (U16::new(length + 6), U16::new(length));
    let mut out = UnmapHeader { data_length, descriptors_length, reserved: U32::ZERO }.as_bytes().to_vec();
    for range in ranges {
        let (lba, blocks) = (U64::new(range.lba), U32::new(range.blocks));
        out.extend_from_slice(UnmapLayout { lba, blocks, reserved: U32::ZERO }.as_bytes());
    }
    out
}

/// One LBA status descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LbaStatus {
    pub lba: u64,
    pub blocks: u32,
    /// Mapped (0h) or deallocated (1h).
    pub mapped: bool,
}

/// GET LBA STATUS parameter data.
pub fn emit_lba_status(list: &[LbaStatus]) -> Vec<u8> {
    let length = u32::try_from(4 + list.len() * 16).expect("few descriptors");
    let mut out = length.to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    for status in list {
        let provisioning = u8::from(!status.mapped);
        let (lba, blocks) = (U64::new(status.lba), U32::new(status.blocks));
        out.extend_from_slice(StatusLayout { lba, blocks, provisioning, reserved: [0; 3] }.as_bytes());
    }
    out
}

/// The inverse; `None` where it is cut short or says anchored.
pub fn parse_lba_status(bytes: &[u8]) -> Option<Vec<LbaStatus>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let body = rest.get(..u32::from_be_bytes(*length) as usize)?.get(4..)?;
    let status = |bytes: &[u8]| {
        let view = StatusLayout::ref_from_bytes(bytes).ok()?;
        let mapped = match view.provisioning & 0x0F {
            0 => true,
            1 => false,
            _ => return None,
        };
        Some(LbaStatus { lba: view.lba.get(), blocks: view.blocks.get(), mapped })
    };
    body.chunks_exact(16).map(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let list = emit_unmap(&[UnmapRange { lba: 0x0102, blocks: 0x0304 }]);
        assert_eq!(list[..8], [0, 22, 0, 16, 0, 0, 0, 0]);
        assert_eq!(list[8..], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0]);
        let status = emit_lba_status(&[LbaStatus { lba: 5, blocks: 6, mapped: false }]);
        assert_eq!(status[..8], [0, 0, 0, 20, 0, 0, 0, 0]);
        assert_eq!(status[8..], [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 1, 0, 0, 0]);
    }

    #[test]
    fn a_partial_descriptor_is_ignored() {
        let ranges = [UnmapRange { lba: 1, blocks: 1 }, UnmapRange { lba: 9, blocks: 2 }];
        let list = emit_unmap(&ranges);
        assert_eq!(parse_unmap(&list[..list.len() - 1]), Some(ranges[..1].to_vec()));
        assert_eq!(parse_unmap(&list[..8]), Some(vec![]));
        assert_eq!(parse_unmap(&list[..7]), None);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(list in proptest::collection::vec((any::<u64>(), any::<u32>(), any::<bool>()), 0..20)) {
            let ranges: Vec<_> = list.iter().map(|&(lba, blocks, _)| UnmapRange { lba, blocks }).collect();
            prop_assert_eq!(parse_unmap(&emit_unmap(&ranges)), Some(ranges));
            let statuses: Vec<_> = list.iter().map(|&(lba, blocks, mapped)| LbaStatus { lba, blocks, mapped }).collect();
            prop_assert_eq!(parse_lba_status(&emit_lba_status(&statuses)), Some(statuses));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (parse_unmap(&bytes), parse_lba_status(&bytes));
        }
    }
}
