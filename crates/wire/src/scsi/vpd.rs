//! Vital product data pages (SPC-4 §7.8, SBC-3 §6.6).
//!
//! Every page is four bytes of header (peripheral, page code, length) and a body.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const SUPPORTED_PAGES: u8 = 0x00;
pub const UNIT_SERIAL_NUMBER: u8 = 0x80;
pub const DEVICE_IDENTIFICATION: u8 = 0x83;
pub const EXTENDED_INQUIRY: u8 = 0x86;
pub const MODE_PAGE_POLICY: u8 = 0x87;
pub const SCSI_PORTS: u8 = 0x88;
pub const THIRD_PARTY_COPY: u8 = 0x8F;
pub const BLOCK_LIMITS: u8 = 0xB0;
pub const BLOCK_CHARACTERISTICS: u8 = 0xB1;
pub const LOGICAL_BLOCK_PROVISIONING: u8 = 0xB2;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    peripheral: u8,
    page: u8,
    length: U16,
}

/// A page of a disk with this body. The body is at most 65,535 bytes.
pub fn emit_page(page: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("VPD pages are short");
    let header = Header { peripheral: 0, page, length: U16::new(length) };
    [header.as_bytes(), body].concat()
}

/// The page code and the body, `None` where either is cut short.
pub fn parse_page(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
    Some((header.page, rest.get(..usize::from(header.length.get()))?))
}

/// What a designator names (SPC-4 table 531).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Association {
    LogicalUnit,
    TargetPort,
    TargetDevice,
}

/// A name in the device identification page (SPC-4 §7.8.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Designator {
    /// NAA 6: IEEE Registered Extended, of the logical unit.
    Naa([u8; 16]),
    /// T10 vendor ID based, of the logical unit: vendor and an ASCII rest.
    T10 {
        vendor: [u8; 8],
        specific: String,
    },
    /// SCSI name string, UTF-8, emitted with its terminating zero and padding.
    ScsiName(Association, String),
    RelativeTargetPort(u16),
    TargetPortGroup(u16),
}

const CODE_SET_BINARY: u8 = 1;
const CODE_SET_ASCII: u8 = 2;
const CODE_SET_UTF8: u8 = 3;
/// PROTOCOL IDENTIFIER 5h, iSCSI, with PIV in byte 1.
const PROTOCOL_ISCSI: u8 = 0x50;
const PIV: u8 = 0x80;

impl Designator {
    fn emit(&self, out: &mut Vec<u8>) {
        let association = |association: Association| match association {
            Association::LogicalUnit => (0, 0),
            Association::TargetPort => (PROTOCOL_ISCSI, PIV | 0x10),
            Association::TargetDevice => (PROTOCOL_ISCSI, PIV | 0x20),
        };
        let port = association(Association::TargetPort);
        let (code_set, (protocol, flags), kind, name) = match self {
            Designator::Naa(naa) => (CODE_SET_BINARY, (0, 0), 3, naa.to_vec()),
            Designator::T10 { vendor, specific } => {
                (CODE_SET_ASCII, (0, 0), 1, [&vendor[..], specific.as_bytes()].concat())
            }
            Designator::ScsiName(of, name) => {
                let mut name = name.clone().into_bytes();
                name.resize((name.len() + 1).next_multiple_of(4), 0);
                (CODE_SET_UTF8, association(*of), 8, name)
            }
            Designator::RelativeTargetPort(id) => {
                (CODE_SET_BINARY, port, 4, u32::from(*id).to_be_bytes().to_vec())
            }
            Designator::TargetPortGroup(id) => {
                (CODE_SET_BINARY, port, 5, u32::from(*id).to_be_bytes().to_vec())
            }
        };
        let name = &name[..name.len().min(255)];
        out.extend_from_slice(&[protocol | code_set, flags | kind, 0, name.len() as u8]);
        out.extend_from_slice(name);
    }

    fn parse(head: [u8; 4], name: &[u8]) -> Option<Designator> {
        let association = match head[1] >> 4 & 3 {
            0 => Association::LogicalUnit,
            1 => Association::TargetPort,
            2 => Association::TargetDevice,
            _ => return None,
        };
        let low = || Some(u32::from_be_bytes(name.try_into().ok()?) as u16);
        Some(match (head[1] & 0x0F, association) {
            (1, Association::LogicalUnit) => {
                let (vendor, rest) = name.split_first_chunk()?;
                Designator::T10 { vendor: *vendor, specific: String::from_utf8(rest.to_vec()).ok()? }
            }
            (3, Association::LogicalUnit) => Designator::Naa(name.try_into().ok()?),
            (4, Association::TargetPort) => Designator::RelativeTargetPort(low()?),
            (5, Association::TargetPort) => Designator::TargetPortGroup(low()?),
            (8, association) => {
                let end = name.iter().position(|&byte| byte == 0)?;
                Designator::ScsiName(association, String::from_utf8(name[..end].to_vec()).ok()?)
            }
            _ => return None,
        })
    }
}

