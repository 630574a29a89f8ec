//! Runs any bytes as a command, for fuzzers and property tests.

use std::sync::Arc;

use base::limits::TRANSFER_BYTES_MAX;
use block::{BlockError, BlockOutput, BlockRequest, BlockResult, Geometry, Payload};
use reservation::{
    AccessState, Cause, Names, NexusName, Registrant, ReservationRequest, ReservationType, Reservations,
};
use wire::scsi::{Lun, Sense, Status};

use crate::commands::copy::{Naa, Peer};
use crate::identity::{Identity, Target, TargetPort};
use crate::nexus::{Nexus, UnitAttention};
use crate::response::{Response, Step};
use crate::unit::{Command, LogicalUnit, Space, no_such_lun};

/// Runs `input` as a command against a logical unit: two bytes choose the unit, up to 16 are the CDB, the rest
/// is data-out. Asserts what always holds: every block request lies within the volume, the command ends, the
/// sense data can be read. `None` where the input is too short to choose a unit.
pub fn exercise(input: &[u8]) -> Option<Response> {
    let (&[shape, failure], rest) = input.split_first_chunk::<2>()?;
    let (cdb, data) = rest.split_at(rest.len().min(16));
    let unit = sample_unit(shape);
    let mut nexus = Nexus::new(sample_name("a"), shape & 0x20 != 0);
    if shape & 0x40 != 0 {
        nexus.clear(UnitAttention::PowerOnOrReset);
    }
    if shape & 0x10 != 0 {
        let standby = [(1, AccessState::Standby)];
        let planned = nexus.access().plan(&unit.target.groups(), &standby, Cause::Implicit);
        nexus.adopt_access(planned.expect("group 2 is active").next.into());
    }
    let mut reservations = sample_reservations(failure >> 4);
    nexus.adopt(reservations.clone().into());
    let luns = || (0..300).filter_map(Lun::new).collect();
    let other = Peer { block_bytes: 512, blocks: 100_000, may_read: true, may_write: true };
    let peers = |naa: &Naa| (naa[0] == 0x60).then_some(other);
    let command = || Command {
        cdb,
        data_out: Payload::from(data.to_vec()),
        luns: &luns,
        peers: &peers,
        clock: &|| 1,
        space: &|| Some(Space { capacity_bytes: 1 << 50, used_bytes: 1 << 40 }),
    };
    check_response(&no_such_lun(command()));
    let mut step = unit.start(&mut nexus, command());
    for _ in 0..STEPS_MAX {
        match step {
            Step::Done(response) => {
                check_response(&response);
                return Some(response);
            }
            Step::SetAccess(changes, continuation) => {
                let states = nexus.access().plan(&unit.target.groups(), &changes, Cause::Explicit);
                let result = states.map(|transition| nexus.adopt_access(transition.next.into()));
                step = Step::Done(unit.finish_reserve(&nexus, continuation, result));
            }
            Step::Reserve(request, continuation) => {
                let applied = reservations.apply(nexus.name(), &request, &|_| Vec::new());
                let result = applied.map(|applied| reservations = applied.next);
                nexus.adopt(reservations.clone().into());
                step = Step::Done(unit.finish_reserve(&nexus, continuation, result));
            }
            Step::Copy(_, continuation) => {
                step = unit.finish_stretch(&mut nexus, continuation, None);
            }
            Step::Block(request, continuation) | Step::BlockOf(_, request, continuation) => {
                let result = answer(&unit.geometry, &request, failure);
                step = unit.finish(&mut nexus, continuation, result);
            }
        }
    }
    panic!("the command does not end: {cdb:02x?}");
}

/// The largest number of block requests of one command: an EXTENDED COPY's pieces, read and written.
const STEPS_MAX: usize = 10_000;

fn sample_name(initiator: &str) -> NexusName {
    NexusName { initiator: format!("iqn.2026-01.example:{initiator},i,0x000000000001").into(), port: 1 }
}

