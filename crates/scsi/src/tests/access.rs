//! The cache, start and stop, and asymmetric access states.

use block::{BlockError, BlockRequest};
use wire::scsi::{SenseCode, SenseKey, Status};

use super::{Rig, cdb};
use crate::rows::ROWS;
use crate::table::AluaClass;

#[test]
fn a_unit_is_ready_when_its_target_answers() {
    let mut rig = Rig::thin();
    for (error, code) in [
        (BlockError::NotReady, Some(SenseCode::NotReadyCauseNotReportable)),
        (BlockError::Medium { lba: base::Lba(0) }, None),
        (BlockError::Unsupported, None),
    ] {
        rig.fail = Some((0, error));
        let response = rig.run(&[0; 6], &[]);
        assert_eq!(super::sense_of(&response).map(|sense| sense.code), code, "{error}");
    }
    rig.fail = None;
    rig.good(&[0; 6], &[]);
}

#[test]
fn synchronize_cache_and_stop_flush() {
    let mut rig = Rig::thin();
    let mut flushes = |cdb: &[u8]| {
        rig.good(cdb, &[]);
        rig.asked.iter().filter(|request| matches!(request, BlockRequest::Flush)).count()
    };
    assert_eq!(flushes(&cdb(0x35, 0, 0, 0)), 1, "all of it");
    assert_eq!(flushes(&cdb(0x91, 0x02, 5, 6)), 1, "a range, IMMED");
    assert_eq!(flushes(&[0x1B, 0, 0, 0, 0x00, 0]), 1, "stop");
    assert_eq!(flushes(&[0x1B, 0, 0, 0, 0x04, 0]), 0, "stop, NO_FLUSH");
    assert_eq!(flushes(&[0x1B, 1, 0, 0, 0x01, 0]), 0, "start");
    assert_eq!(rig.run(&[0; 6], &[]).status, Status::Good, "stopping stops nothing");
}

#[test]
fn the_medium_cannot_be_ejected_nor_put_to_sleep() {
    let mut rig = Rig::thin();
    for (flags, bit) in [(0x02, 1), (0x03, 1), (0x10, 7), (0x30, 7)] {
        let sense = rig.refused(&[0x1B, 0, 0, 0, flags, 0], &[]);
        assert_eq!((sense.code, sense.field.unwrap().bit), (SenseCode::InvalidFieldInCdb, Some(bit)));
    }
    rig.good(&[0x1E, 0, 0, 0, 0, 0], &[]);
}

#[test]
fn access_states_admit_what_the_table_says() {
    let states = [
        (1, None),
        (3, Some(SenseCode::AluaStandby)),
        (4, Some(SenseCode::AluaUnavailable)),
        (5, Some(SenseCode::AluaTransition)),
        // no port of ours
        (99, Some(SenseCode::AluaUnavailable)),
    ];
    for (port, refusal) in states {
        for row in ROWS {
            let mut rig = Rig::thin();
            rig.come_through(port);
            let mut cdb = vec![0; row.cdb_bytes()];
            (cdb[0], cdb[1]) = (row.opcode, row.service_action.unwrap_or(0));
            let admitted = match row.alua {
                AluaClass::Any => true,
                AluaClass::ActiveOrStandby => port == 1 || port == 3,
                AluaClass::Active => port == 1,
            };
            let response = rig.run(&cdb, &[]);
            let sense = super::sense_of(&response).filter(|sense| sense.key == SenseKey::NotReady);
            assert_eq!(
                sense.map(|sense| sense.code),
                refusal.filter(|_| !admitted),
                "{} on port {port}",
                row.name
            );
        }
    }
}