/// The body of the device identification page.
pub fn emit_designators(designators: &[Designator]) -> Vec<u8> {
    let mut out = Vec::new();
    designators.iter().for_each(|designator| designator.emit(&mut out));
    out
}

/// The inverse; `None` where one is cut short or of a kind that we do not emit.
pub fn parse_designators(mut body: &[u8]) -> Option<Vec<Designator>> {
    let mut out = Vec::new();
    while !body.is_empty() {
        let (head, rest) = body.split_first_chunk::<4>()?;
        let (name, next) = rest.split_at_checked(usize::from(head[3]))?;
        out.push(Designator::parse(*head, name)?);
        body = next;
    }
    Some(out)
}

/// Extended INQUIRY data (SPC-4 §7.8.7): the body.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ExtendedLayout {
    protection: u8,
    /// HEADSUP, ORDSUP, SIMPSUP.
    task_attributes: u8,
    /// Bit 0: V_SUP, a volatile cache is there.
    cache: u8,
    reserved7: [u8; 57],
}

/// The body of the extended INQUIRY page: simple, ordered and head-of-queue tasks; a volatile cache or none.
pub fn emit_extended_inquiry(volatile_cache: bool) -> Vec<u8> {
    let cache = u8::from(volatile_cache);
    ExtendedLayout { protection: 0, task_attributes: 0x07, cache, reserved7: [0; 57] }.as_bytes().to_vec()
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BlockLimitsLayout {
    /// Bit 0: WSNZ.
    flags: u8,
    compare_and_write_max: u8,
    transfer_granularity: U16,
    transfer_max: U32,
    transfer_optimal: U32,
    prefetch_max: U32,
    unmap_blocks_max: U32,
    unmap_descriptors_max: U32,
    unmap_granularity: U32,
    unmap_alignment: U32,
    write_same_max: U64,
    atomic: [u8; 20],
}

/// The block limits page (SBC-3 §6.6.3); all but the last in logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockLimits {
    /// WSNZ: WRITE SAME of zero blocks, "up to the end", is refused.
    pub write_same_nonzero: bool,
    pub compare_and_write_max: u8,
    pub transfer_granularity: u16,
    pub transfer_max: u32,
    pub transfer_optimal: u32,
    pub prefetch_max: u32,
    /// Zero where UNMAP is not supported.
    pub unmap_blocks_max: u32,
    pub unmap_granularity: u32,
    pub write_same_max: u64,
    pub unmap_descriptors_max: u32,
}

impl BlockLimits {
    pub fn emit(&self) -> Vec<u8> {
        BlockLimitsLayout {
            flags: u8::from(self.write_same_nonzero),
            compare_and_write_max: self.compare_and_write_max,
            transfer_granularity: U16::new(self.transfer_granularity),
            transfer_max: U32::new(self.transfer_max),
            transfer_optimal: U32::new(self.transfer_optimal),
            prefetch_max: U32::new(self.prefetch_max),
            unmap_blocks_max: U32::new(self.unmap_blocks_max),
            unmap_descriptors_max: U32::new(self.unmap_descriptors_max),
            unmap_granularity: U32::new(self.unmap_granularity),
            // UGAVALID, alignment 0
            unmap_alignment: U32::new(if self.unmap_granularity == 0 { 0 } else { 1 << 31 }),
            write_same_max: U64::new(self.write_same_max),
            atomic: [0; 20],
        }
        .as_bytes()
        .to_vec()
    }

