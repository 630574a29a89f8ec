//! The effect of commands on data: writing, reading, comparing, WRITE SAME, UNMAP.

use base::Lba;
use block::{BlockError, BlockRequest};
use wire::scsi::provisioning::{LbaStatus, UnmapRange, emit_unmap, parse_lba_status};
use wire::scsi::{SenseCode, SenseKey, Status};

use super::{BLOCKS, Rig, cdb, compare_and_write, sense_of};

fn filled(blocks: usize, byte: u8) -> Vec<u8> {
    vec![byte; blocks * 512]
}

#[test]
fn every_write_is_read_back_by_every_read() {
    for (step, write) in [0x0A, 0x2A, 0xAA, 0x8A].into_iter().enumerate() {
        let mut rig = Rig::thin();
        let byte = step as u8 + 1;
        rig.good(&cdb(write, 0, 100, 3), &filled(3, byte));
        for read in [0x08, 0x28, 0xA8, 0x88] {
            let data = rig.good(&cdb(read, 0, 99, 5), &[]);
            assert_eq!(data, [filled(1, 0), filled(3, byte), filled(1, 0)].concat(), "{read:02x}h");
        }
    }
}

#[test]
fn fua_makes_a_write_durable() {
    let mut rig = Rig::thin();
    for (opcode, flags, expected) in
        [(0x0A, 0, false), (0x2A, 0, false), (0x2A, 0x10, false), (0x8A, 0x08, true), (0x2E, 0, true)]
    {
        rig.good(&cdb(opcode, flags, 0, 1), &filled(1, 1));
        assert!(
            matches!(rig.asked[0], BlockRequest::Write { durable, .. } if durable == expected),
            "{opcode:02x}h"
        );
    }
}

#[test]
fn six_byte_zero_is_256_blocks_and_others_transfer_nothing() {
    let mut rig = Rig::thin();
    assert_eq!(rig.good(&cdb(0x08, 0, 0, 0), &[]).len(), 256 * 512);
    rig.good(&cdb(0x0A, 0, 0, 0), &filled(256, 7));
    assert_eq!(rig.memory.mapped_bytes(), 256 * 512);
    for opcode in [0x28, 0xA8, 0x88, 0x2A, 0xAA, 0x8A, 0x2F, 0x8F] {
        let response = rig.run(&cdb(opcode, 0, 5, 0), &[]);
        assert_eq!((response.status, response.data_in_bytes()), (Status::Good, 0));
        assert!(rig.asked.is_empty(), "{opcode:02x}h of no blocks");
    }
}

#[test]
fn transfers_are_limited_as_the_block_limits_page_says() {
    let mut rig = Rig::thin();
    assert_eq!(rig.good(&cdb(0x28, 0, 0, 8192), &[]).len(), 4 << 20);
    let sense = rig.refused(&cdb(0x28, 0, 0, 8193), &[]);
    assert_eq!((sense.code, sense.field.unwrap().byte), (SenseCode::InvalidFieldInCdb, 7));
    let sense = rig.refused(&cdb(0x88, 0, 0, 8193), &[]);
    assert_eq!(sense.field.unwrap().byte, 10);
    let sense = rig.refused(&cdb(0xA8, 0, 0, 8193), &[]);
    assert_eq!(sense.field.unwrap().byte, 6);
}

#[test]
fn verify_compares_or_only_reads() {
    let mut rig = Rig::thin();
    rig.good(&cdb(0x2A, 0, 10, 2), &[filled(1, 1), filled(1, 2)].concat());
    for opcode in [0x2F, 0xAF, 0x8F] {
        rig.good(&cdb(opcode, 0, 10, 2), &[]);
        assert!(matches!(rig.asked[0], BlockRequest::Read { lba: Lba(10), blocks: 2 }));
        rig.good(&cdb(opcode, 0x02, 10, 2), &[filled(1, 1), filled(1, 2)].concat());
        rig.good(&cdb(opcode, 0x06, 10, 1), &filled(1, 1));
        let mut wrong = [filled(1, 1), filled(1, 2)].concat();
        wrong[600] = 0;
        let sense = rig.refused(&cdb(opcode, 0x02, 10, 2), &wrong);
        assert_eq!((sense.key, sense.information), (SenseKey::Miscompare, Some(600)));
        let sense = rig.refused(&cdb(opcode, 0x06, 10, 2), &filled(1, 1));
        assert_eq!((sense.code, sense.information), (SenseCode::MiscompareDuringVerify, Some(512)));
        let sense = rig.refused(&cdb(opcode, 0x04, 10, 1), &filled(1, 1));
        assert_eq!((sense.code, sense.field.unwrap().bit), (SenseCode::InvalidFieldInCdb, Some(2)));
    }
}

