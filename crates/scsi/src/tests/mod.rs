//! Commands as an initiator sends them, against a logical unit over a memory target.

mod access;
mod attention;
mod copy;
mod data;
mod documented;
mod identity;
mod log;
mod mode;
mod opcodes;
mod reservations;

use std::sync::Arc;

use block::{BlockError, BlockRequest, Geometry, Memory, Payload};
use wire::scsi::{Lun, Sense, SenseCode, Status};

use crate::{
    Command, CopyPart, CopyStretch, Identity, LogicalUnit, Nexus, Peer, Response, Space, Step, Target,
    TargetPort, UnitAttention,
};
use reservation::{AccessState, AccessStates, Cause, NexusName, Reservations};

/// A logical unit, an initiator that has heard of its power-on, and the memory below.
pub(crate) struct Rig {
    pub(crate) unit: LogicalUnit,
    pub(crate) nexus: Nexus,
    pub(crate) reservations: Reservations,
    pub(crate) memory: Memory,
    /// Another logical unit of the same size.
    pub(crate) other: Memory,
    pub(crate) other_may_write: bool,
    /// What the target was asked, in order.
    pub(crate) asked: Vec<BlockRequest>,
    /// What is left of the next stretch that could be copied by reference; `None`: all of it.
    pub(crate) left: Option<Vec<CopyPart>>,
    pub(crate) stretches: Vec<CopyStretch>,
    /// Fails the request of this number.
    pub(crate) fail: Option<(usize, BlockError)>,
}

/// The wall clock.
pub(crate) const CLOCK_MS: u64 = 1_795_330_000_123;
pub(crate) const BLOCKS: u64 = 20_000;
/// The other logical unit that the initiator sees.
pub(crate) const OTHER_NAA: [u8; 16] = [0x67; 16];

pub(crate) fn target() -> Target {
    let port = |relative_id, group| TargetPort {
        relative_id,
        group,
        name: format!("iqn.2026-01.example:array,t,0x{relative_id:04x}"),
    };
    Target {
        name: "iqn.2026-01.example:array".into(),
        ports: vec![port(1, 1), port(2, 1), port(3, 2), port(4, 3), port(5, 4)],
    }
}

/// Group 2 is in standby, 3 unavailable, 4 about to lose access.
pub(crate) fn access() -> AccessStates {
    let known = target().groups();
    let plan = |states: &AccessStates, changes: &[(u16, AccessState)]| {
        states.plan(&known, changes, Cause::Explicit).expect("group 1 stays active")
    };
    let two = plan(&AccessStates::default(), &[(2, AccessState::Standby), (3, AccessState::Unavailable)]);
    plan(&two.next, &[(4, AccessState::Standby)]).passing.expect("it loses access")
}

pub(crate) fn nexus_name(port: u16) -> NexusName {
    NexusName { initiator: "iqn.2026-01.example:a,i,0x000000000001".into(), port }
}

impl Rig {
    pub(crate) fn new(block_bytes: u32, thin: bool) -> Rig {
        let geometry = Geometry { block_bytes, blocks: BLOCKS, thin, write_back: true };
        let mut naa = [0x12; 16];
        naa[0] = 0x6D;
        let unit = LogicalUnit {
            identity: Identity { naa, serial: "5a17f00d".into(), revision: *b"0001" },
            geometry,
            read_only: false,
            keeps_reservations: true,
            target: Arc::new(target()),
        };
        let mut nexus = Nexus::new(nexus_name(1), false);
        nexus.clear(UnitAttention::PowerOnOrReset);
        nexus.adopt_access(access().into());
        Rig {
            unit,
            nexus,
            reservations: Reservations::default(),
            memory: Memory::new(geometry),
            other: Memory::new(geometry),
            other_may_write: true,
            asked: Vec::new(),
            left: None,
            stretches: Vec::new(),
            fail: None,
        }
    }

    pub(crate) fn thin() -> Rig {
        Rig::new(512, true)
    }

    /// The same initiator by another port of the target.
    pub(crate) fn come_through(&mut self, port: u16) {
        self.nexus = Nexus::new(nexus_name(port), false);
        self.nexus.clear(UnitAttention::PowerOnOrReset);
        self.nexus.adopt_access(access().into());
    }

