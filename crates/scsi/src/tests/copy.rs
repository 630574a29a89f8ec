//! EXTENDED COPY and RECEIVE COPY RESULTS, and ORWRITE.

use block::{BlockError, BlockRequest};
use wire::scsi::copy::{CopySegment, CopyTarget, emit_copy};
use wire::scsi::{SenseCode, SenseKey, Status};

use super::{BLOCKS, OTHER_NAA, Rig, cdb, sense_of};
use crate::{CopyPart, CopyStretch};

fn target(naa: [u8; 16]) -> [u8; 32] {
    CopyTarget { unit_id_type: 0, null: false, naa: Some(naa) }.emit(512)
}

fn own_naa() -> [u8; 16] {
    Rig::thin().unit.identity.naa
}

fn segment(source: u16, destination: u16, source_lba: u64, destination_lba: u64, blocks: u16) -> CopySegment {
    CopySegment { counts_destination: true, source, destination, blocks, source_lba, destination_lba }
}

/// Two blocks within the unit itself; their results are kept.
pub(crate) fn one_segment(list_id: u8) -> Vec<u8> {
    emit_copy(list_id, 0, &[target(own_naa())], &[segment(0, 0, 0, 100, 2)])
}

/// From the unit to the other one.
fn across(list_id: u8, usage: u8, segments: &[CopySegment]) -> Vec<u8> {
    emit_copy(list_id, usage, &[target(own_naa()), target(OTHER_NAA)], segments)
}

fn copy(list: &[u8]) -> Vec<u8> {
    cdb(0x83, 0, 0, list.len() as u32)
}

fn filled(rig: &mut Rig, lba: u64, bytes: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..bytes).map(|n| (n / 512) as u8 ^ (n % 251) as u8).collect();
    rig.good(&cdb(0x8A, 0, lba, (bytes / 512) as u32), &data);
    data
}

#[test]
fn segments_are_copied_between_units_piece_by_piece() {
    let mut rig = Rig::thin();
    let data = filled(&mut rig, 8, 5000 * 512);
    // as ESXi does: no list identifier
    let list = across(0, 3, &[segment(0, 1, 8, 1000, 5000), segment(0, 1, 0, 0, 0), segment(0, 1, 8, 16, 8)]);
    rig.good(&copy(&list), &list);
    let read = rig.asked.iter().filter(|request| matches!(request, BlockRequest::Read { .. })).count();
    assert_eq!((read, rig.asked.len()), (4, 8), "2.5 MiB and 4 KiB in pieces of 1 MiB, read and written");
    let read = |rig: &mut Rig, lba, blocks| {
        let request = BlockRequest::Read { lba: base::Lba(lba), blocks };
        let Ok(block::BlockOutput::Data(data)) = rig.other.answer(&request) else { panic!() };
        data.to_vec()
    };
    assert_eq!(read(&mut rig, 1000, 5000), data);
    assert_eq!(read(&mut rig, 16, 8), data[..4096]);
    assert_eq!(read(&mut rig, 999, 1), [0; 512]);
}

#[test]
fn what_is_copied_by_reference_is_not_read() {
    let mut rig = Rig::thin();
    let data = filled(&mut rig, 8, 5000 * 512);
    rig.left = Some(vec![
        CopyPart { offset_bytes: 4096, bytes: 8192 },
        CopyPart { offset_bytes: 1 << 20, bytes: 2 << 19 },
    ]);
    // what is short is not asked for
    let list = across(9, 0, &[segment(0, 1, 8, 1000, 5000), segment(0, 1, 8, 16, 8)]);
    rig.good(&copy(&list), &list);
    let stretch = CopyStretch {
        source: own_naa(),
        source_lba: 8,
        destination: OTHER_NAA,
        destination_lba: 1000,
        bytes: 5000 * 512,
    };
    assert_eq!(rig.stretches, [stretch]);
    let reads = rig.asked.iter().filter_map(|request| match request {
        BlockRequest::Read { lba, blocks } => Some((lba.0, *blocks)),
        _ => None,
    });
    assert_eq!(reads.collect::<Vec<_>>(), [(16, 16), (2056, 2048), (8, 8)]);
    let there = BlockRequest::Read { lba: base::Lba(1008), blocks: 16 };
    let Ok(block::BlockOutput::Data(there)) = rig.other.answer(&there) else { panic!() };
    assert_eq!(there.to_vec(), data[4096..4096 + 8192]);
    // all of it counts
    let mut status = cdb(0x84, 0, 0, 255);
    status[2] = 9;
    let bytes = (5008u32 * 512).to_be_bytes();
    assert_eq!(rig.run(&status, &[]).data_in.to_vec()[4..], [[1, 0, 2, 0].as_slice(), &bytes].concat());
}

