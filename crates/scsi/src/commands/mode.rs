//! MODE SENSE and MODE SELECT (SPC-4 §6.11-§6.14).
//!
//! An initiator can change D_SENSE, SWP and TAS of the control page, each for itself. The other parameters describe
//! the volume; a MODE SELECT that would change them is refused as a whole.

use wire::scsi::mode::{self, BlockDescriptor, Control, HeaderForm, ModeHeader};

use crate::call::Call;
use crate::fault::Fault;
use crate::response::Step;

/// A page's code, its current or default body, and which bits of it can be changed.
struct Page {
    code: u8,
    current: Vec<u8>,
    default: Vec<u8>,
    changeable: Vec<u8>,
}

/// All pages, ascending.
fn pages(call: &Call<'_>) -> [Page; 5] {
    let fixed = |code, body: &[u8]| Page {
        code,
        current: body.to_vec(),
        default: body.to_vec(),
        changeable: vec![0; body.len()],
    };
    [
        fixed(mode::PAGE_ERROR_RECOVERY, &mode::error_recovery_body(call.unit.geometry.thin)),
        fixed(mode::PAGE_DISCONNECT_RECONNECT, &mode::disconnect_reconnect_body()),
        // WCE is a property of the volume (--write-back), not of one initiator
        fixed(mode::PAGE_CACHING, &mode::caching_body(call.unit.geometry.write_back)),
        Page {
            code: mode::PAGE_CONTROL,
            current: call.nexus.control.body().to_vec(),
            default: Control::DEFAULT.body().to_vec(),
            changeable: Control::CHANGEABLE.to_vec(),
        },
        fixed(mode::PAGE_INFORMATIONAL_EXCEPTIONS, &mode::informational_exceptions_body()),
    ]
}

pub(crate) fn sense_6(call: &mut Call<'_>) -> Result<Step, Fault> {
    let allocation_bytes = usize::from(call.cdb[4]);
    sense(call, HeaderForm::Six, allocation_bytes)
}

pub(crate) fn sense_10(call: &mut Call<'_>) -> Result<Step, Fault> {
    let allocation_bytes = usize::from(u16::from_be_bytes([call.cdb[7], call.cdb[8]]));
    sense(call, HeaderForm::Ten, allocation_bytes)
}

fn sense(call: &mut Call<'_>, form: HeaderForm, allocation_bytes: usize) -> Result<Step, Fault> {
    const DBD: u8 = 0x08;
    const LLBAA: u8 = 0x10;
    let (flags, wanted, subpage) = (call.cdb[1], call.cdb[2] & 0x3F, call.cdb[3]);
    // page control: current, changeable, default, saved
    let body: fn(&Page) -> &[u8] = match call.cdb[2] >> 6 {
        0 => |page| &page.current,
        1 => |page| &page.changeable,
        2 => |page| &page.default,
        _ => return Err(Fault::SavingNotSupported),
    };
    // subpages: none but "all of them"
    if subpage != 0 && subpage != 0xFF {
        return Err(Fault::cdb(3));
    }
    let selected: Vec<u8> = pages(call)
        .iter()
        .filter(|page| wanted == mode::PAGE_ALL || wanted == page.code)
        .flat_map(|page| mode::emit_page(page.code, body(page)))
        .collect();
    if selected.is_empty() {
        return Err(Fault::cdb_bit(2, 5));
    }
    let geometry = &call.unit.geometry;
    let long = flags & LLBAA != 0 && form == HeaderForm::Ten;
    let descriptor = BlockDescriptor { blocks: geometry.blocks, block_bytes: geometry.block_bytes, long };
    let header = ModeHeader {
        write_protected: call.unit.read_only
            || call.nexus.read_only
            || call.nexus.control.software_write_protect,
        dpo_fua: true,
        descriptor: (flags & DBD == 0).then_some(descriptor),
    };
    call.parameters(header.emit(form, &selected), allocation_bytes)
}

pub(crate) fn select_6(call: &mut Call<'_>) -> Result<Step, Fault> {
    let length = usize::from(call.cdb[4]);
    select(call, HeaderForm::Six, length)
}

pub(crate) fn select_10(call: &mut Call<'_>) -> Result<Step, Fault> {
    let length = usize::from(u16::from_be_bytes([call.cdb[7], call.cdb[8]]));
    select(call, HeaderForm::Ten, length)
}

fn select(call: &mut Call<'_>, form: HeaderForm, length: usize) -> Result<Step, Fault> {
    const PF: u8 = 0x10;
    const SP: u8 = 0x01;
    if call.cdb[1] & PF == 0 {
        return Err(Fault::cdb_bit(1, 4));
    }
    if call.cdb[1] & SP != 0 {
        return Err(Fault::cdb_bit(1, 0));
    }
    let list = call.take_data_out(length)?.to_vec();
    if list.is_empty() {
        return call.good();
    }
    let (header, pages_at) = ModeHeader::parse(form, &list).ok_or(Fault::ParameterListLength)?;
    if let Some(descriptor) = header.descriptor {
        check_descriptor(call, descriptor, form.bytes())?;
    }
    let pages = pages(call);
    let mut control = None;
    let mut at = pages_at;
    while at < list.len() {
        let (body, next) = check_page(&list, at, &pages)?;
        if list[at] & 0x3F == mode::PAGE_CONTROL {
            control = body.first_chunk().map(Control::of_body);
        }
        at = next;
    }
    // everything is right: now it may take effect
    if let Some(control) = control {
        call.nexus.control = control;
    }
    call.good()
}

/// A block descriptor may say what is so already, or leave the number of blocks open.
fn check_descriptor(call: &Call<'_>, descriptor: BlockDescriptor, at: usize) -> Result<(), Fault> {
    let geometry = &call.unit.geometry;
    let same_size = descriptor.blocks == geometry.blocks
        || descriptor.blocks == 0
        || (descriptor.blocks == u64::MAX && geometry.blocks > u64::from(u32::MAX) - 1);
    if !same_size {
        return Err(Fault::FieldInParameters { byte: at as u16, bit: None });
    }
    if descriptor.block_bytes != geometry.block_bytes {
        let byte = at + if descriptor.long { 12 } else { 5 };
        return Err(Fault::FieldInParameters { byte: byte as u16, bit: None });
    }
    Ok(())
}

/// The body of the page at `at`, which must exist, be whole and change nothing that cannot be; and where the
/// next one begins.
fn check_page<'a>(list: &'a [u8], at: usize, pages: &[Page]) -> Result<(&'a [u8], usize), Fault> {
    let wrong = |byte: usize, bit| Fault::FieldInParameters { byte: byte as u16, bit };
    let code = list[at] & 0x3F;
    let page = pages.iter().find(|page| page.code == code && list[at] & 0x40 == 0);
    let page = page.ok_or(wrong(at, Some(5)))?;
    let given_length = *list.get(at + 1).ok_or(Fault::ParameterListLength)?;
    if usize::from(given_length) != page.current.len() {
        return Err(wrong(at + 1, None));
    }
    let (_, body, _) = mode::split_page(&list[at..]).ok_or(Fault::ParameterListLength)?;
    for (index, &given) in body.iter().enumerate() {
        let changed = (given ^ page.current[index]) & !page.changeable[index];
        if changed != 0 {
            return Err(wrong(at + 2 + index, Some(7 - changed.leading_zeros() as u8)));
        }
    }
    Ok((body, at + 2 + body.len()))
}