    /// Runs a command to its end.
    pub(crate) fn run(&mut self, cdb: &[u8], data_out: &[u8]) -> Response {
        let luns = || [0, 5, 300].into_iter().filter_map(Lun::new).collect();
        let other =
            Peer { block_bytes: 512, blocks: BLOCKS, may_read: true, may_write: self.other_may_write };
        let peers = |naa: &[u8; 16]| (*naa == OTHER_NAA).then_some(other);
        let space = || Some(Space { capacity_bytes: 1 << 40, used_bytes: 1 << 30 });
        let command = Command {
            cdb,
            data_out: Payload::from(data_out.to_vec()),
            luns: &luns,
            peers: &peers,
            space: &space,
            clock: &|| CLOCK_MS,
        };
        let mut step = self.unit.start(&mut self.nexus, command);
        self.asked.clear();
        loop {
            match step {
                Step::Done(response) => return response,
                Step::Reserve(request, continuation) => {
                    let applied = self.reservations.apply(self.nexus.name(), &request, &|_| Vec::new());
                    let result = applied.map(|applied| self.reservations = applied.next);
                    self.nexus.adopt(self.reservations.clone().into());
                    return self.unit.finish_reserve(&self.nexus, continuation, result);
                }
                Step::SetAccess(changes, continuation) => {
                    let known = self.unit.target.groups();
                    let planned = self.nexus.access().plan(&known, &changes, Cause::Explicit);
                    let result = planned.map(|planned| self.nexus.adopt_access(planned.next.into()));
                    return self.unit.finish_reserve(&self.nexus, continuation, result);
                }
                Step::Copy(stretch, continuation) => {
                    let left = self.left.take();
                    self.stretches.push(stretch);
                    step = self.unit.finish_stretch(&mut self.nexus, continuation, left);
                }
                Step::BlockOf(naa, request, continuation) => {
                    let memory = if *naa == OTHER_NAA { &mut self.other } else { &mut self.memory };
                    let result = match self.fail {
                        Some((number, error)) if number == self.asked.len() => Err(error),
                        _ => memory.answer(&request),
                    };
                    self.asked.push(request);
                    step = self.unit.finish(&mut self.nexus, continuation, result);
                }
                Step::Block(request, continuation) => {
                    let result = match self.fail {
                        Some((number, error)) if number == self.asked.len() => Err(error),
                        _ => self.memory.answer(&request),
                    };
                    self.asked.push(request);
                    step = self.unit.finish(&mut self.nexus, continuation, result);
                }
            }
        }
    }

    /// Runs a command that must end well; its data-in.
    pub(crate) fn good(&mut self, cdb: &[u8], data_out: &[u8]) -> Vec<u8> {
        let response = self.run(cdb, data_out);
        assert_eq!(response.status, Status::Good, "{cdb:02x?}: {:?}", sense_of(&response));
        assert!(response.sense.is_none());
        response.data_in.to_vec()
    }

    /// Runs a command that must end with CHECK CONDITION; its sense data.
    pub(crate) fn refused(&mut self, cdb: &[u8], data_out: &[u8]) -> Sense {
        let response = self.run(cdb, data_out);
        assert_eq!(response.status, Status::CheckCondition, "{cdb:02x?}");
        sense_of(&response).expect("CHECK CONDITION comes with sense data")
    }

    /// The same, and that nothing was changed by it.
    pub(crate) fn refused_with(&mut self, cdb: &[u8], data_out: &[u8], code: SenseCode) {
        let sense = self.refused(cdb, data_out);
        assert_eq!(sense.code, code, "{cdb:02x?}");
        assert!(self.asked.is_empty(), "{cdb:02x?}");
    }
}

pub(crate) fn sense_of(response: &Response) -> Option<Sense> {
    response.sense.as_ref().map(|bytes| Sense::parse(bytes).expect("sense data that can be read").0)
}

/// A CDB of 6, 10, 12 or 16 bytes, as the opcode has it.
pub(crate) fn cdb(opcode: u8, flags: u8, lba: u64, length: u32) -> Vec<u8> {
    let bytes = wire::scsi::cdb::cdb_length(opcode).expect("an opcode with a fixed length");
    let fields = wire::scsi::cdb::BlockFields { flags, lba, length };
    fields.emit(opcode, bytes).expect("fields that fit")
}

/// COMPARE AND WRITE keeps its number of blocks in byte 13.
pub(crate) fn compare_and_write(lba: u64, blocks: u8) -> Vec<u8> {
    let mut cdb = cdb(0x89, 0, lba, 0);
    cdb[13] = blocks;
    cdb
}
