//! The logical unit: the two entry points, and the order in which a command is checked.

use std::sync::Arc;

use block::{BlockResult, Geometry, Payload};
use wire::scsi::Lun;

use crate::identity::{Identity, Target};
use crate::nexus::Nexus;
use crate::response::{Continuation, Response, Step};

/// A volume as a disk. Immutable: a resize or a new name makes a new one.
#[derive(Clone, Debug)]
pub struct LogicalUnit {
    pub identity: Identity,
    pub geometry: Geometry,
    /// The volume refuses writes, whoever asks.
    pub read_only: bool,
    pub target: Arc<Target>,
}

/// A command as the transport delivered it.
pub struct Command<'a> {
    /// At least 6 bytes; trailing bytes beyond the opcode's CDB length are ignored (iSCSI pads to 16).
    pub cdb: &'a [u8],
    /// All data-out that was delivered.
    pub data_out: Payload,
    /// The LUNs that this initiator may see, ascending; called for REPORT LUNS only.
    pub luns: &'a dyn Fn() -> Vec<Lun>,
}

impl LogicalUnit {
    /// Begins a command.
    pub fn start(&self, nexus: &mut Nexus, command: Command<'_>) -> Step {
        let _ = (nexus, command);
        todo!()
    }

    /// Continues a command with the result of the request that it asked for.
    pub fn finish(&self, nexus: &mut Nexus, continuation: Continuation, result: BlockResult) -> Step {
        let _ = (nexus, continuation, result);
        todo!()
    }
}

/// Answers a command to a LUN that the initiator does not have (or to the REPORT LUNS well-known logical
/// unit): INQUIRY says that there is no device, REPORT LUNS and REQUEST SENSE work, all else is LOGICAL UNIT
/// NOT SUPPORTED (SPC-4 §6.6.1, SAM-5 §5.11).
pub fn no_such_lun(command: Command<'_>) -> Response {
    let _ = command;
    todo!()
}
