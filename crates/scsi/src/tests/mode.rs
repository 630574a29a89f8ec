//! Mode pages: MODE SENSE in every form, and MODE SELECT only of parameters that may change.

use wire::scsi::mode::{BlockDescriptor, HeaderForm, ModeHeader, emit_page, split_page};
use wire::scsi::{Sense, SenseCode, SenseFormat};

use super::{BLOCKS, Rig, cdb};
use crate::UnitAttention;

fn sense_6(rig: &mut Rig, flags: u8, control_and_page: u8) -> (ModeHeader, Vec<(u8, Vec<u8>)>) {
    let bytes = rig.good(&[0x1A, flags, control_and_page, 0, 255, 0], &[]);
    assert_eq!(usize::from(bytes[0]) + 1, bytes.len());
    pages_of(HeaderForm::Six, &bytes)
}

fn pages_of(form: HeaderForm, bytes: &[u8]) -> (ModeHeader, Vec<(u8, Vec<u8>)>) {
    let (header, at) = ModeHeader::parse(form, bytes).unwrap();
    let mut rest = &bytes[at..];
    let mut pages = Vec::new();
    while !rest.is_empty() {
        let (code, body, next) = split_page(rest).unwrap();
        pages.push((code, body.to_vec()));
        rest = next;
    }
    (header, pages)
}

fn select_6(rig: &mut Rig, list: &[u8]) -> crate::Response {
    rig.run(&[0x15, 0x10, 0, 0, list.len() as u8, 0], list)
}

#[test]
fn all_pages_in_every_control() {
    let mut rig = Rig::thin();
    let (header, pages) = sense_6(&mut rig, 0, 0x3F);
    let codes: Vec<u8> = pages.iter().map(|page| page.0).collect();
    assert_eq!(codes, [0x01, 0x02, 0x08, 0x0A, 0x1C]);
    let lengths: Vec<usize> = pages.iter().map(|page| page.1.len()).collect();
    assert_eq!(lengths, [0x0A, 0x0E, 0x12, 0x0A, 0x0A]);
    assert!(header.dpo_fua && !header.write_protected);
    assert_eq!(header.descriptor, Some(BlockDescriptor { blocks: BLOCKS, block_bytes: 512, long: false }));
    assert_eq!(pages[2].1[0] & 0x04, 0x04, "WCE: the volume is write-back");
    assert_eq!(pages[3].1[3], 0x40, "TAS");
    // changeable: D_SENSE, SWP and TAS; default: as it is now
    let (_, changeable) = sense_6(&mut rig, 0, 0x7F);
    for (code, body) in &changeable {
        let mut expected = vec![0; body.len()];
        if *code == 0x0A {
            (expected[0], expected[2], expected[3]) = (0x04, 0x08, 0x40);
        }
        assert_eq!(*body, expected, "{code:02x}h");
    }
    assert_eq!(sense_6(&mut rig, 0, 0xBF).1, pages);
    rig.refused_with(&[0x1A, 0, 0xFF, 0, 255, 0], &[], SenseCode::SavingParametersNotSupported);
    let (header, one) = sense_6(&mut rig, 0x08, 0x08);
    assert_eq!((header.descriptor, one.len()), (None, 1), "DBD");
}

#[test]
fn ten_bytes_and_long_lbas() {
    let mut rig = Rig::thin();
    rig.unit.geometry.blocks = 1 << 40;
    let (header, _) = sense_6(&mut rig, 0, 0x3F);
    assert_eq!(header.descriptor.unwrap().blocks, u64::MAX, "more than the short form can tell");
    for (flags, blocks, long) in [(0x00, u64::MAX, false), (0x10, 1 << 40, true)] {
        let bytes = rig.good(&[0x5A, flags, 0x3F, 0xFF, 0, 0, 0, 4, 0, 0], &[]);
        assert_eq!(usize::from(bytes[1]) + 2, bytes.len());
        let (header, pages) = pages_of(HeaderForm::Ten, &bytes);
        assert_eq!(header.descriptor, Some(BlockDescriptor { blocks, block_bytes: 512, long }));
        assert_eq!(pages.len(), 5);
    }
    assert_eq!(rig.good(&[0x5A, 0, 0x3F, 0, 0, 0, 0, 0, 4, 0], &[]).len(), 4, "cut");
    rig.refused_with(&[0x5A, 0, 0x3F, 1, 0, 0, 0, 4, 0, 0], &[], SenseCode::InvalidFieldInCdb);
    rig.refused_with(&[0x5A, 0, 0x05, 0, 0, 0, 0, 4, 0, 0], &[], SenseCode::InvalidFieldInCdb);
}

#[test]
fn d_sense_changes_the_format_of_sense_data() {
    let mut rig = Rig::thin();
    let format = |rig: &mut Rig| {
        let response = rig.run(&cdb(0x88, 0, u64::MAX, 1), &[]);
        Sense::parse(&response.sense.unwrap()).unwrap().1
    };
    assert_eq!(format(&mut rig), SenseFormat::Fixed);
    let (_, mut page) = sense_6(&mut rig, 0, 0x0A);
    page[0].1[0] |= 0x04;
    let list = [&[0; 4][..], &emit_page(0x0A, &page[0].1)].concat();
    assert!(select_6(&mut rig, &list).sense.is_none());
    assert_eq!(format(&mut rig), SenseFormat::Descriptor);
    assert_eq!(sense_6(&mut rig, 0, 0x0A).1, page);
    assert_ne!(sense_6(&mut rig, 0, 0x8A).1, page, "the default is another");
    rig.nexus.reset(UnitAttention::BusDeviceReset);
    rig.nexus.clear(UnitAttention::BusDeviceReset);
    assert_eq!(format(&mut rig), SenseFormat::Fixed);
}

