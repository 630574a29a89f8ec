//! The logical unit: the two entry points, and the order in which a command is checked.
//!
//! ```text
//!   known opcode? ─► long enough? ─► unit attention? ─► access state? ─► reservation? ─► reserved bits?
//!   ─► mapped read-only? ─► write-protected? ─► handler
//! ```

use std::sync::Arc;

use block::{BlockResult, Geometry, Payload};
use reservation::{AccessState, Refusal};
use wire::scsi::cdb::InquiryCdb;
use wire::scsi::inquiry::{PERIPHERAL_NONE, StandardInquiry};
use wire::scsi::{Lun, SenseFormat, Status};
use zerocopy::FromBytes;

use crate::call::Call;
use crate::commands::copy::{CopyPart, Naa, Peer};
use crate::commands::{copy, inquiry, report};
use crate::fault::{Denial, Fault};
use crate::finish;
use crate::identity::{Identity, PRODUCT, Target, VENDOR};
use crate::nexus::Nexus;
use crate::response::{Continuation, Pending, Response, Step};
use crate::table::{self, AttentionRule, Medium, Row};

/// A volume as a disk. Immutable: a resize or a new name makes a new one.
#[derive(Clone, Debug)]
pub struct LogicalUnit {
    pub identity: Identity,
    pub geometry: Geometry,
    /// The volume refuses writes of every initiator.
    pub read_only: bool,
    /// Reservations can be made to survive a restart (APTPL).
    pub keeps_reservations: bool,
    pub target: Arc<Target>,
}

/// How full a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
}

/// A command as the transport delivered it.
pub struct Command<'a> {
    /// Bytes beyond the opcode's CDB length are ignored (iSCSI pads to 16); fewer are refused.
    pub cdb: &'a [u8],
    /// All data-out that was delivered.
    pub data_out: Payload,
    /// The LUNs that this initiator may see, ascending; called for REPORT LUNS only.
    pub luns: &'a dyn Fn() -> Vec<Lun>,
    /// Another logical unit of this NAA designator, where this initiator sees it; called for EXTENDED COPY only.
    pub peers: &'a dyn Fn(&Naa) -> Option<Peer>,
    /// How full the pool is that the logical unit shares with others, where there is one;
    /// called for the commands that tell of it.
    pub space: &'a dyn Fn() -> Option<Space>,
    /// The wall clock in milliseconds since 1970; called for REPORT TIMESTAMP only.
    pub clock: &'a dyn Fn() -> u64,
}

impl LogicalUnit {
    /// Begins a command.
    pub fn start(&self, nexus: &mut Nexus, command: Command<'_>) -> Step {
        let delivered = command.data_out.len();
        let format = nexus.sense_format();
        let row = match self.admit(nexus, command.cdb) {
            Ok(row) => row,
            Err(denial) => return Step::Done(Response::denied(denial, format, delivered)),
        };
        let cdb = &command.cdb[..row.cdb_bytes()];
        let mut call = Call {
            unit: self,
            nexus,
            row,
            cdb,
            data_out: command.data_out,
            luns: command.luns,
            peers: command.peers,
            space: command.space,
            clock: command.clock,
            data_out_bytes: None,
        };
        (row.handler)(&mut call).unwrap_or_else(|fault| {
            let data_out_bytes = call.data_out_bytes.unwrap_or(delivered);
            Step::Done(Response::check(fault.sense(), format, data_out_bytes))
        })
    }

    /// Whether this nexus may read, and write, here: as the source or destination of a copy.
    pub fn peer(&self, nexus: &Nexus) -> Peer {
        let protected = self.read_only || nexus.read_only || nexus.control.software_write_protect;
        let active = self.access_by(nexus).is_active();
        Peer {
            block_bytes: self.geometry.block_bytes,
            blocks: self.geometry.blocks,
            may_read: nexus.may_read() && active,
            may_write: nexus.may_write() && active && !protected,
        }
    }

    /// The end of a copy whose source or destination the initiator does not see any more.
    pub fn copy_lost(&self) -> Response {
        Response::check(Fault::CopyUnreachable.sense(), SenseFormat::Fixed, 0)
    }

    /// A command that waits for a block request was aborted: it is not continued.
    pub fn abandon(&self, nexus: &mut Nexus, continuation: Continuation) {
        if let Pending::Copy(job) = continuation.pending {
            job.abandon(nexus);
        }
    }

    /// Continues a command with the result of the request that it asked for.
    pub fn finish(&self, nexus: &mut Nexus, continuation: Continuation, result: BlockResult) -> Step {
        finish::finish(self, nexus, continuation, result)
    }

    /// Continues a copy after a range was copied by reference. The given parts of it were not copied; `None`: nothing was copied.
    pub fn finish_stretch(
        &self,
        nexus: &mut Nexus,
        continuation: Continuation,
        left: Option<Vec<CopyPart>>,
    ) -> Step {
        match continuation.pending {
            Pending::Copy(job) => copy::on_stretch(nexus, job, continuation.data_out_bytes, left),
            other => unreachable!("{other:?} copies nothing"),
        }
    }

    /// The state in which a nexus reaches the logical unit.
    pub fn access_by(&self, nexus: &Nexus) -> AccessState {
        let group = self.target.group_of(nexus.port());
        group.map_or(AccessState::Unavailable, |group| nexus.access().of(group))
    }

