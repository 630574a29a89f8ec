//! Reservations through the commands of initiators.

use wire::scsi::reservation::{
    FullStatus, MoveList, ReservationType, ReserveOutList, TransportId, parse_full_status, parse_keys,
    parse_reservation,
};
use wire::scsi::{SenseCode, Status};

use super::{Rig, cdb, nexus_name};
use crate::UnitAttention;
use reservation::{Names, Registrant, ReservationRequest, ReservationType as Kind};

pub(crate) fn reserve_list(key: u64, service_action_key: u64) -> Vec<u8> {
    list(key, service_action_key).emit(&[])
}

fn list(key: u64, service_action_key: u64) -> ReserveOutList {
    ReserveOutList {
        key,
        service_action_key,
        specify_initiator_ports: false,
        all_target_ports: false,
        persist: false,
    }
}

/// To another initiator, by this port; from key 1 to key 2.
pub(crate) fn move_list(relative_port: u16) -> MoveList {
    MoveList {
        key: 1,
        service_action_key: 2,
        unregister: true,
        persist: false,
        relative_port,
        transport_id: Some(TransportId::Port(OTHER.into())),
    }
}

const OTHER: &str = "iqn.2026-01.example:b,i,0x000000000001";

fn out(action: u8, kind: u8, bytes: usize) -> [u8; 10] {
    [0x5F, action, kind, 0, 0, 0, 0, 0, bytes as u8, 0]
}

fn read_in(rig: &mut Rig, action: u8) -> Vec<u8> {
    rig.good(&[0x5E, action, 0, 0, 0, 0, 0, 1, 0, 0], &[])
}

fn other() -> Registrant {
    Registrant::nexus(OTHER, 1)
}

/// What the other initiator asks for; its attentions are for nobody here.
fn by_other(rig: &mut Rig, request: ReservationRequest) {
    let applied = rig.reservations.apply(&other(), &request, &|_| Vec::new()).unwrap();
    for (nexus, attention) in &applied.notices {
        if nexus == rig.nexus.name() {
            rig.nexus.raise((*attention).into());
        }
    }
    rig.reservations = applied.next;
    rig.nexus.adopt(rig.reservations.clone().into());
}

fn register(new_key: u64) -> ReservationRequest {
    ReservationRequest::Register { key: None, new_key, names: Names::default(), persist: false }
}

#[test]
fn a_registration_and_a_reservation_are_told() {
    let mut rig = Rig::thin();
    rig.good(&out(0, 0, 24), &reserve_list(0, 0xA));
    by_other(&mut rig, register(0xB));
    assert_eq!(parse_keys(&read_in(&mut rig, 0)), Some((2, vec![0xA, 0xB])));
    assert_eq!(parse_reservation(&read_in(&mut rig, 1)), Some((2, None)));
    rig.good(&out(1, 5, 24), &reserve_list(0xA, 0));
    let held = ReservationType::WriteExclusiveRegistrantsOnly;
    assert_eq!(parse_reservation(&read_in(&mut rig, 1)), Some((2, Some((0xA, held)))));
    let (_, rows) = parse_full_status(&read_in(&mut rig, 3)).unwrap();
    let row = |key, holds, name: &str| FullStatus {
        key,
        holds,
        relative_port: 1,
        transport_id: TransportId::Port(name.to_owned()),
    };
    assert_eq!(rows, [row(0xA, Some(held), &nexus_name(1).initiator), row(0xB, None, OTHER)]);
    // cut to the allocation length, the length within it is whole
    let cut = rig.good(&[0x5E, 0, 0, 0, 0, 0, 0, 0, 8, 0], &[]);
    assert_eq!(cut, [0, 0, 0, 2, 0, 0, 0, 16]);
}