#[test]
fn results_are_kept_where_they_are_asked_for() {
    let mut rig = Rig::thin();
    let status = |rig: &mut Rig, id: u8| {
        let mut cdb = cdb(0x84, 0, 0, 255);
        cdb[2] = id;
        rig.run(&cdb, &[])
    };
    assert_eq!(sense_of(&status(&mut rig, 7)).unwrap().code, SenseCode::InvalidFieldInCdb);
    let list = across(7, 0, &[segment(0, 1, 0, 0, 2), segment(0, 1, 0, 0, 3)]);
    rig.good(&copy(&list), &list);
    assert_eq!(status(&mut rig, 7).data_in.to_vec(), [0, 0, 0, 8, 1, 0, 2, 0, 0, 0, 10, 0]);
    // it breaks off at the second write
    rig.fail = Some((3, BlockError::OutOfSpace));
    let sense = rig.refused(&copy(&list), &list);
    assert_eq!((sense.key, sense.code), (SenseKey::CopyAborted, SenseCode::ThirdPartyDeviceFailure));
    assert_eq!(sense.information, Some(1));
    assert_eq!(status(&mut rig, 7).data_in.to_vec(), [0, 0, 0, 8, 2, 0, 1, 0, 0, 0, 4, 0]);
    let mut details = cdb(0x84, 4, 0, 255);
    details[2] = 7;
    let failed = rig.good(&details, &[]);
    assert_eq!(failed[56..60], [2, 0, 0, 18]);
    assert_eq!(rig.refused(&details, &[]).code, SenseCode::InvalidFieldInCdb, "told once");
    // more than are remembered: the oldest go
    for id in 0..40 {
        let list = one_segment(id);
        rig.good(&copy(&list), &list);
    }
    assert_eq!(status(&mut rig, 39).status, Status::Good);
    assert_eq!(status(&mut rig, 20).status, Status::CheckCondition);
}

#[test]
fn what_cannot_be_copied_is_refused_before_anything_is() {
    let far = segment(0, 1, BLOCKS - 1, 0, 2);
    let good = segment(0, 1, 0, 0, 2);
    let targets = [target(own_naa()), target(OTHER_NAA)];
    let null = CopyTarget { unit_id_type: 0, null: true, naa: Some(own_naa()) }.emit(512);
    let strange = CopyTarget { unit_id_type: 3, null: false, naa: Some(own_naa()) }.emit(512);
    let mut port_name = target(own_naa());
    port_name[0] = 0xE0;
    let mut inline = across(0, 3, &[good]);
    inline[15] = 1;
    let mut stream = across(0, 3, &[good]);
    stream[16 + 64] = 0x03;
    let cases = [
        (across(0, 3, &[far]), SenseCode::NoAdditionalSense),
        (across(0, 3, &[good, segment(1, 0, 0, BLOCKS, 1)]), SenseCode::NoAdditionalSense),
        (across(0, 3, &[segment(0, 2, 0, 0, 1)]), SenseCode::CopyTargetNotReachable),
        (
            emit_copy(0, 3, &[target([0x61; 16])], &[segment(0, 0, 0, 0, 1)]),
            SenseCode::CopyTargetNotReachable,
        ),
        (emit_copy(0, 3, &[null], &[segment(0, 0, 0, 0, 1)]), SenseCode::CopyTargetNotReachable),
        (emit_copy(0, 3, &[strange], &[]), SenseCode::InvalidFieldInParameterList),
        (emit_copy(0, 3, &[port_name], &[]), SenseCode::UnsupportedTargetDescriptor),
        (emit_copy(0, 3, &[target(own_naa()); 17], &[]), SenseCode::TooManyTargetDescriptors),
        (across(0, 3, &[good; 65]), SenseCode::TooManySegmentDescriptors),
        (stream, SenseCode::UnsupportedSegmentDescriptor),
        (inline, SenseCode::InlineDataLengthExceeded),
        (across(0, 1, &[good]), SenseCode::InvalidFieldInParameterList),
        (across(5, 3, &[good]), SenseCode::InvalidFieldInParameterList),
        (across(0, 3, &[good])[..16 + 64 + 27].to_vec(), SenseCode::ParameterListLengthError),
        (emit_copy(0, 3, &targets, &[])[..40].to_vec(), SenseCode::ParameterListLengthError),
    ];
    for (list, code) in cases {
        Rig::thin().refused_with(&copy(&list), &list, code);
    }
    let mut rig = Rig::thin();
    rig.other_may_write = false;
    let list = across(0, 3, &[good]);
    rig.refused_with(&copy(&list), &list, SenseCode::ThirdPartyDeviceFailure);
    rig.good(&cdb(0x83, 0, 0, 0), &[]);
}

#[test]
fn orwrite_sets_bits_in_pieces() {
    let mut rig = Rig::thin();
    let before = filled(&mut rig, 100, 1000 * 512);
    let bits: Vec<u8> = (0..1000 * 512).map(|n| (n % 7) as u8).collect();
    rig.good(&cdb(0x8B, 0, 100, 1000), &bits);
    let expected: Vec<u8> = before.iter().zip(&bits).map(|(a, b)| a | b).collect();
    assert_eq!(rig.good(&cdb(0x88, 0, 100, 1000), &[]), expected);
    // somebody else is faster once
    rig.fail = Some((1, BlockError::Miscompare { offset_bytes: 0 }));
    rig.good(&cdb(0x8B, 0, 100, 1), &[0xFF; 512]);
    assert_eq!(rig.asked.len(), 4);
    rig.fail = None;
    assert_eq!(rig.good(&cdb(0x88, 0, 100, 1), &[]), [0xFF; 512]);
}