    /// Ends a command that has asked for a change of reservations or access states.
    pub fn finish_reserve(
        &self,
        nexus: &Nexus,
        continuation: Continuation,
        result: Result<(), Refusal>,
    ) -> Response {
        let data_out_bytes = continuation.data_out_bytes;
        match result {
            Ok(()) => Response::good(data_out_bytes),
            Err(refusal) => Response::denied(refusal.into(), nexus.sense_format(), data_out_bytes),
        }
    }

    /// Everything that is checked alike for all commands.
    fn admit(&self, nexus: &mut Nexus, cdb: &[u8]) -> Result<&'static Row, Denial> {
        let &[opcode, ref rest @ ..] = cdb else { return Err(Fault::DataOutLength.into()) };
        let service_action = rest.first().map_or(0, |byte| byte & 0x1F);
        let row = table::find(opcode, service_action, self.geometry.thin).ok_or_else(|| unknown(opcode))?;
        let cdb = cdb.get(..row.cdb_bytes()).ok_or(Fault::DataOutLength)?;
        if row.attention == AttentionRule::Reports
            && let Some(attention) = nexus.take_attention()
        {
            return Err(Fault::Attention(attention).into());
        }
        row.check_alua(self.access_by(nexus))?;
        if nexus.conflicts(row.reservation_of(cdb)) {
            return Err(Denial::Conflict);
        }
        row.check_reserved_bits(cdb)?;
        if nexus.read_only && !row.read_only.is_served() {
            return Err(Fault::WriteProtected.into());
        }
        if row.medium == Medium::Written {
            if self.read_only {
                return Err(Fault::WriteProtected.into());
            }
            if nexus.control.software_write_protect {
                return Err(Fault::SoftwareWriteProtected.into());
            }
        }
        Ok(row)
    }

    /// Whether the range lies within the volume (SBC-3 §4.5), however large its numbers.
    pub(crate) fn check_range(&self, lba: u64, blocks: u64) -> Result<(), Fault> {
        let size = self.geometry.blocks;
        if lba > size || blocks > size - lba { Err(Fault::LbaOutOfRange) } else { Ok(()) }
    }
}

/// Why a command does not exist: its operation code, or its service action alone.
fn unknown(opcode: u8) -> Fault {
    let has_actions = table::rows_of(opcode).any(|row| row.service_action.is_some());
    if has_actions { Fault::cdb_bit(1, 4) } else { Fault::UnknownCommand }
}

/// Answers a command with the ACA attribute: there is no such condition here (NormACA is 0; SAM-5 §8.6.5).
pub fn no_auto_contingent_allegiance(delivered: usize) -> Response {
    Response::check(Fault::NoAca.sense(), SenseFormat::Fixed, delivered)
}

/// Answers a command for which there is no room: BUSY to the only one of its nexus, otherwise TASK SET FULL (SAM-5
/// §5.3.1).
pub fn no_room(alone: bool) -> Response {
    let status = if alone { Status::Busy } else { Status::TaskSetFull };
    Response { status, sense: None, data_in: Payload::new(), data_out_bytes: 0 }
}

/// Answers a command that another nexus has aborted (SAM-5 §5.3.1).
pub fn task_aborted() -> Response {
    Response { status: Status::TaskAborted, sense: None, data_in: Payload::new(), data_out_bytes: 0 }
}

/// What the CDB is called in the standards, for people to read.
pub fn command_name(cdb: &[u8]) -> &'static str {
    let &[opcode, ref rest @ ..] = cdb else { return "(empty CDB)" };
    let service_action = rest.first().map_or(0, |byte| byte & 0x1F);
    table::find(opcode, service_action, true).map_or("(unknown command)", |row| row.name)
}

/// Answers a command to a LUN that the initiator does not have (or to the REPORT LUNS well-known logical
/// unit): INQUIRY says that there is no device, REPORT LUNS and REQUEST SENSE work, all else is LOGICAL UNIT
/// NOT SUPPORTED (SPC-4 §6.6.1, SAM-5 §5.11).
pub fn no_such_lun(command: Command<'_>) -> Response {
    let refused = || Response::check(Fault::NoSuchUnit.sense(), SenseFormat::Fixed, command.data_out.len());
    let Some(row) = command.cdb.first().and_then(|&opcode| table::find(opcode, 0, true)) else {
        return refused();
    };
    let Some(cdb) = command.cdb.get(..row.cdb_bytes()) else { return refused() };
    let answer = |mut data: Vec<u8>, allocation: usize| {
        data.truncate(allocation);
        Response::with_data(data.into())
    };
    match row.opcode {
        0x12 => match InquiryCdb::read_from_bytes(cdb) {
            Ok(view) if view.flags == 0 && view.page == 0 => {
                let none = StandardInquiry {
                    peripheral: PERIPHERAL_NONE,
                    vendor: VENDOR,
                    product: PRODUCT,
                    revision: inquiry::NO_REVISION,
                    alua: false,
                    third_party_copy: false,
                    multiple_ports: false,
                };
                answer(none.emit(), usize::from(view.allocation_length.get()))
            }
            _ => refused(),
        },
        0x03 => {
            let format = if cdb[1] & 1 != 0 { SenseFormat::Descriptor } else { SenseFormat::Fixed };
            answer(Fault::NoSuchUnit.sense().emit(format).to_vec(), usize::from(cdb[4]))
        }
        0xA0 => match report::luns_data(cdb, command.luns) {
            Ok((data, allocation)) => answer(data, allocation),
            Err(fault) => Response::check(fault.sense(), SenseFormat::Fixed, command.data_out.len()),
        },
        _ => refused(),
    }
}