#[test]
fn every_type_of_another_holder_is_felt_by_every_command_class() {
    // SPC-4 table 66: TEST UNIT READY, READ, WRITE, MODE SENSE, INQUIRY, START STOP UNIT that starts;
    // from a nexus that is not registered, and from one that is
    let commands: [(&[u8], usize); 6] = [
        (&[0; 6], 0),
        (&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], 0),
        (&[0x2A, 0, 0, 0, 0, 0, 0, 0, 1, 0], 512),
        (&[0x1A, 0, 0x3F, 0, 255, 0], 0),
        (&[0x12, 0, 0, 0, 96, 0], 0),
        (&[0x1B, 0, 0, 0, 1, 0], 0),
    ];
    let table: [(u8, [u8; 6], [u8; 6]); 6] = [
        (1, *b"AACCAA", *b"AACCAA"),
        (3, *b"ACCCAA", *b"ACCCAA"),
        (5, *b"AACCAA", *b"AAAAAA"),
        (6, *b"ACCCAA", *b"AAAAAA"),
        (7, *b"AACCAA", *b"AAAAAA"),
        (8, *b"ACCCAA", *b"AAAAAA"),
    ];
    for (kind, stranger, registered) in table {
        for (registers, expected) in [(false, stranger), (true, registered)] {
            let mut rig = Rig::thin();
            if registers {
                rig.good(&out(0, 0, 24), &reserve_list(0, 1));
            }
            by_other(&mut rig, register(2));
            let kind = Kind::from_number(kind).unwrap();
            by_other(&mut rig, ReservationRequest::Reserve { key: 2, kind });
            for ((cdb, bytes), expected) in commands.iter().zip(expected) {
                let status = rig.run(cdb, &vec![0; *bytes]).status;
                let wanted = if expected == b'A' { Status::Good } else { Status::ReservationConflict };
                assert_eq!(status, wanted, "{kind:?} {registers} {cdb:02x?}");
            }
        }
    }
}

#[test]
fn persistent_reserve_out_is_refused_to_strangers_and_with_wrong_keys() {
    for action in [1, 2, 3, 4, 5] {
        let mut rig = Rig::thin();
        assert_eq!(rig.run(&out(action, 1, 24), &reserve_list(0, 1)).status, Status::ReservationConflict);
        rig.good(&out(0, 0, 24), &reserve_list(0, 1));
        let before = rig.reservations.clone();
        assert_eq!(rig.run(&out(action, 1, 24), &reserve_list(2, 1)).status, Status::ReservationConflict);
        assert_eq!(rig.reservations, before, "{action}");
    }
    let mut rig = Rig::thin();
    assert_eq!(rig.run(&out(0, 0, 24), &reserve_list(5, 6)).status, Status::ReservationConflict);
    rig.good(&out(6, 0, 24), &reserve_list(5, 6));
    rig.good(&out(6, 0, 24), &reserve_list(5, 7));
    assert_eq!(parse_keys(&read_in(&mut rig, 0)), Some((2, vec![7])));
}

#[test]
fn wrong_parameters_are_refused() {
    let mut rig = Rig::thin();
    rig.good(&out(0, 0, 24), &reserve_list(0, 1));
    rig.refused_with(&out(1, 2, 24), &reserve_list(1, 0), SenseCode::InvalidFieldInCdb);
    rig.refused_with(&out(1, 0x11, 24), &reserve_list(1, 0), SenseCode::InvalidFieldInCdb);
    rig.refused_with(&out(1, 1, 23), &reserve_list(1, 0), SenseCode::ParameterListLengthError);
    rig.refused_with(&out(1, 1, 28), &[0; 28], SenseCode::ParameterListLengthError);
    rig.good(&out(1, 1, 24), &reserve_list(1, 0));
    rig.refused_with(&out(2, 3, 24), &reserve_list(1, 0), SenseCode::InvalidReleaseOfPersistentReservation);
    rig.refused_with(&out(4, 1, 24), &reserve_list(1, 0), SenseCode::InvalidFieldInParameterList);
    let move_it = |rig: &mut Rig, list: MoveList| {
        let list = list.emit();
        rig.refused_with(&out(7, 0, list.len()), &list, SenseCode::InvalidFieldInParameterList);
    };
    move_it(&mut rig, move_list(77));
    move_it(&mut rig, MoveList { service_action_key: 0, ..move_list(1) });
    move_it(&mut rig, MoveList { transport_id: Some(TransportId::Device("iqn.b".into())), ..move_list(1) });
    let own = TransportId::Port(nexus_name(1).initiator.to_string());
    move_it(&mut rig, MoveList { transport_id: Some(own), ..move_list(1) });
    // SPEC_I_PT is for a first REGISTER alone
    let named = ReserveOutList { specify_initiator_ports: true, ..list(1, 2) }.emit(&[]);
    rig.refused_with(&out(0, 0, named.len()), &named, SenseCode::InvalidFieldInCdb);
    rig.refused_with(&out(6, 0, named.len()), &named, SenseCode::InvalidFieldInParameterList);
    // nothing is there to keep it
    rig.unit.keeps_reservations = false;
    let kept = ReserveOutList { persist: true, ..list(1, 2) }.emit(&[]);
    rig.refused_with(&out(0, 0, 24), &kept, SenseCode::InvalidFieldInParameterList);
}

