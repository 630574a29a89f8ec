//! Mode parameters (SPC-4 §7.5, SBC-3 §6.5): headers, block descriptors and pages.
//!
//! ```text
//!   MODE SENSE (6)    header 4 │ block descriptor 8          │ page │ page ...
//!   MODE SENSE (10)   header 8 │ block descriptor 8, long 16 │ page │ page ...
//! ```

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const PAGE_ERROR_RECOVERY: u8 = 0x01;
pub const PAGE_DISCONNECT_RECONNECT: u8 = 0x02;
pub const PAGE_CACHING: u8 = 0x08;
pub const PAGE_CONTROL: u8 = 0x0A;
pub const PAGE_INFORMATIONAL_EXCEPTIONS: u8 = 0x1C;
/// MODE SENSE only: every page.
pub const PAGE_ALL: u8 = 0x3F;

/// WCE of the caching page's byte 2: a volatile write cache is in use.
pub const CACHING_WCE: u8 = 0x04;
/// D_SENSE of the control page's byte 2: sense data in descriptor format.
pub const CONTROL_D_SENSE: u8 = 0x04;
/// SWP of the control page's byte 4: writes are refused.
pub const CONTROL_SWP: u8 = 0x08;
/// TAS of the control page's byte 5: commands that another nexus has aborted end with TASK ABORTED.
pub const CONTROL_TAS: u8 = 0x40;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header6 {
    data_length: u8,
    medium_type: u8,
    device_specific: u8,
    descriptor_length: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header10 {
    data_length: U16,
    medium_type: u8,
    device_specific: u8,
    /// Bit 0: LONGLBA.
    flags: u8,
    reserved: u8,
    descriptor_length: U16,
}

/// Short LBA mode parameter block descriptor (SBC-3 §6.5.2.2).
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ShortDescriptor {
    blocks: U32,
    /// The highest byte is reserved.
    block_bytes: U32,
}

/// Long LBA mode parameter block descriptor (SBC-3 §6.5.2.3).
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LongDescriptor {
    blocks: U64,
    reserved: U32,
    block_bytes: U32,
}

const _: () = assert!(size_of::<Header6>() == 4 && size_of::<Header10>() == 8);
const _: () = assert!(size_of::<ShortDescriptor>() == 8 && size_of::<LongDescriptor>() == 16);

/// Which of the two commands a parameter list belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderForm {
    Six,
    Ten,
}

impl HeaderForm {
    pub const fn bytes(self) -> usize {
        match self {
            HeaderForm::Six => 4,
            HeaderForm::Ten => 8,
        }
    }
}

/// Size and number of blocks. `blocks` is `u64::MAX` where the short form says "more than fit".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockDescriptor {
    pub blocks: u64,
    pub block_bytes: u32,
    pub long: bool,
}

/// A mode parameter list before its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModeHeader {
    /// WP: the medium is write-protected. Reserved in MODE SELECT.
    pub write_protected: bool,
    /// DPOFUA: reads and writes understand DPO and FUA. Reserved in MODE SELECT.
    pub dpo_fua: bool,
    pub descriptor: Option<BlockDescriptor>,
}

impl ModeHeader {
    /// Header, block descriptor and `pages`, with the mode data length counting them all.
    pub fn emit(&self, form: HeaderForm, pages: &[u8]) -> Vec<u8> {
        let descriptor = self.descriptor.map_or(Vec::new(), |descriptor| descriptor.emit());
        let total = form.bytes() + descriptor.len() + pages.len();
        let device_specific = u8::from(self.write_protected) << 7 | u8::from(self.dpo_fua) << 4;
        let header = match form {
            HeaderForm::Six => Header6 {
                data_length: (total - 1).min(255) as u8,
                medium_type: 0,
                device_specific,
                descriptor_length: descriptor.len() as u8,
            }
            .as_bytes()
            .to_vec(),
            HeaderForm::Ten => Header10 {
                data_length: U16::new((total - 2) as u16),
                medium_type: 0,
                device_specific,
                flags: u8::from(self.descriptor.is_some_and(|descriptor| descriptor.long)),
                reserved: 0,
                descriptor_length: U16::new(descriptor.len() as u16),
            }
            .as_bytes()
            .to_vec(),
        };
        [header, descriptor, pages.to_vec()].concat()
    }

