//! Standard INQUIRY data (SPC-4 §6.6.2).

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Peripheral qualifier 000b, device type 00h: a direct-access block device is here.
pub const PERIPHERAL_DISK: u8 = 0x00;
/// Peripheral qualifier 011b, device type 1Fh: no device can be here.
pub const PERIPHERAL_NONE: u8 = 0x7F;

/// Version descriptors (SPC-4 §6.6.2.2): SAM-5, iSCSI, SPC-4, SBC-3, no version claimed.
pub const VERSION_DESCRIPTORS: [u16; 4] = [0x00A0, 0x0960, 0x0460, 0x04C0];

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Layout {
    peripheral: u8,
    removable: u8,
    version: u8,
    format: u8,
    additional_length: u8,
    flags5: u8,
    flags6: u8,
    flags7: u8,
    vendor: [u8; 8],
    product: [u8; 16],
    revision: [u8; 4],
    vendor_specific: [u8; 20],
    reserved56: [u8; 2],
    version_descriptors: [U16; 8],
    reserved74: [u8; 22],
}

const _: () = assert!(size_of::<Layout>() == StandardInquiry::BYTES);

/// What a logical unit says of itself first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StandardInquiry {
    /// [`PERIPHERAL_DISK`] or [`PERIPHERAL_NONE`].
    pub peripheral: u8,
    /// TPGS = 11b: asymmetric access states change by the array's own decision and by SET TARGET PORT GROUPS.
    pub alua: bool,
    /// 3PC: EXTENDED COPY is known.
    pub third_party_copy: bool,
    /// MULTIP: more than one port.
    pub multiple_ports: bool,
    pub vendor: [u8; 8],
    pub product: [u8; 16],
    pub revision: [u8; 4],
}

impl StandardInquiry {
    pub const BYTES: usize = 96;

    pub fn emit(&self) -> Vec<u8> {
        let mut version_descriptors = [U16::ZERO; 8];
        for (slot, descriptor) in version_descriptors.iter_mut().zip(VERSION_DESCRIPTORS) {
            slot.set(descriptor);
        }
        Layout {
            peripheral: self.peripheral,
            removable: 0,
            version: 6,   // SPC-4
            format: 0x12, // HISUP, response data format 2
            additional_length: (Self::BYTES - 5) as u8,
            flags5: if self.alua { 0x30 } else { 0 } | if self.third_party_copy { 0x08 } else { 0 },
            flags6: if self.multiple_ports { 0x10 } else { 0 },
            flags7: 0x02, // CMDQUE
            vendor: self.vendor,
            product: self.product,
            revision: self.revision,
            vendor_specific: [0; 20],
            reserved56: [0; 2],
            version_descriptors,
            reserved74: [0; 22],
        }
        .as_bytes()
        .to_vec()
    }

    /// `None` where the data is cut short of the fields.
    pub fn parse(bytes: &[u8]) -> Option<StandardInquiry> {
        let (view, _) = Layout::ref_from_prefix(bytes).ok()?;
        Some(StandardInquiry {
            peripheral: view.peripheral,
            alua: view.flags5 & 0x30 == 0x30,
            third_party_copy: view.flags5 & 0x08 != 0,
            multiple_ports: view.flags6 & 0x10 != 0,
            vendor: view.vendor,
            product: view.product,
            revision: view.revision,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes_and_back() {
        let inquiry = StandardInquiry {
            peripheral: PERIPHERAL_DISK,
            alua: true,
            third_party_copy: true,
            multiple_ports: true,
            vendor: *b"TANGELO ",
            product: *b"VOLUME          ",
            revision: *b"0001",
        };
        let bytes = inquiry.emit();
        assert_eq!(bytes[..8], [0, 0, 6, 0x12, 91, 0x38, 0x10, 2]);
        assert_eq!(bytes[8..36], *b"TANGELO VOLUME          0001");
        assert_eq!(bytes[58..66], [0x00, 0xA0, 0x09, 0x60, 0x04, 0x60, 0x04, 0xC0]);
        assert!(bytes[66..].iter().all(|&byte| byte == 0));
        assert_eq!(StandardInquiry::parse(&bytes), Some(inquiry));
        assert_eq!(StandardInquiry::parse(&bytes[..95]), None);
        let (peripheral, no) = (PERIPHERAL_NONE, false);
        let none =
            StandardInquiry { peripheral, alua: no, third_party_copy: no, multiple_ports: no, ..inquiry };
        assert_eq!(StandardInquiry::parse(&none.emit()), Some(none));
    }
}
