//! LOG SENSE: the content of each page, and refused requests (SPC-4 §6.8, §7.3; SBC-3 §6.4).

use wire::scsi::SenseCode;
use wire::scsi::log::{self, parse_page};

use super::Rig;

fn log_sense(page: u8, subpage: u8, pointer: u16, allocation: u16) -> [u8; 10] {
    let ([p0, p1], [a0, a1]) = (pointer.to_be_bytes(), allocation.to_be_bytes());
    [0x4D, 0, 0x40 | page, subpage, 0, p0, p1, a0, a1, 0]
}

/// The codes and values of a page's parameters.
fn parameters(rig: &mut Rig, page: u8, pointer: u16) -> Vec<(u16, Vec<u8>)> {
    let bytes = rig.good(&log_sense(page, 0, pointer, 512), &[]);
    assert_eq!(bytes[..2], [0x80 | page, 0]);
    let (code, parameters) = parse_page(&bytes).unwrap();
    assert_eq!(code, page);
    parameters.into_iter().map(|parameter| (parameter.code, parameter.value)).collect()
}

#[test]
fn every_page_that_is_listed_is_there_and_no_other() {
    let mut rig = Rig::thin();
    let listed = rig.good(&log_sense(0, 0, 0, 512), &[]);
    assert_eq!(listed, [0x80, 0, 0, 4, 0, 0x0C, 0x0D, 0x2F]);
    for page in 0..0x40 {
        let cdb = log_sense(page, 0, 0, 512);
        match listed[4..].contains(&page) {
            true => drop(rig.good(&cdb, &[])),
            false => rig.refused_with(&cdb, &[], SenseCode::InvalidFieldInCdb),
        }
    }
    assert_eq!(rig.good(&log_sense(0, 0, 0, 5), &[]), [0x80, 0, 0, 4, 0], "cut to the allocation length");
}

#[test]
fn pages_say_what_is_so() {
    let mut rig = Rig::thin();
    // the pool of the rig: 1 GiB of 1 TiB is used
    let set_bytes = 512u64 << rig.unit.threshold_exponent();
    let space = parameters(&mut rig, log::PAGE_PROVISIONING, 0);
    let count = |value: &[u8]| u64::from(u32::from_be_bytes(value[..4].try_into().unwrap()));
    assert_eq!((space[0].0, space[1].0, space.len()), (1, 2, 2), "available and used");
    assert_eq!(count(&space[1].1), (1u64 << 30) / set_bytes);
    assert_eq!(count(&space[0].1), ((1u64 << 40) - (1 << 30)) / set_bytes);
    assert!(space.iter().all(|(_, value)| value[4] & 3 == 2), "of the pool, not of the unit alone");
    // nobody knows the temperature of a volume
    assert_eq!(parameters(&mut rig, log::PAGE_TEMPERATURE, 0), [(0, vec![0, 0xFF]), (1, vec![0, 0xFF])]);
    let exceptions = parameters(&mut rig, log::PAGE_INFORMATIONAL_EXCEPTIONS, 0);
    assert_eq!(exceptions, [(0, vec![0, 0, 0xFF, 0])], "no exception");
}

#[test]
fn parameters_before_the_pointer_are_left_out_and_the_rest_is_refused() {
    let mut rig = Rig::thin();
    assert_eq!(parameters(&mut rig, log::PAGE_TEMPERATURE, 1), [(1, vec![0, 0xFF])]);
    let mut save = log_sense(log::PAGE_TEMPERATURE, 0, 0, 512);
    save[1] = 0x01;
    for cdb in [
        log_sense(log::PAGE_TEMPERATURE, 0, 2, 512),
        log_sense(log::PAGE_TEMPERATURE, 0xFF, 0, 512),
        log_sense(log::PAGE_SUPPORTED, 0, 1, 512),
        save,
    ] {
        rig.refused_with(&cdb, &[], SenseCode::InvalidFieldInCdb);
    }
}