/// Two registered nexuses and a reservation of this type, where there is such.
fn sample_reservations(kind: u8) -> Reservations {
    let mut reservations = Reservations::default();
    let Some(kind) = ReservationType::from_number(kind) else { return reservations };
    for initiator in ["b", "a"] {
        let register =
            ReservationRequest::Register { key: None, new_key: 7, names: Names::default(), persist: false };
        for request in [register, ReservationRequest::Reserve { key: 7, kind }] {
            if let Ok(applied) =
                reservations.apply(&Registrant::Nexus(sample_name(initiator)), &request, &|_| Vec::new())
            {
                reservations = applied.next;
            }
        }
    }
    reservations
}

fn sample_unit(shape: u8) -> LogicalUnit {
    let port = TargetPort { relative_id: 1, group: 1, name: "iqn.2026-01.example:array,t,0x0001".into() };
    let other = TargetPort { relative_id: 2, group: 2, name: "iqn.2026-01.example:array,t,0x0002".into() };
    let target = Target { name: "iqn.2026-01.example:array".into(), ports: vec![port, other] };
    let block_bytes = if shape & 1 != 0 { 4096 } else { 512 };
    let blocks = if shape & 8 != 0 { 1 << 33 } else { 100_000 };
    LogicalUnit {
        identity: Identity { naa: [0x60; 16], serial: "0123456789".into(), revision: *b"0001" },
        geometry: Geometry { block_bytes, blocks, thin: shape & 2 != 0, write_back: shape & 4 != 0 },
        read_only: shape & 0x80 != 0,
        keeps_reservations: shape & 0x08 != 0,
        target: Arc::new(target),
    }
}

/// What a target would say that holds zeros, or that fails.
fn answer(geometry: &Geometry, request: &BlockRequest, failure: u8) -> BlockResult {
    let block_bytes = geometry.block_bytes as usize;
    let within = |lba: u64, blocks: u64| {
        assert!(blocks > 0 && lba < geometry.blocks && blocks <= geometry.blocks - lba, "{request:?}");
    };
    let whole = |data: &Payload| {
        assert!(data.len().is_multiple_of(block_bytes) && data.len() <= TRANSFER_BYTES_MAX, "{request:?}");
        (data.len() / block_bytes) as u64
    };
    let output = match request {
        BlockRequest::Read { lba, blocks } => {
            within(lba.0, u64::from(*blocks));
            assert!(*blocks as usize * block_bytes <= TRANSFER_BYTES_MAX, "{request:?}");
            BlockOutput::Data(vec![0; *blocks as usize * block_bytes].into())
        }
        BlockRequest::Write { lba, data, .. } => {
            within(lba.0, whole(data));
            BlockOutput::None
        }
        BlockRequest::WriteZeroes { lba, blocks } | BlockRequest::Unmap { lba, blocks } => {
            within(lba.0, *blocks);
            BlockOutput::None
        }
        BlockRequest::CompareAndWrite { lba, expected, data, .. } => {
            within(lba.0, whole(data));
            assert_eq!(expected.len(), data.len());
            BlockOutput::None
        }
        BlockRequest::Flush => BlockOutput::None,
        BlockRequest::MapStatus { lba, blocks } => {
            within(lba.0, *blocks);
            BlockOutput::MapStatus { mapped: lba.0 % 2 == 0, blocks: (lba.0 % 7 + 1).min(*blocks) }
        }
    };
    match failure & 0x0F {
        1 => Err(BlockError::OutOfSpace),
        2 => Err(BlockError::Medium { lba: base::Lba(1) }),
        3 => Err(BlockError::Aborted),
        _ => Ok(output),
    }
}

fn check_response(response: &Response) {
    let sense = response.sense.as_ref().map(|sense| Sense::parse(sense).expect("our sense data can be read"));
    assert_eq!(response.status == Status::CheckCondition, sense.is_some(), "{response:?}");
    assert!(sense.is_none() || response.data_in.is_empty(), "data with an error: {response:?}");
    assert!(response.data_in_bytes() <= TRANSFER_BYTES_MAX.max(1 << 16), "{response:?}");
}