#[test]
fn task_aborted_status_can_be_turned_off_and_a_reset_turns_it_on() {
    let mut rig = Rig::thin();
    let list = |tas: u8| [&[0; 4][..], &emit_page(0x0A, &[0x22, 0x10, 0, tas, 0, 0, 0, 0, 0, 0])].concat();
    assert!(rig.nexus.is_told_of_aborts());
    assert!(select_6(&mut rig, &list(0)).sense.is_none());
    assert!(!rig.nexus.is_told_of_aborts());
    assert_eq!(sense_6(&mut rig, 0, 0x0A).1[0].1[3], 0);
    assert!(select_6(&mut rig, &list(0x40)).sense.is_none());
    assert!(rig.nexus.is_told_of_aborts());
    // ATO, ATMPE, RWWP and AUTOLOAD MODE beside it are not to be had
    for other in [0x80, 0x20, 0x10, 0x01] {
        let response = select_6(&mut rig, &list(0x40 | other));
        let sense = super::sense_of(&response).unwrap_or_else(|| panic!("{other:02x}h is taken"));
        assert_eq!(
            (sense.code, sense.field.map(|field| field.byte)),
            (SenseCode::InvalidFieldInParameterList, Some(9))
        );
    }
    assert!(select_6(&mut rig, &list(0)).sense.is_none());
    rig.nexus.reset(UnitAttention::BusDeviceReset);
    assert!(rig.nexus.is_told_of_aborts());
}

#[test]
fn software_write_protect_protects() {
    let mut rig = Rig::thin();
    let list =
        |protect: u8| [&[0; 4][..], &emit_page(0x0A, &[0x22, 0x10, protect, 0, 0, 0, 0, 0, 0, 0])].concat();
    assert!(select_6(&mut rig, &list(0x08)).sense.is_none());
    assert!(sense_6(&mut rig, 0, 0x0A).0.write_protected);
    rig.refused_with(&cdb(0x2A, 0, 0, 1), &[0; 512], SenseCode::SoftwareWriteProtected);
    rig.good(&cdb(0x28, 0, 0, 1), &[]);
    assert!(select_6(&mut rig, &list(0)).sense.is_none());
    rig.good(&cdb(0x2A, 0, 0, 1), &[0; 512]);
}

#[test]
fn what_cannot_be_changed_is_refused_as_a_whole() {
    let mut rig = Rig::thin();
    let control = |flags: u8| emit_page(0x0A, &[flags | 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut caching = vec![0; 18];
    let without_cache = emit_page(0x08, &caching);
    caching[0] = 0x04;
    let as_it_is = emit_page(0x08, &caching);
    let header = vec![0; 4];
    let parameter = SenseCode::InvalidFieldInParameterList;
    let long = [header.clone(), vec![0x0A, 0x09, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 0]].concat();
    let other_block_size = [vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x10, 0], control(6)].concat();
    let other_capacity = [vec![0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 2, 0], control(6)].concat();
    let table: [(Vec<u8>, SenseCode, Option<u16>); 9] = [
        // D_SENSE first, then WCE off
        ([header.clone(), control(6), without_cache].concat(), parameter, Some(18)),
        ([header.clone(), control(0x86)].concat(), parameter, Some(6)),
        ([header.clone(), emit_page(0x05, &[0; 10])].concat(), parameter, Some(4)),
        (long, parameter, Some(5)),
        (other_block_size, parameter, Some(9)),
        (other_capacity, parameter, Some(4)),
        (vec![0; 3], SenseCode::ParameterListLengthError, None),
        ([header.clone(), control(6)[..11].to_vec()].concat(), SenseCode::ParameterListLengthError, None),
        (vec![0, 0, 0, 8, 0, 0], SenseCode::ParameterListLengthError, None),
    ];
    for (list, code, byte) in table {
        let response = select_6(&mut rig, &list);
        let sense = super::sense_of(&response).unwrap_or_else(|| panic!("{list:02x?} is taken"));
        assert_eq!((sense.code, sense.field.map(|field| field.byte)), (code, byte), "{list:02x?}");
        assert!(!rig.nexus.control.descriptor_sense, "{list:02x?} changed something");
    }
    // what says only what is so already is fine
    let same = [vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0], as_it_is, control(6)].concat();
    assert!(select_6(&mut rig, &same).sense.is_none());
    assert!(rig.nexus.control.descriptor_sense);
    for wrong in [[0x15, 0x00, 0, 0, 0, 0], [0x15, 0x11, 0, 0, 0, 0]] {
        rig.refused_with(&wrong, &[], SenseCode::InvalidFieldInCdb);
    }
    assert!(select_6(&mut rig, &[]).sense.is_none());
}