    pub fn parse(body: &[u8]) -> Option<BlockLimits> {
        let (view, _) = BlockLimitsLayout::ref_from_prefix(body).ok()?;
        Some(BlockLimits {
            write_same_nonzero: view.flags & 1 != 0,
            compare_and_write_max: view.compare_and_write_max,
            transfer_granularity: view.transfer_granularity.get(),
            transfer_max: view.transfer_max.get(),
            transfer_optimal: view.transfer_optimal.get(),
            prefetch_max: view.prefetch_max.get(),
            unmap_blocks_max: view.unmap_blocks_max.get(),
            unmap_granularity: view.unmap_granularity.get(),
            write_same_max: view.write_same_max.get(),
            unmap_descriptors_max: view.unmap_descriptors_max.get(),
        })
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct CharacteristicsLayout {
    /// 0001h: non-rotating.
    rotation_rate: U16,
    product_type: u8,
    form_factor: u8,
    /// Bit 1: FUAB, bit 0: VBULS.
    flags: u8,
    reserved: [u8; 55],
}

const _: () = assert!(size_of::<Header>() == 4 && size_of::<ExtendedLayout>() == 60);
const _: () = assert!(size_of::<BlockLimitsLayout>() == 60 && size_of::<CharacteristicsLayout>() == 60);

/// The body of the block device characteristics page (SBC-3 §6.6.2): solid state, FUA as SBC-3 has it.
pub fn emit_block_characteristics() -> Vec<u8> {
    let rotation_rate = U16::new(1);
    CharacteristicsLayout { rotation_rate, product_type: 0, form_factor: 0, flags: 0x02, reserved: [0; 55] }
        .as_bytes()
        .to_vec()
}

/// The body of the logical block provisioning page (SBC-3 §6.6.4): UNMAP and both WRITE SAMEs unmap, what is
/// unmapped reads as zeros; a threshold set has two to the power of the exponent blocks. All zero where the logical
/// unit is not thin.
pub fn emit_provisioning(threshold_exponent: Option<u8>) -> Vec<u8> {
    // LBPU, LBPWS, LBPWS10, LBPRZ; provisioning type 2, thin
    threshold_exponent.map_or(vec![0; 4], |exponent| vec![exponent, 0xE4, 0x02, 0])
}

/// The body of the mode page policy page (SPC-4 §7.8.10): every page is each initiator's own.
pub fn emit_mode_page_policy() -> Vec<u8> {
    const ALL_PAGES: u8 = 0x3F;
    const ALL_SUBPAGES: u8 = 0xFF;
    const PER_NEXUS: u8 = 0x03;
    vec![ALL_PAGES, ALL_SUBPAGES, PER_NEXUS, 0]
}

/// The body of the SCSI ports page (SPC-4 §7.8.14): each port with its SCSI name.
pub fn emit_ports(ports: &[(u16, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (relative_id, name) in ports {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&relative_id.to_be_bytes());
        // no initiator port
        out.extend_from_slice(&[0; 4]);
        let name = emit_designators(&[Designator::ScsiName(Association::TargetPort, (*name).to_owned())]);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(name.len() as u16).to_be_bytes());
        out.extend_from_slice(&name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_designators() {
        let mut naa = [0x11; 16];
        naa[0] = 0x6F;
        let name = Designator::ScsiName(Association::TargetPort, "iqn.a,t,0x0001".into());
        let list = [Designator::Naa(naa), Designator::RelativeTargetPort(1), name];
        let body = emit_designators(&list);
        assert_eq!(body[..6], [0x01, 0x03, 0, 16, 0x6F, 0x11]);
        assert_eq!(body[20..28], [0x51, 0x94, 0, 4, 0, 0, 0, 1]);
        assert_eq!(body[28..32], [0x53, 0x98, 0, 16]);
        assert_eq!(body[32..], *b"iqn.a,t,0x0001\0\0");
        let page = emit_page(DEVICE_IDENTIFICATION, &body);
        assert_eq!(page[..4], [0, 0x83, 0, 48]);
        assert_eq!(parse_page(&page), Some((0x83, &body[..])));
        assert_eq!(parse_page(&page[..51]), None);
    }

    #[test]
    fn golden_pages() {
        assert_eq!(emit_extended_inquiry(true)[..4], [0, 7, 1, 0]);
        assert_eq!(emit_mode_page_policy(), [0x3F, 0xFF, 3, 0]);
        assert_eq!(
            emit_ports(&[(1, "iqn.a")])[..16],
            [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 12, 0x53, 0x98, 0, 8]
        );
        assert_eq!(emit_block_characteristics()[..5], [0, 1, 0, 0, 2]);
        assert_eq!(emit_provisioning(Some(11)), [11, 0xE4, 2, 0]);
        assert_eq!([emit_extended_inquiry(false).len(), emit_block_characteristics().len()], [60, 60]);
        let limits = BlockLimits {
            write_same_nonzero: true,
            compare_and_write_max: 255,
            transfer_granularity: 8,
            transfer_max: 0x2000,
            transfer_optimal: 0x800,
            prefetch_max: 0,
            unmap_blocks_max: 0x10_0000,
            unmap_granularity: 8,
            write_same_max: 0x8_0000,
            unmap_descriptors_max: 256,
        };
        let body = limits.emit();
        assert_eq!(body[..16], [1, 255, 0, 8, 0, 0, 0x20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        assert_eq!(body[16..32], [0, 0x10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0x80, 0, 0, 0]);
        assert_eq!(body[32..40], [0, 0, 0, 0, 0, 8, 0, 0]);
        assert_eq!(BlockLimits::parse(&body), Some(limits));
    }

    fn any_designator() -> impl Strategy<Value = Designator> {
        let association = proptest::sample::select(vec![
            Association::LogicalUnit,
            Association::TargetPort,
            Association::TargetDevice,
        ]);
        prop_oneof![
            any::<[u8; 16]>().prop_map(Designator::Naa),
            (any::<[u8; 8]>(), "[ -~]{0,40}")
                .prop_map(|(vendor, specific)| Designator::T10 { vendor, specific }),
            (association, "[a-z0-9.:,é-]{1,100}").prop_map(|(of, name)| Designator::ScsiName(of, name)),
            any::<u16>().prop_map(Designator::RelativeTargetPort),
            any::<u16>().prop_map(Designator::TargetPortGroup),
        ]
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(list in proptest::collection::vec(any_designator(), 0..6)) {
            prop_assert_eq!(parse_designators(&emit_designators(&list)), Some(list));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = (parse_page(&bytes), parse_designators(&bytes), BlockLimits::parse(&bytes));
        }
    }
}
