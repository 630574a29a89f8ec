//! Unit attentions: which nexus gets them, when, and what clears them (SAM-5 §5.14).

use block::Payload;
use wire::scsi::{Lun, Sense, SenseCode, SenseFormat, SenseKey, Status};

use super::{Rig, cdb, sense_of};
use crate::{Command, UnitAttention, command_name, no_such_lun};

const TEST_UNIT_READY: [u8; 6] = [0; 6];
const REQUEST_SENSE: [u8; 6] = [0x03, 0, 0, 0, 252, 0];
const INQUIRY: [u8; 6] = [0x12, 0, 0, 0, 36, 0];

#[test]
fn every_attention_is_told_once_and_the_command_not_carried_out() {
    for attention in UnitAttention::ALL {
        let mut rig = Rig::thin();
        rig.nexus.raise(attention);
        rig.good(&INQUIRY, &[]);
        let sense = rig.refused(&cdb(0x2A, 0, 0, 1), &[1; 512]);
        assert_eq!((sense.key, sense.code), (SenseKey::UnitAttention, attention.code()));
        assert_eq!(rig.memory.mapped_bytes(), 0);
        rig.good(&cdb(0x2A, 0, 0, 1), &[1; 512]);
    }
}

#[test]
fn request_sense_tells_and_clears() {
    let mut rig = Rig::thin();
    rig.nexus.raise(UnitAttention::CapacityChanged);
    rig.nexus.raise(UnitAttention::NexusLoss);
    let ask = |rig: &mut Rig, descriptor: u8| {
        let mut cdb = REQUEST_SENSE;
        cdb[1] = descriptor;
        let (sense, format) = Sense::parse(&rig.good(&cdb, &[])).unwrap();
        (sense.key, sense.code, format)
    };
    let (attention, none) = (SenseKey::UnitAttention, (SenseKey::NoSense, SenseCode::NoAdditionalSense));
    assert_eq!(ask(&mut rig, 0), (attention, SenseCode::NexusLoss, SenseFormat::Fixed));
    assert_eq!(ask(&mut rig, 1), (attention, SenseCode::CapacityChanged, SenseFormat::Descriptor));
    assert_eq!(ask(&mut rig, 0), (none.0, none.1, SenseFormat::Fixed));
    rig.good(&TEST_UNIT_READY, &[]);
}

#[test]
fn report_luns_clears_only_what_it_tells() {
    let mut rig = Rig::thin();
    rig.nexus.raise(UnitAttention::ReportedLunsChanged);
    rig.nexus.raise(UnitAttention::CapacityChanged);
    rig.good(&cdb(0xA0, 0, 0, 64), &[]);
    assert_eq!(rig.refused(&TEST_UNIT_READY, &[]).code, SenseCode::CapacityChanged);
    rig.good(&TEST_UNIT_READY, &[]);
    assert!(!rig.nexus.has_attention());
}

fn ask_nobody(cdb: &[u8]) -> crate::Response {
    let luns = || vec![Lun::new(7).unwrap()];
    let (peers, space, clock) = (&|_: &_| None, &|| None, &|| 0);
    no_such_lun(Command { cdb, data_out: Payload::new(), luns: &luns, peers, space, clock })
}

#[test]
fn a_lun_that_is_not_there_says_so() {
    let inquiry = ask_nobody(&INQUIRY).data_in.to_vec();
    assert_eq!((inquiry.len(), inquiry[0]), (36, 0x7F));
    let luns = ask_nobody(&cdb(0xA0, 0, 0, 64)).data_in.to_vec();
    assert_eq!(luns, [0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0]);
    let sense = ask_nobody(&REQUEST_SENSE).data_in.to_vec();
    assert_eq!(Sense::parse(&sense).unwrap().0.code, SenseCode::LogicalUnitNotSupported);
    let vital = [0x12, 1, 0x83, 0, 255, 0];
    for cdb in [&TEST_UNIT_READY[..], &cdb(0x28, 0, 0, 1), &vital, &[], &[0x12], &[0xC0; 16], &[0xA0, 0, 0]] {
        let response = ask_nobody(cdb);
        assert_eq!(response.status, Status::CheckCondition);
        assert_eq!(sense_of(&response).unwrap().code, SenseCode::LogicalUnitNotSupported, "{cdb:02x?}");
    }
}

#[test]
fn commands_have_names() {
    assert_eq!(command_name(&INQUIRY), "INQUIRY");
    assert_eq!(command_name(&cdb(0x9E, 0x12, 0, 0)), "GET LBA STATUS");
    assert_eq!(command_name(&[0xFF]), "(unknown command)");
    assert_eq!(command_name(&[]), "(empty CDB)");
}