    /// The header and where the pages begin. `None` where the list is cut short within them, or the block
    /// descriptor's length is none that exists.
    pub fn parse(form: HeaderForm, bytes: &[u8]) -> Option<(ModeHeader, usize)> {
        let (device_specific, long, descriptor_length) = match form {
            HeaderForm::Six => {
                let (view, _) = Header6::ref_from_prefix(bytes).ok()?;
                (view.device_specific, false, usize::from(view.descriptor_length))
            }
            HeaderForm::Ten => {
                let (view, _) = Header10::ref_from_prefix(bytes).ok()?;
                (view.device_specific, view.flags & 1 != 0, usize::from(view.descriptor_length.get()))
            }
        };
        let pages_at = form.bytes() + descriptor_length;
        let body = bytes.get(form.bytes()..pages_at)?;
        let descriptor = if body.is_empty() { None } else { Some(BlockDescriptor::parse(body, long)?) };
        let (write_protected, dpo_fua) = (device_specific & 0x80 != 0, device_specific & 0x10 != 0);
        Some((ModeHeader { write_protected, dpo_fua, descriptor }, pages_at))
    }
}

impl BlockDescriptor {
    fn emit(self) -> Vec<u8> {
        let block_bytes = U32::new(self.block_bytes);
        if self.long {
            let blocks = U64::new(self.blocks);
            return LongDescriptor { blocks, reserved: U32::ZERO, block_bytes }.as_bytes().to_vec();
        }
        let blocks = U32::new(u32::try_from(self.blocks).unwrap_or(u32::MAX));
        ShortDescriptor { blocks, block_bytes }.as_bytes().to_vec()
    }

    fn parse(body: &[u8], long: bool) -> Option<BlockDescriptor> {
        if long {
            let view = LongDescriptor::ref_from_bytes(body).ok()?;
            return Some(BlockDescriptor {
                blocks: view.blocks.get(),
                block_bytes: view.block_bytes.get(),
                long,
            });
        }
        let view = ShortDescriptor::ref_from_bytes(body).ok()?;
        let blocks = if view.blocks.get() == u32::MAX { u64::MAX } else { u64::from(view.blocks.get()) };
        Some(BlockDescriptor { blocks, block_bytes: view.block_bytes.get() & 0xFF_FFFF, long })
    }
}

/// Splits the first page off a list of pages without subpages: its code, its body, what follows. The PS bit is
/// ignored (SPC-4 §7.5.7). `None` where it is cut short or in the subpage format.
pub fn split_page(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[code, length], rest) = bytes.split_first_chunk::<2>()?;
    if code & 0x40 != 0 {
        return None;
    }
    let (body, next) = rest.split_at_checked(usize::from(length))?;
    Some((code & 0x3F, body, next))
}

/// A page of format 0: two bytes of header and `body` (at most 255 bytes).
pub fn emit_page(code: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len()).expect("mode pages are short");
    [&[code & 0x3F, length], body].concat()
}