#[test]
fn capabilities_say_what_can_be() {
    let mut rig = Rig::thin();
    assert_eq!(read_in(&mut rig, 2), [0, 8, 0x1D, 0xA0, 0xEA, 0x01, 0, 0]);
    let kept = ReserveOutList { persist: true, ..list(0, 2) }.emit(&[]);
    rig.good(&out(0, 0, 24), &kept);
    assert_eq!(read_in(&mut rig, 2)[3], 0xA1);
}

#[test]
fn a_preempted_nexus_is_told_and_shut_out() {
    let mut rig = Rig::thin();
    rig.good(&out(0, 0, 24), &reserve_list(0, 1));
    rig.good(&out(1, 3, 24), &reserve_list(1, 0));
    by_other(&mut rig, register(2));
    let kind = Kind::ExclusiveAccess;
    by_other(&mut rig, ReservationRequest::Preempt { key: 2, victim: 1, kind, abort: true });
    let sense = rig.refused(&cdb(0x28, 0, 0, 1), &[]);
    assert_eq!(sense.code, UnitAttention::RegistrationsPreempted.code());
    assert_eq!(rig.run(&cdb(0x28, 0, 0, 1), &[]).status, Status::ReservationConflict);
    rig.good(&[0x12, 0, 0, 0, 96, 0], &[]);
}

#[test]
fn reserve_and_release_exclude_others_and_persistent_reservations() {
    for (reserve, release) in
        [(&[0x16, 0, 0, 0, 0, 0][..], &[0x17, 0, 0, 0, 0, 0][..]), (&[0x56; 1], &[0x57; 1])]
    {
        let pad = |cdb: &[u8]| if cdb.len() == 1 { [cdb, &[0; 9]].concat() } else { cdb.to_vec() };
        let (reserve, release) = (pad(reserve), pad(release));
        let mut rig = Rig::thin();
        rig.good(&reserve, &[]);
        rig.good(&reserve, &[]);
        assert_eq!(rig.run(&out(0, 0, 24), &reserve_list(0, 1)).status, Status::ReservationConflict);
        rig.good(&cdb(0x28, 0, 0, 1), &[]);
        rig.good(&release, &[]);
        by_other(&mut rig, ReservationRequest::ReserveUnit);
        for cdb in [&[0; 6][..], &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], &reserve] {
            assert_eq!(rig.run(cdb, &[]).status, Status::ReservationConflict, "{cdb:02x?}");
        }
        rig.good(&release, &[]);
        assert!(rig.reservations.reserved_by().is_some(), "another's reservation stays");
        rig.good(&[0x12, 0, 0, 0, 96, 0], &[]);
        by_other(&mut rig, ReservationRequest::NexusLost);
        rig.good(&[0; 6], &[]);
        // compatible with persistent reservations (CRH)
        by_other(&mut rig, register(2));
        assert_eq!(rig.run(&reserve, &[]).status, Status::ReservationConflict);
        let kind = Kind::WriteExclusiveRegistrantsOnly;
        by_other(&mut rig, ReservationRequest::Reserve { key: 2, kind });
        assert_eq!(rig.run(&reserve, &[]).status, Status::ReservationConflict);
        rig.good(&out(0, 0, 24), &reserve_list(0, 1));
        rig.good(&reserve, &[]);
        assert!(rig.reservations.reserved_by().is_none());
    }
}
