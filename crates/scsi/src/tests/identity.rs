//! INQUIRY, capacity and the REPORT commands, byte by byte in the fields that initiators use.

use wire::scsi::capacity::Capacity;
use wire::scsi::inquiry::StandardInquiry;
use wire::scsi::port_groups::{PortGroupState, emit_set_port_groups, parse_port_groups};
use wire::scsi::report::{parse_commands, parse_luns};
use wire::scsi::vpd::{self, Association, BlockLimits, Designator};
use wire::scsi::{Lun, SenseCode};

use super::{BLOCKS, Rig, cdb};
use crate::rows::ROWS;

fn page(rig: &mut Rig, page: u8) -> Vec<u8> {
    let bytes = rig.good(&[0x12, 1, page, 0x10, 0, 0], &[]);
    let (code, body) = vpd::parse_page(&bytes).expect("a whole page");
    assert_eq!((code, bytes.len()), (page, body.len() + 4));
    body.to_vec()
}

#[test]
fn inquiry_is_cut_to_the_allocation_length() {
    let mut rig = Rig::thin();
    let whole = rig.good(&[0x12, 0, 0, 0x10, 0, 0], &[]);
    let inquiry = StandardInquiry::parse(&whole).unwrap();
    assert_eq!((inquiry.peripheral, inquiry.vendor), (0, *b"TANGELO "));
    assert!(inquiry.alua && inquiry.multiple_ports);
    for length in [0u16, 1, 4, 5, 36, 95, 96, 97, 300] {
        let [high, low] = length.to_be_bytes();
        let data = rig.good(&[0x12, 0, 0, high, low, 0], &[]);
        assert_eq!(data, whole[..usize::from(length).min(96)]);
        assert_eq!(rig.good(&[0x12, 1, 0x83, high, low, 0], &[]).len().min(90), usize::from(length).min(90));
    }
}

#[test]
fn pages_that_are_listed_exist_and_no_others() {
    let mut rig = Rig::thin();
    let listed = page(&mut rig, 0);
    assert_eq!(listed, [0x00, 0x80, 0x83, 0x86, 0x87, 0x88, 0x8F, 0xB0, 0xB1, 0xB2]);
    for code in 0..=255u8 {
        if listed.contains(&code) {
            page(&mut rig, code);
        } else {
            let sense = rig.refused(&[0x12, 1, code, 1, 0, 0], &[]);
            assert_eq!((sense.code, sense.field.unwrap().byte), (SenseCode::InvalidFieldInCdb, 2));
        }
    }
    rig.refused_with(&[0x12, 0, 0x80, 1, 0, 0], &[], SenseCode::InvalidFieldInCdb);
}

#[test]
fn identification_names_the_unit_the_port_and_the_target() {
    let mut rig = Rig::thin();
    rig.come_through(2);
    assert_eq!(page(&mut rig, 0x80), b"5a17f00d");
    let list = vpd::parse_designators(&page(&mut rig, 0x83)).unwrap();
    let mut naa = [0x12; 16];
    naa[0] = 0x6D;
    let expected = [
        Designator::Naa(naa),
        Designator::T10 { vendor: *b"TANGELO ", specific: "5a17f00d".into() },
        Designator::ScsiName(Association::LogicalUnit, "naa.6D121212121212121212121212121212".into()),
        Designator::RelativeTargetPort(2),
        Designator::TargetPortGroup(1),
        Designator::ScsiName(Association::TargetPort, "iqn.2026-01.example:array,t,0x0002".into()),
        Designator::ScsiName(Association::TargetDevice, "iqn.2026-01.example:array".into()),
    ];
    assert_eq!(list, expected);
}

#[test]
fn limits_follow_the_block_size_and_thinness() {
    let limits =
        |block_bytes, thin| BlockLimits::parse(&page(&mut Rig::new(block_bytes, thin), 0xB0)).unwrap();
    let small = limits(512, true);
    assert_eq!((small.transfer_max, small.transfer_granularity, small.compare_and_write_max), (8192, 8, 255));
    assert_eq!(
        (small.unmap_blocks_max, small.unmap_granularity, small.unmap_descriptors_max),
        (1 << 20, 8, 256)
    );
    assert_eq!((small.write_same_max, small.write_same_nonzero), (1 << 15, true));
    let large = limits(4096, true);
    assert_eq!((large.transfer_max, large.transfer_granularity, large.compare_and_write_max), (1024, 1, 32));
    let thick = limits(4096, false);
    assert_eq!((thick.unmap_blocks_max, thick.unmap_granularity, thick.unmap_descriptors_max), (0, 0, 0));
    assert_eq!(page(&mut Rig::new(512, false), 0xB2), [0; 4]);
    assert_eq!(page(&mut Rig::thin(), 0xB2), [11, 0xE4, 2, 0]);
}