/// Read-write error recovery (SBC-3 §6.5.8): AWRE and ARRE, bad blocks are replaced by the array itself; LBPERE where
/// thin provisioning thresholds are told.
pub const fn error_recovery_body(thin: bool) -> [u8; 10] {
    [0xC0, if thin { 0x80 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Disconnect-reconnect (SPC-4 §7.5.11): no limits.
pub const fn disconnect_reconnect_body() -> [u8; 14] {
    [0; 14]
}

/// Caching (SBC-3 §6.5.5): WCE as told, read caching enabled, no prefetch limits.
pub const fn caching_body(write_cache: bool) -> [u8; 18] {
    let mut body = [0; 18];
    body[0] = if write_cache { CACHING_WCE } else { 0 };
    body
}

/// What an initiator may change of the control page (SPC-4 §7.5.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// D_SENSE.
    pub descriptor_sense: bool,
    /// SWP.
    pub software_write_protect: bool,
    /// TAS.
    pub task_aborted_status: bool,
}

impl Control {
    /// TAS is set: an initiator whose commands another has aborted sends them again at once, instead of waiting
    /// until they time out.
    pub const DEFAULT: Control =
        Control { descriptor_sense: false, software_write_protect: false, task_aborted_status: true };

    /// The bits of the page's body that can be changed.
    pub const CHANGEABLE: [u8; 10] = {
        let mut body = [0; 10];
        (body[0], body[2], body[3]) = (CONTROL_D_SENSE, CONTROL_SWP, CONTROL_TAS);
        body
    };

    /// The page's body: a task set for each I_T nexus, unrestricted reordering, no log saving.
    pub const fn body(self) -> [u8; 10] {
        let mut body = [0; 10];
        body[0] = 0x20 | 0x02 | if self.descriptor_sense { CONTROL_D_SENSE } else { 0 }; // TST 001b, GLTSD
        body[1] = 0x10; // QUEUE ALGORITHM MODIFIER: unrestricted reordering
        body[2] = if self.software_write_protect { CONTROL_SWP } else { 0 };
        body[3] = if self.task_aborted_status { CONTROL_TAS } else { 0 };
        body
    }

    /// What a body of the page's length says.
    pub const fn of_body(body: &[u8; 10]) -> Control {
        Control {
            descriptor_sense: body[0] & CONTROL_D_SENSE != 0,
            software_write_protect: body[2] & CONTROL_SWP != 0,
            task_aborted_status: body[3] & CONTROL_TAS != 0,
        }
    }
}

/// Informational exceptions control (SPC-4 §7.5.13): DEXCPT, none are reported.
pub const fn informational_exceptions_body() -> [u8; 10] {
    [0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let descriptor = Some(BlockDescriptor { blocks: 0x10000, block_bytes: 512, long: false });
        let header = ModeHeader { write_protected: true, dpo_fua: true, descriptor };
        let page = emit_page(PAGE_CACHING, &caching_body(true));
        let list = header.emit(HeaderForm::Six, &page);
        assert_eq!(list[..12], [31, 0, 0x90, 8, 0, 1, 0, 0, 0, 0, 2, 0]);
        assert_eq!(list[12..16], [0x08, 0x12, 0x04, 0]);
        let ten = header.emit(HeaderForm::Ten, &page);
        assert_eq!(ten[..8], [0, 34, 0, 0x90, 0, 0, 0, 8]);
        let control = |descriptor_sense, software_write_protect, task_aborted_status| {
            let control = Control { descriptor_sense, software_write_protect, task_aborted_status };
            assert_eq!(Control::of_body(&control.body()), control);
            emit_page(PAGE_CONTROL, &control.body())[..6].to_vec()
        };
        assert_eq!(control(true, true, false), [0x0A, 0x0A, 0x26, 0x10, 0x08, 0]);
        assert_eq!(control(false, false, true), [0x0A, 0x0A, 0x22, 0x10, 0, 0x40]);
        assert_eq!(split_page(&list[12..]), Some((0x08, &page[2..], &[][..])));
        assert_eq!(split_page(&page[..19]), None);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(write_protected: bool, dpo_fua: bool, six: bool, long: bool, blocks: u64,
                              block_bytes in 0u32..1 << 24, with: bool, pages in proptest::collection::vec(any::<u8>(), 0..40)) {
            let long = long && !six;
            let blocks = if long { blocks } else { blocks % u64::from(u32::MAX) };
            let descriptor = with.then_some(BlockDescriptor { blocks, block_bytes, long });
            let header = ModeHeader { write_protected, dpo_fua, descriptor };
            let form = if six { HeaderForm::Six } else { HeaderForm::Ten };
            let list = header.emit(form, &pages);
            let (parsed, pages_at) = ModeHeader::parse(form, &list).unwrap();
            prop_assert_eq!(parsed, header);
            prop_assert_eq!(&list[pages_at..], &pages[..]);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (ModeHeader::parse(HeaderForm::Six, &bytes), ModeHeader::parse(HeaderForm::Ten, &bytes), split_page(&bytes));
        }
    }
}