#[test]
fn write_and_verify_reads_back() {
    for flags in [0x00, 0x02] {
        let mut rig = Rig::thin();
        rig.good(&cdb(0x2E, flags, 10, 2), &filled(2, 9));
        assert!(matches!(
            rig.asked[..],
            [BlockRequest::Write { durable: true, .. }, BlockRequest::Read { .. }]
        ));
        // the read back fails: it is a read error, of what was just written
        rig.fail = Some((1, BlockError::Medium { lba: Lba(11) }));
        let sense = rig.refused(&cdb(0x2E, flags, 10, 2), &filled(2, 9));
        assert_eq!((sense.code, sense.information), (SenseCode::UnrecoveredReadError, Some(11)));
    }
}

#[test]
fn compare_and_write_takes_both_halves() {
    let mut rig = Rig::thin();
    let halves = |expected, new| [filled(2, expected), filled(2, new)].concat();
    rig.good(&compare_and_write(50, 2), &halves(0, 5));
    assert_eq!(rig.good(&cdb(0x28, 0, 50, 2), &[]), filled(2, 5));
    let mut wrong = halves(5, 6);
    wrong[1000] = 0;
    let sense = rig.refused(&compare_and_write(50, 2), &wrong);
    assert_eq!(
        (sense.key, sense.code, sense.information),
        (SenseKey::Miscompare, SenseCode::MiscompareDuringVerify, Some(1000))
    );
    assert_eq!(rig.good(&cdb(0x28, 0, 50, 2), &[]), filled(2, 5), "unchanged");
    rig.good(&compare_and_write(100, 255), &filled(510, 0));
    rig.unit.geometry.block_bytes = 4096;
    let sense = rig.refused(&compare_and_write(100, 33), &vec![0; 66 * 4096]);
    assert_eq!(
        (sense.code, sense.field.unwrap().byte),
        (SenseCode::InvalidFieldInCdb, 13),
        "128 KiB at most"
    );
}

#[test]
fn write_same_repeats_a_block_in_pieces() {
    let mut rig = Rig::thin();
    let block: Vec<u8> = (0..512).map(|byte| byte as u8).collect();
    rig.good(&cdb(0x93, 0, 3, 5000), &block);
    assert_eq!(rig.asked.len(), 3, "2048 blocks a piece");
    let data = rig.good(&cdb(0x88, 0, 2, 5002), &[]);
    assert!(data[..512].iter().chain(&data[5001 * 512..]).all(|&byte| byte == 0));
    assert!(data[512..5001 * 512].chunks(512).all(|chunk| chunk == block));
    // UNMAP with data that is not zero is a plain write: that is what must be read afterwards
    rig.good(&cdb(0x41, 0x08, 100, 1), &filled(1, 3));
    assert_eq!(rig.good(&cdb(0x28, 0, 100, 1), &[]), filled(1, 3));
}

#[test]
fn write_same_of_zeros_gives_space_back() {
    for (opcode, flags, data) in
        [(0x41, 0, 512), (0x41, 0x08, 512), (0x93, 0x08, 512), (0x93, 0x01, 0), (0x93, 0x09, 0)]
    {
        let mut rig = Rig::thin();
        rig.good(&cdb(0x2A, 0, 0, 16), &filled(16, 1));
        rig.good(&cdb(opcode, flags, 8, 8), &vec![0; data]);
        assert!(matches!(rig.asked[..], [BlockRequest::WriteZeroes { lba: Lba(8), blocks: 8 }]));
        assert_eq!(rig.good(&cdb(0x28, 0, 0, 16), &[]), [filled(8, 1), filled(8, 0)].concat());
        assert_eq!(rig.memory.mapped_bytes(), 4096);
    }
}

#[test]
fn write_same_refuses_by_the_book() {
    let mut rig = Rig::thin();
    let too_many = (16 << 20) / 512 + 1;
    rig.unit.geometry.blocks = 1 << 40;
    for (opcode, length) in [(0x41, 0), (0x93, 0), (0x93, too_many)] {
        rig.refused_with(&cdb(opcode, 0, 0, length), &filled(1, 0), SenseCode::InvalidFieldInCdb);
    }
    rig.refused_with(&cdb(0x93, 0x01, 0, 1), &filled(1, 0), SenseCode::InvalidFieldInCommandInformationUnit);
    let anchor = rig.refused(&cdb(0x93, 0x18, 0, 1), &filled(1, 0));
    assert_eq!((anchor.code, anchor.field.unwrap().bit), (SenseCode::InvalidFieldInCdb, Some(4)));
    let thick = Rig::new(512, false).refused(&cdb(0x93, 0x08, 0, 1), &filled(1, 0));
    assert_eq!((thick.code, thick.field.unwrap().bit), (SenseCode::InvalidFieldInCdb, Some(3)));
}

fn unmap(rig: &mut Rig, ranges: &[(u64, u32)]) -> crate::Response {
    let ranges: Vec<_> = ranges.iter().map(|&(lba, blocks)| UnmapRange { lba, blocks }).collect();
    let list = emit_unmap(&ranges);
    rig.run(&cdb(0x42, 0, 0, list.len() as u32), &list)
}

