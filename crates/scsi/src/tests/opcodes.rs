//! Every row of the opcode table: a good case, wrong fields, out of range, wrong data length. A row without
//! a case fails the test.

use proptest::prelude::*;
use wire::scsi::port_groups::{PortGroupState, emit_set_port_groups};
use wire::scsi::provisioning::{UnmapRange, emit_unmap};
use wire::scsi::{SenseCode, SenseKey, Status};

use super::reservations::{move_list, reserve_list};
use super::{BLOCKS, Rig, cdb, compare_and_write, sense_of};
use crate::rows::ROWS;
use crate::table::{Direction, Medium};

/// How a command addresses the medium.
#[derive(Clone, Copy, PartialEq)]
enum Range {
    None,
    /// LBA and length.
    Blocks,
    /// An LBA alone.
    Lba,
    /// In the parameter list.
    List,
}

struct Case {
    cdb: Vec<u8>,
    data_out: Vec<u8>,
    /// Bytes of data-in of the good case.
    data_in: usize,
    range: Range,
}

const MODE_LIST_6: [u8; 16] = [0, 0, 0, 0, 0x0A, 0x0A, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
const MODE_LIST_10: [u8; 20] = [0, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0x0A, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];

/// The good case of every command, on a thin volume of 512-byte blocks.
fn good_case(opcode: u8, action: Option<u8>) -> Option<Case> {
    let blocks = |flags, data_out: usize, data_in: usize| Case {
        cdb: cdb(opcode, flags, 16, 2),
        data_out: vec![0; data_out],
        data_in,
        range: Range::Blocks,
    };
    let plain = |cdb: &[u8], data_out: &[u8], data_in| Case {
        cdb: cdb.to_vec(),
        data_out: data_out.to_vec(),
        data_in,
        range: Range::None,
    };
    Some(match (opcode, action) {
        (0x00, None) => plain(&[0; 6], &[], 0),
        (0x03, None) => plain(&[0x03, 0, 0, 0, 18, 0], &[], 18),
        (0x08 | 0x28 | 0x88 | 0xA8, None) => blocks(0, 0, 1024),
        (0x0A | 0x2A | 0x8A | 0xAA, None) => blocks(0, 1024, 0),
        (0x12, None) => plain(&[0x12, 0, 0, 0, 96, 0], &[], 96),
        (0x15, None) => plain(&[0x15, 0x10, 0, 0, 16, 0], &MODE_LIST_6, 0),
        (0x16 | 0x17, None) => plain(&[opcode, 0, 0, 0, 0, 0], &[], 0),
        (0x1A, None) => plain(&[0x1A, 0, 0x0A, 0, 255, 0], &[], 24),
        (0x1B, None) => plain(&[0x1B, 0, 0, 0, 1, 0], &[], 0),
        (0x1D, None) => plain(&[0x1D, 4, 0, 0, 0, 0], &[], 0),
        (0x1E, None) => plain(&[0x1E, 0, 0, 0, 1, 0], &[], 0),
        (0x25, None) => plain(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 8),
        (0x2E | 0x8E | 0xAE, None) => blocks(0x02, 1024, 0),
        (0x2F | 0x8F | 0xAF, None) => blocks(0x02, 1024, 0),
        (0x34 | 0x90, None) => blocks(0, 0, 0),
        (0x35 | 0x91, None) => blocks(0, 0, 0),
        (0x37, None) => plain(&[0x37, 0, 0x18, 0, 0, 0, 0, 0, 8, 0], &[], 4),
        (0xB7, None) => plain(&cdb(0xB7, 0x18, 0, 8), &[], 8),
        (0x4D, None) => plain(&[0x4D, 0, 0x4D, 0, 0, 0, 0, 0, 255, 0], &[], 16),
        (0x83, Some(0)) => {
            let list = super::copy::one_segment(0);
            plain(&cdb(0x83, 0, 0, list.len() as u32), &list, 0)
        }
        (0x84, Some(0)) => plain(&cdb(0x84, 0, 0, 255), &[], 12),
        (0x84, Some(3)) => plain(&cdb(0x84, 3, 0, 255), &[], 46),
        (0x84, Some(4)) => plain(&cdb(0x84, 4, 0, 255), &[], 60 + 18),
        (0x8B, None) => blocks(0, 1024, 0),
        (0x41 | 0x93, None) => blocks(0x08, 512, 0),
        (0x42, None) => {
            let list = emit_unmap(&[UnmapRange { lba: 16, blocks: 2 }]);
            Case { cdb: cdb(0x42, 0, 0, list.len() as u32), data_out: list, data_in: 0, range: Range::List }
        }
        (0x55, None) => plain(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, 20, 0], &MODE_LIST_10, 0),
        (0x56 | 0x57, None) => plain(&[opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0),
        (0x5A, None) => plain(&[0x5A, 0, 0x0A, 0, 0, 0, 0, 1, 0, 0], &[], 28),
        (0x5E, Some(action)) => plain(&[0x5E, action, 0, 0, 0, 0, 0, 0, 8, 0], &[], 8),
        (0x5F, Some(7)) => {
            let list = move_list(2).emit();
            plain(&[0x5F, 7, 0, 0, 0, 0, 0, 0, list.len() as u8, 0], &list, 0)
        }
        (0x5F, Some(action)) => plain(&[0x5F, action, 1, 0, 0, 0, 0, 0, 24, 0], &reserve_list(1, 1), 0),
        (0x89, None) => {
            Case { cdb: compare_and_write(16, 2), data_out: vec![0; 2048], data_in: 0, range: Range::Blocks }
        }
        (0x9E, Some(0x10)) => plain(&cdb(0x9E, 0x10, 0, 32), &[], 32),
        (0x9E, Some(0x12)) => {
            Case { cdb: cdb(0x9E, 0x12, 16, 24), data_out: vec![], data_in: 24, range: Range::Lba }
        }
        (0xA0..=0xA4, _) => return report_case(opcode, action),
        _ => return None,
    })
}

/// The same of the REPORT and SET commands, which have no range.
fn report_case(opcode: u8, action: Option<u8>) -> Option<Case> {
    let plain = |cdb: &[u8], data_out: &[u8], data_in| Case {
        cdb: cdb.to_vec(),
        data_out: data_out.to_vec(),
        data_in,
        range: Range::None,
    };
    Some(match (opcode, action) {
        (0xA0, None) => plain(&cdb(0xA0, 0, 0, 32), &[], 32),
        (0xA3, Some(0x0A)) => plain(&cdb(0xA3, 0x0A, 0, 255), &[], 4 + 4 * 8 + 5 * 4),
        (0xA4, Some(0x0A)) => {
            let list = emit_set_port_groups(&[(2, PortGroupState::ActiveOptimized)]);
            plain(&cdb(0xA4, 0x0A, 0, list.len() as u32), &list, 0)
        }
        (0xA3, Some(0x0C)) => plain(&cdb(0xA3, 0x0C, 0, 4096), &[], 4 + 8 * ROWS.len()),
        (0xA3, Some(0x0F)) => plain(&cdb(0xA3, 0x0F, 0, 12), &[], 12),
        (0xA3, Some(0x0D)) => plain(&cdb(0xA3, 0x0D, 0, 4), &[], 4),
        _ => return None,
    })
}

/// A unit in the state that the good case needs: PERSISTENT RESERVE OUT comes from a nexus that is registered with
/// key 1, and REGISTER AND MOVE from the holder; results are of a copy that has ended or failed.
fn rig_for(opcode: u8, action: Option<u8>) -> Rig {
    let mut rig = Rig::thin();
    if opcode == 0x84 {
        let list = super::copy::one_segment(0);
        rig.fail = (action == Some(4)).then_some((1, block::BlockError::OutOfSpace));
        rig.run(&cdb(0x83, 0, 0, list.len() as u32), &list);
        rig.fail = None;
        rig.asked.clear();
    }
    if opcode == 0x5F {
        rig.good(&[0x5F, 6, 0, 0, 0, 0, 0, 0, 24, 0], &reserve_list(0, 1));
        if action == Some(7) {
            rig.good(&[0x5F, 1, 1, 0, 0, 0, 0, 0, 24, 0], &reserve_list(1, 0));
        }
    }
    rig
}

fn cases() -> Vec<(&'static crate::table::Row, Case)> {
    ROWS.iter()
        .map(|row| {
            let case = good_case(row.opcode, row.service_action);
            (row, case.unwrap_or_else(|| panic!("{} has no case", row.name)))
        })
        .collect()
}

#[test]
fn the_good_case_is_good() {
    for (row, case) in cases() {
        let mut rig = rig_for(row.opcode, row.service_action);
        let response = rig.run(&case.cdb, &case.data_out);
        assert_eq!(response.status, Status::Good, "{}: {:?}", row.name, sense_of(&response));
        assert_eq!(response.data_in_bytes(), case.data_in, "{}", row.name);
        assert_eq!(response.data_out_bytes, case.data_out.len(), "{}", row.name);
        // iSCSI pads every CDB to 16 bytes
        let mut padded = case.cdb.clone();
        padded.resize(16, 0xFF);
        assert_eq!(
            rig_for(row.opcode, row.service_action).run(&padded, &case.data_out).status,
            Status::Good,
            "{}",
            row.name
        );
    }
}

#[test]
fn a_bit_that_is_not_evaluated_is_refused_and_pointed_at() {
    for (row, case) in cases() {
        for byte in 1..case.cdb.len() {
            for bit in 0..8u8 {
                let service_action = byte == 1 && row.service_action.is_some() && bit < 5;
                if row.usage[byte] & 1 << bit != 0 || service_action {
                    continue;
                }
                let mut wrong = case.cdb.clone();
                wrong[byte] |= 1 << bit;
                let mut rig = rig_for(row.opcode, row.service_action);
                let sense = rig.refused(&wrong, &case.data_out);
                assert_eq!(sense.key, SenseKey::IllegalRequest, "{} {wrong:02x?}", row.name);
                assert_eq!(sense.code, SenseCode::InvalidFieldInCdb, "{} {wrong:02x?}", row.name);
                let field = sense.field.expect("a field pointer");
                assert_eq!(
                    (field.in_cdb, field.byte, field.bit),
                    (true, byte as u16, Some(bit)),
                    "{}",
                    row.name
                );
                assert!(rig.asked.is_empty());
            }
        }
    }
}

#[test]
fn what_reaches_past_the_end_is_refused() {
    let ends = [
        (BLOCKS - 1, 2),
        (BLOCKS, 1),
        (u64::from(u32::MAX), 2),
        (u64::MAX, 1),
        (u64::MAX, 255),
        (1 << 63, 2),
    ];
    for (row, case) in cases() {
        for (lba, length) in ends {
            let bits = match case.cdb.len() {
                6 => 21,
                10 | 12 => 32,
                _ => 64,
            };
            let lba = lba.min(u64::MAX >> (64 - bits));
            let (cdb, data_out) = match case.range {
                Range::None => continue,
                Range::Lba if lba < BLOCKS => continue,
                Range::Lba => (cdb(row.opcode, row.service_action.unwrap(), lba, 24), vec![]),
                Range::Blocks if row.opcode == 0x89 => {
                    (compare_and_write(lba, length as u8), vec![0; 1 << 18])
                }
                Range::Blocks => (cdb(row.opcode, 0, lba, length), vec![0; 1 << 18]),
                Range::List => {
                    let first = UnmapRange { lba: 3, blocks: 4 };
                    let list = emit_unmap(&[first, UnmapRange { lba, blocks: length }]);
                    (cdb(0x42, 0, 0, list.len() as u32), list)
                }
            };
            let mut rig = rig_for(row.opcode, row.service_action);
            rig.refused_with(&cdb, &data_out, SenseCode::LbaOutOfRange);
        }
    }
}

#[test]
fn the_last_block_and_nothing_behind_it() {
    for (row, case) in cases() {
        if case.range != Range::Blocks || row.opcode == 0x41 || row.opcode == 0x93 {
            continue;
        }
        // a length of zero exactly at the end: READ (6) and WRITE (6) mean 256 by it
        let at_end =
            if row.opcode == 0x89 { compare_and_write(BLOCKS, 0) } else { cdb(row.opcode, 0, BLOCKS, 0) };
        let mut rig = rig_for(row.opcode, row.service_action);
        if case.cdb.len() == 6 {
            rig.refused_with(&at_end, &vec![0; 256 * 512], SenseCode::LbaOutOfRange);
            let last = cdb(row.opcode, 0, BLOCKS - 256, 0);
            assert_eq!(rig.run(&last, &vec![0; 256 * 512]).status, Status::Good, "{}", row.name);
        } else {
            assert_eq!(rig.run(&at_end, &[]).status, Status::Good, "{}", row.name);
            let beyond = if row.opcode == 0x89 {
                compare_and_write(BLOCKS + 1, 0)
            } else {
                cdb(row.opcode, 0, BLOCKS + 1, 0)
            };
            rig.refused_with(&beyond, &[], SenseCode::LbaOutOfRange);
        }
    }
}

#[test]
fn too_little_data_changes_nothing() {
    for (row, case) in cases() {
        if row.direction != Direction::Out {
            continue;
        }
        for short in [0, 1, case.data_out.len() - 1] {
            let mut rig = rig_for(row.opcode, row.service_action);
            let response = rig.run(&case.cdb, &case.data_out[..short]);
            let sense = sense_of(&response).unwrap_or_else(|| panic!("{} takes {short} bytes", row.name));
            assert_eq!(sense.code, SenseCode::InvalidFieldInCommandInformationUnit, "{}", row.name);
            assert_eq!(response.data_out_bytes, case.data_out.len(), "{}: for the residual", row.name);
            assert!(rig.asked.is_empty(), "{}", row.name);
        }
    }
}

#[test]
fn too_much_data_is_ignored_or_refused_but_never_written() {
    for (row, case) in cases() {
        if row.direction != Direction::Out {
            continue;
        }
        let mut rig = rig_for(row.opcode, row.service_action);
        let mut long = case.data_out.clone();
        long.extend_from_slice(&[0xEE; 512]);
        let response = rig.run(&case.cdb, &long);
        let exact = matches!(row.opcode, 0x41 | 0x89 | 0x93);
        assert_eq!(response.status == Status::Good, !exact, "{}", row.name);
        assert_eq!(response.data_out_bytes, case.data_out.len(), "{}", row.name);
        assert!(rig.memory.mapped_bytes() <= 4096, "{}", row.name);
    }
}

#[test]
fn a_cdb_that_is_cut_short_is_refused() {
    for (row, case) in cases() {
        for length in 0..case.cdb.len() {
            let mut rig = rig_for(row.opcode, row.service_action);
            let sense = rig.refused(&case.cdb[..length], &case.data_out);
            // without its second byte, the service action is another one
            let codes = [SenseCode::InvalidFieldInCommandInformationUnit, SenseCode::InvalidFieldInCdb];
            assert!(codes.contains(&sense.code), "{} of {length} bytes", row.name);
        }
    }
}

#[test]
fn write_protection_stops_exactly_what_writes() {
    for (row, case) in cases() {
        let mut host = rig_for(row.opcode, row.service_action);
        host.nexus.read_only = true;
        let mut volume = rig_for(row.opcode, row.service_action);
        volume.unit.read_only = true;
        for mut rig in [host, volume] {
            if row.opcode == 0x83 {
                // its destination is what is written
                rig.refused_with(&case.cdb, &case.data_out, SenseCode::ThirdPartyDeviceFailure);
            } else if row.medium == Medium::Written || (rig.nexus.read_only && !row.read_only.is_served()) {
                rig.refused_with(&case.cdb, &case.data_out, SenseCode::WriteProtected);
            } else {
                assert_eq!(rig.run(&case.cdb, &case.data_out).status, Status::Good, "{}", row.name);
            }
        }
    }
}

/// Every opcode and service action that a read-only nexus is refused, and why. What is neither here nor below is served
/// or does not exist.
const WRITES: [u8; 12] = [0x0A, 0x2A, 0x2E, 0x41, 0x42, 0x89, 0x8A, 0x8B, 0x8E, 0x93, 0xAA, 0xAE];
/// RESERVE; PERSISTENT RESERVE OUT but for RELEASE; SET TARGET PORT GROUPS.
const SHUTS_OUT: [(u8, Option<u8>); 10] = [
    (0x16, None),
    (0x56, None),
    (0x5F, Some(0)),
    (0x5F, Some(1)),
    (0x5F, Some(3)),
    (0x5F, Some(4)),
    (0x5F, Some(5)),
    (0x5F, Some(6)),
    (0x5F, Some(7)),
    (0xA4, Some(0x0A)),
];

#[test]
fn who_may_only_read_can_neither_write_nor_shut_out_others() {
    let mut refused = 0;
    for opcode in 0..=255u8 {
        for action in 0..32u8 {
            let Some(row) = crate::table::find(opcode, action, true) else { continue };
            if row.service_action.is_none() && action != 0 {
                continue;
            }
            let case =
                good_case(opcode, row.service_action).unwrap_or_else(|| panic!("{} has no case", row.name));
            let mut rig = rig_for(opcode, row.service_action);
            rig.nexus.read_only = true;
            let (reservations, access) = (rig.reservations.clone(), rig.nexus.access().clone());
            if WRITES.contains(&opcode) || SHUTS_OUT.contains(&(opcode, row.service_action)) {
                rig.refused_with(&case.cdb, &case.data_out, SenseCode::WriteProtected);
                assert!(rig.reservations == reservations && *rig.nexus.access() == access, "{}", row.name);
                refused += 1;
            } else if opcode != 0x83 {
                assert_eq!(rig.run(&case.cdb, &case.data_out).status, Status::Good, "{}", row.name);
            }
        }
    }
    assert_eq!(refused, WRITES.len() + SHUTS_OUT.len(), "each that is listed exists");
}

#[test]
fn what_is_not_in_the_table_is_no_command() {
    let mut rig = Rig::thin();
    // FORMAT, SANITIZE, an unknown service action, vendor-specific
    for opcode in [0x04, 0x48, 0xC1, 0xFF] {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        rig.refused_with(&cdb, &[], SenseCode::InvalidCommandOperationCode);
    }
    rig.refused_with(&cdb(0x9E, 0x1F, 0, 0), &[], SenseCode::InvalidFieldInCdb);
    let unmap = good_case(0x42, None).unwrap();
    Rig::new(512, false).refused_with(&unmap.cdb, &unmap.data_out, SenseCode::InvalidCommandOperationCode);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_command_ends_and_stays_within_the_volume(
        row in 0..ROWS.len(), shape: u8, failure in 0u8..5, mut noise in proptest::collection::vec(any::<u8>(), 16),
        near: bool, data in proptest::collection::vec(any::<u8>(), 0..2100),
    ) {
        // a command that exists with bits that count: others are refused at once
        for (byte, usage) in noise.iter_mut().zip(ROWS[row].usage) {
            *byte &= usage;
        }
        if near {
            // small addresses and lengths, of which many lie within the volume
            let (lba, length) = match ROWS[row].cdb_bytes() {
                6 => (1..2, 0..0),
                10 => (2..4, 7..8),
                12 => (2..4, 6..8),
                _ => (2..8, 10..12),
            };
            noise[lba].fill(0);
            noise[length].fill(0);
        }
        noise[0] = ROWS[row].opcode;
        noise[1] |= ROWS[row].service_action.unwrap_or(0);
        let input = [&[shape, failure][..], &noise, &data].concat();
        prop_assert!(crate::exercise(&input).is_some());
    }

    #[test]
    fn any_bytes_are_answered(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(crate::exercise(&input).is_some(), input.len() >= 2);
    }
}