#[test]
fn capacity_in_both_forms() {
    for (block_bytes, exponent) in [(512, 3), (4096, 0)] {
        let mut rig = Rig::new(block_bytes, true);
        let long = Capacity::parse_16(&rig.good(&cdb(0x9E, 0x10, 0, 32), &[])).unwrap();
        let expected =
            Capacity { last_lba: BLOCKS - 1, block_bytes, physical_exponent: exponent, thin: true };
        assert_eq!(long, expected);
        let short = rig.good(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]);
        assert_eq!(short, [(BLOCKS as u32 - 1).to_be_bytes(), block_bytes.to_be_bytes()].concat());
        rig.unit.geometry.blocks = 1 << 33;
        assert_eq!(rig.good(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[])[..4], [0xFF; 4]);
        for length in 0..16 {
            assert_eq!(rig.good(&cdb(0x9E, 0x10, 0, length), &[]).len(), length as usize);
        }
    }
    let mut rig = Rig::thin();
    rig.refused_with(&[0x25, 0, 0, 0, 0, 1, 0, 0, 0, 0], &[], SenseCode::InvalidFieldInCdb);
    rig.good(&[0x25, 0, 0, 0, 0, 1, 0, 0, 1, 0], &[]);
    rig.refused_with(&[0x25, 0, 0xFF, 0, 0, 1, 0, 0, 1, 0], &[], SenseCode::LbaOutOfRange);
}

#[test]
fn luns_by_selection() {
    let mut rig = Rig::thin();
    let mut select = |selection: u8, allocation: u32| {
        let mut cdb = cdb(0xA0, 0, 0, allocation);
        cdb[2] = selection;
        rig.good(&cdb, &[])
    };
    let all = [0, 5, 300].map(|number| Lun::new(number).unwrap());
    assert_eq!(parse_luns(&select(0, 4096)).unwrap(), all);
    assert_eq!(parse_luns(&select(2, 4096)).unwrap(), all);
    assert_eq!(parse_luns(&select(1, 4096)).unwrap(), []);
    assert_eq!(select(0, 16)[..4], [0, 0, 0, 24], "the length of all, though cut");
    rig.refused_with(&[0xA0, 0, 3, 0, 0, 0, 0, 0, 0, 64, 0, 0], &[], SenseCode::InvalidFieldInCdb);
}

fn rsoc(options: u8, opcode: u8, action: u16) -> Vec<u8> {
    let [high, low] = action.to_be_bytes();
    vec![0xA3, 0x0C, options, opcode, high, low, 0, 0, 0x40, 0, 0, 0]
}

#[test]
fn supported_operation_codes_are_the_table() {
    for thin in [false, true] {
        for timeouts in [0, 0x80] {
            let mut rig = Rig::new(512, thin);
            let rows = parse_commands(&rig.good(&rsoc(timeouts, 0, 0), &[])).unwrap();
            let expected: Vec<_> = ROWS.iter().filter(|row| thin || row.opcode != 0x42).collect();
            assert_eq!(rows.len(), expected.len());
            for (told, row) in rows.iter().zip(expected) {
                assert_eq!(
                    (told.opcode, told.service_action),
                    (row.opcode, row.service_action.map(u16::from))
                );
                assert_eq!(usize::from(told.cdb_bytes), row.usage.len());
            }
        }
    }
}

#[test]
fn one_operation_code_by_each_option() {
    let mut rig = Rig::thin();
    let supported = |data: &[u8]| (data[1] & 7, data[1] & 0x80 != 0, usize::from(data[3]));
    assert_eq!(supported(&rig.good(&rsoc(1, 0x12, 0), &[])), (3, false, 6));
    assert_eq!(rig.good(&rsoc(1, 0x12, 0), &[])[4..], [0x12, 1, 0xFF, 0xFF, 0xFF, 0]);
    assert_eq!(supported(&rig.good(&rsoc(0x81, 0x12, 0), &[])), (3, true, 6));
    assert_eq!(rig.good(&rsoc(0x81, 0x12, 0), &[]).len(), 4 + 6 + 12);
    assert_eq!(supported(&rig.good(&rsoc(1, 0xC0, 0), &[])), (1, false, 0));
    assert_eq!(supported(&rig.good(&rsoc(2, 0x9E, 0x10), &[])), (3, false, 16));
    assert_eq!(supported(&rig.good(&rsoc(2, 0x9E, 0x11), &[])), (1, false, 0));
    assert_eq!(supported(&rig.good(&rsoc(2, 0x9E, 0x110), &[])), (1, false, 0));
    assert_eq!(supported(&rig.good(&rsoc(3, 0x9E, 0x12), &[])), (3, false, 16));
    assert_eq!(supported(&rig.good(&rsoc(3, 0x28, 0), &[])), (3, false, 10));
    assert_eq!(supported(&rig.good(&rsoc(3, 0x28, 1), &[])), (1, false, 0));
    for wrong in [rsoc(1, 0x9E, 0), rsoc(2, 0x28, 0), rsoc(4, 0, 0), rsoc(7, 0, 0)] {
        let sense = rig.refused(&wrong, &[]);
        assert_eq!((sense.code, sense.field.unwrap().byte), (SenseCode::InvalidFieldInCdb, 2));
    }
    let thick = Rig::new(512, false).good(&rsoc(1, 0x42, 0), &[]);
    assert_eq!(supported(&thick), (1, false, 0));
}