#[test]
fn unmap_takes_ranges_in_order_and_empty_ones_too() {
    let mut rig = Rig::thin();
    rig.good(&cdb(0x2A, 0, 0, 32), &filled(32, 1));
    assert_eq!(unmap(&mut rig, &[(0, 8), (4, 0), (16, 16)]).status, Status::Good);
    assert!(matches!(
        rig.asked[..],
        [BlockRequest::Unmap { lba: Lba(0), blocks: 8 }, BlockRequest::Unmap { lba: Lba(16), blocks: 16 }]
    ));
    assert_eq!(rig.memory.mapped_bytes(), 4096);
    assert_eq!(unmap(&mut rig, &[]).status, Status::Good);
    assert_eq!(unmap(&mut rig, &[(u64::MAX, 0)]).status, Status::Good);
    assert_eq!(rig.run(&cdb(0x42, 0, 0, 0), &[]).status, Status::Good);
    let short = rig.refused(&cdb(0x42, 0, 0, 7), &[0; 7]);
    assert_eq!(short.code, SenseCode::ParameterListLengthError);
}

#[test]
fn unmap_merges_ranges_that_follow_each_other() {
    let mut rig = Rig::thin();
    let response = unmap(&mut rig, &[(1, 1), (2, 1), (3, 0), (3, 5), (16, 8), (8, 8)]);
    assert_eq!(response.status, Status::Good);
    assert!(matches!(
        rig.asked[..],
        [
            BlockRequest::Unmap { lba: Lba(1), blocks: 7 },
            BlockRequest::Unmap { lba: Lba(16), blocks: 8 },
            BlockRequest::Unmap { lba: Lba(8), blocks: 8 },
        ]
    ));
}

#[test]
fn unmap_is_limited_as_the_block_limits_page_says() {
    let mut rig = Rig::thin();
    rig.unit.geometry.blocks = 1 << 40;
    let code = |response: &crate::Response| sense_of(response).map(|sense| sense.code);
    let refused = unmap(&mut rig, &[(0, 1 << 19), (1 << 30, (1 << 19) + 1)]);
    assert_eq!(code(&refused), Some(SenseCode::InvalidFieldInParameterList));
    assert_eq!(sense_of(&refused).unwrap().field.unwrap().byte, 8 + 16 + 8);
    assert!(rig.asked.is_empty());
    let refused = unmap(&mut rig, &vec![(0, 1); 257]);
    assert_eq!(code(&refused), Some(SenseCode::InvalidFieldInParameterList));
}

#[test]
fn a_failure_in_the_middle_is_told() {
    let mut rig = Rig::thin();
    rig.fail = Some((1, BlockError::OutOfSpace));
    let response = unmap(&mut rig, &[(0, 8), (16, 16), (40, 8)]);
    assert_eq!(sense_of(&response).unwrap().code, SenseCode::SpaceAllocationFailedWriteProtect);
    assert_eq!(rig.asked.len(), 2);
    rig.fail = Some((2, BlockError::Medium { lba: Lba(4100) }));
    let sense = rig.refused(&cdb(0x93, 0, 3, 5000), &filled(1, 1));
    assert_eq!((sense.code, sense.information), (SenseCode::WriteError, Some(4100)));
    rig.fail = Some((0, BlockError::Aborted));
    let response = rig.run(&cdb(0x28, 0, 0, 1), &[]);
    assert_eq!((response.status, response.sense), (Status::TaskAborted, None));
}

#[test]
fn lba_status_tells_runs() {
    let mut rig = Rig::thin();
    rig.good(&cdb(0x2A, 0, 16, 8), &filled(8, 1));
    let ask = |rig: &mut Rig, lba, allocation| {
        let bytes = rig.good(&cdb(0x9E, 0x12, lba, allocation), &[]);
        assert!(bytes.len() <= allocation as usize);
        parse_lba_status(&bytes).unwrap()
    };
    let run = |lba, blocks, mapped| LbaStatus { lba, blocks, mapped };
    let rest = (BLOCKS - 24) as u32;
    assert_eq!(ask(&mut rig, 0, 1000), [run(0, 16, false), run(16, 8, true), run(24, rest, false)]);
    assert_eq!(ask(&mut rig, 18, 40), [run(18, 6, true), run(24, rest, false)]);
    assert_eq!(ask(&mut rig, 5, 24), [run(5, 11, false)]);
    assert_eq!(ask(&mut rig, BLOCKS - 1, 24), [run(BLOCKS - 1, 1, false)]);
    assert_eq!(rig.good(&cdb(0x9E, 0x12, 0, 3), &[]), [0, 0, 0]);
    assert!(rig.good(&cdb(0x9E, 0x12, 0, 0), &[]).is_empty());
}
