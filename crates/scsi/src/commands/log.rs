//! LOG SENSE (SPC-4 §6.8).

use wire::scsi::log;

use crate::call::Call;
use crate::fault::Fault;
use crate::response::Step;

type MakePage = fn(&Call<'_>) -> Vec<u8>;

/// The pages, ascending.
const PAGES: &[(u8, MakePage)] = &[
    (log::PAGE_SUPPORTED, |call| {
        let pages: Vec<u8> = pages(call).map(|(code, _)| *code).collect();
        log::emit_body(log::PAGE_SUPPORTED, &pages)
    }),
    (log::PAGE_PROVISIONING, |call| {
        let space = (call.space)().expect("listed where there is space to tell of");
        let sets = |bytes: u64| call.unit.threshold_sets(bytes);
        let (free, used) = (space.capacity_bytes.saturating_sub(space.used_bytes), space.used_bytes);
        log::emit_page(log::PAGE_PROVISIONING, &log::provisioning(sets(free), sets(used)))
    }),
    (log::PAGE_TEMPERATURE, |_| log::emit_page(log::PAGE_TEMPERATURE, &log::temperature())),
    (log::PAGE_INFORMATIONAL_EXCEPTIONS, |_| {
        log::emit_page(log::PAGE_INFORMATIONAL_EXCEPTIONS, &log::informational_exceptions())
    }),
];

/// Those that the logical unit has.
fn pages<'a>(call: &'a Call<'_>) -> impl Iterator<Item = &'static (u8, MakePage)> + use<'a> {
    let has_space = (call.space)().is_some();
    PAGES.iter().filter(move |(code, _)| *code != log::PAGE_PROVISIONING || has_space)
}

pub(crate) fn log_sense(call: &mut Call<'_>) -> Result<Step, Fault> {
    const SP: u8 = 0x01;
    if call.cdb[1] & SP != 0 {
        return Err(Fault::cdb_bit(1, 0));
    }
    // page control: threshold, cumulative, default values; all are what is so now
    let (wanted, subpage) = (call.cdb[2] & 0x3F, call.cdb[3]);
    if subpage != 0 {
        return Err(Fault::cdb(3));
    }
    let (_, make) = pages(call).find(|(code, _)| *code == wanted).ok_or(Fault::cdb_bit(2, 5))?;
    let mut page = make(call);
    // PARAMETER POINTER: parameters before it are left out
    let pointer = u16::from_be_bytes([call.cdb[5], call.cdb[6]]);
    if pointer != 0 {
        let (_, mut parameters) =
            log::parse_page(&page).filter(|_| wanted != log::PAGE_SUPPORTED).ok_or(Fault::cdb(5))?;
        parameters.retain(|parameter| parameter.code >= pointer);
        if parameters.is_empty() {
            return Err(Fault::cdb(5));
        }
        page = log::emit_page(wanted, &parameters);
    }
    call.parameters(page, usize::from(u16::from_be_bytes([call.cdb[7], call.cdb[8]])))
}