#[test]
fn port_groups_and_task_management() {
    let mut rig = Rig::thin();
    let groups = parse_port_groups(&rig.good(&cdb(0xA3, 0x0A, 0, 1024), &[])).unwrap();
    let told: Vec<_> = groups
        .iter()
        .map(|group| (group.group, group.state as u8, group.preferred, &group.ports[..]))
        .collect();
    let expected: [(u16, u8, bool, &[u16]); 4] =
        [(1, 0, false, &[1, 2]), (2, 2, false, &[3]), (3, 3, false, &[4]), (4, 0xF, false, &[5])];
    assert_eq!(told, expected);
    let extended = rig.good(&cdb(0xA3, 0x2A, 0, 1024), &[]);
    assert_eq!(extended[4..8], [0x10, 0, 0, 0]);
    rig.refused_with(&cdb(0xA3, 0x4A, 0, 1024), &[], SenseCode::InvalidFieldInCdb);
    assert_eq!(rig.good(&cdb(0xA3, 0x0D, 0, 64), &[]), [0xD8, 0, 0, 0]);
    let mut timeouts = cdb(0xA3, 0x0D, 0, 64);
    timeouts[2] = 0x80;
    assert_eq!(rig.good(&timeouts, &[])[..4], [0xD8, 0, 0, 12]);
    rig.refused_with(&cdb(0xA3, 0x0D, 0, 3), &[], SenseCode::InvalidFieldInCdb);
}

#[test]
fn the_timestamp_is_the_wall_clock() {
    let mut rig = Rig::thin();
    let told = rig.good(&cdb(0xA3, 0x0F, 0, 64), &[]);
    assert_eq!((told.len(), &told[..4]), (12, &[0, 10, 3, 0][..]));
    let mut clock = [0; 8];
    clock[2..].copy_from_slice(&told[4..10]);
    assert_eq!(u64::from_be_bytes(clock), super::CLOCK_MS);
}

type Changes<'a> = &'a [(u16, PortGroupState)];

fn set_port_groups(rig: &mut Rig, list: &[u8]) -> crate::Response {
    let mut cdb = cdb(0xA4, 0x0A, 0, 0);
    cdb[6..10].copy_from_slice(&(list.len() as u32).to_be_bytes());
    rig.run(&cdb, list)
}

#[test]
fn port_groups_are_given_states() {
    use PortGroupState::{ActiveNonOptimized, ActiveOptimized, Standby, Transitioning, Unavailable};
    let mut rig = Rig::thin();
    let list = emit_set_port_groups(&[(2, ActiveNonOptimized), (1, Standby), (3, ActiveOptimized)]);
    assert_eq!(set_port_groups(&mut rig, &list).status, wire::scsi::Status::Good);
    let groups = parse_port_groups(&rig.good(&cdb(0xA3, 0x0A, 0, 1024), &[])).unwrap();
    let told: Vec<_> = groups.iter().map(|group| (group.state as u8, group.status as u8)).collect();
    assert_eq!(told, [(2, 1), (1, 1), (0, 1), (0xF, 1)]);
    // this nexus comes by group 1
    rig.refused_with(&[0; 6], &[], SenseCode::AluaStandby);
    assert_eq!(
        set_port_groups(&mut rig, &[]).status,
        wire::scsi::Status::Good,
        "an empty list changes nothing"
    );
    let cases: [(Changes<'_>, SenseCode, u16); 5] = [
        (&[(9, Standby)], SenseCode::InvalidFieldInParameterList, 6),
        (&[(1, Standby), (1, Standby)], SenseCode::InvalidFieldInParameterList, 10),
        (&[(1, Transitioning)], SenseCode::InvalidFieldInParameterList, 4),
        (&[(2, Unavailable), (3, Standby)], SenseCode::SetTargetPortGroupsFailed, 0),
        (&[(1, Standby); 5], SenseCode::ParameterListLengthError, 0),
    ];
    for (changes, code, byte) in cases {
        let response = set_port_groups(&mut rig, &emit_set_port_groups(changes));
        let sense = super::sense_of(&response).unwrap();
        assert_eq!((sense.code, sense.field.map_or(0, |field| field.byte)), (code, byte), "{changes:?}");
    }
    let cut = set_port_groups(&mut rig, &list[..7]);
    assert_eq!(super::sense_of(&cut).unwrap().code, SenseCode::ParameterListLengthError);
    assert_eq!(rig.nexus.access().of(1), reservation::AccessState::Standby);
}
