//! The REPORT commands (SPC-4 §6.33-§6.37).

use wire::scsi::Lun;
use wire::scsi::cdb::{MaintenanceInCdb, ReportLunsCdb};
use wire::scsi::report::{CommandRow, emit_command, emit_commands, emit_luns, task_management_functions};
use zerocopy::FromBytes;

use crate::call::Call;
use crate::fault::Fault;
use crate::nexus::UnitAttention;
use crate::response::Step;
use crate::rows::ROWS;
use crate::table::{self, Row};

/// SPC-4 §6.33. An initiator that gets the list knows that it changed, so the unit attention is cleared.
pub(crate) fn report_luns(call: &mut Call<'_>) -> Result<Step, Fault> {
    let (data, allocation_bytes) = luns_data(call.cdb, call.luns)?;
    call.nexus.clear(UnitAttention::ReportedLunsChanged);
    call.parameters(data, allocation_bytes)
}

/// The parameter data and the allocation length.
pub(crate) fn luns_data(cdb: &[u8], luns: &dyn Fn() -> Vec<Lun>) -> Result<(Vec<u8>, usize), Fault> {
    let view = ReportLunsCdb::read_from_bytes(cdb).expect("the table gives REPORT LUNS twelve bytes");
    let list = match view.select_report {
        // all but well-known ones; all
        0x00 | 0x02 => luns(),
        // well-known ones: none is listed
        0x01 => Vec::new(),
        _ => return Err(Fault::cdb(2)),
    };
    Ok((emit_luns(&list), view.allocation_length.get() as usize))
}

fn view(call: &Call<'_>) -> MaintenanceInCdb {
    MaintenanceInCdb::read_from_bytes(call.cdb).expect("the table gives MAINTENANCE IN twelve bytes")
}

/// SPC-4 §6.35.
pub(crate) fn supported_operation_codes(call: &mut Call<'_>) -> Result<Step, Fault> {
    const RCTD: u8 = 0x80;
    let view = view(call);
    let thin = call.unit.geometry.thin;
    // no figure for any command: hosts keep their own timeouts
    let recommended_s = (view.options & RCTD != 0).then_some(0);
    let wanted = view.requested_service_action.get();
    let with_actions = table::rows_of(view.requested_opcode).any(|row| row.service_action.is_some());
    let data = match view.options & 0x07 {
        0 => {
            let rows: Vec<CommandRow> =
                ROWS.iter().filter(|row| row.is_available(thin)).map(command_row).collect();
            emit_commands(&rows, recommended_s)
        }
        // an opcode without service actions
        1 if with_actions => return Err(Fault::cdb_bit(2, 2)),
        1 => one(view.requested_opcode, 0, thin, recommended_s),
        // an opcode with service actions
        2 if !with_actions && table::rows_of(view.requested_opcode).next().is_some() => {
            return Err(Fault::cdb_bit(2, 2));
        }
        2 => one(view.requested_opcode, wanted, thin, recommended_s),
        // either; without service actions only "0" exists
        3 if !with_actions && wanted != 0 => emit_command(None, recommended_s),
        3 => one(view.requested_opcode, wanted, thin, recommended_s),
        _ => return Err(Fault::cdb_bit(2, 2)),
    };
    call.parameters(data, view.allocation_length.get() as usize)
}

fn one(opcode: u8, service_action: u16, thin: bool, recommended_s: Option<u32>) -> Vec<u8> {
    let row = u8::try_from(service_action).ok().and_then(|action| table::find(opcode, action, thin));
    emit_command(row.map(|row| row.usage), recommended_s)
}

fn command_row(row: &Row) -> CommandRow {
    CommandRow {
        opcode: row.opcode,
        service_action: row.service_action.map(u16::from),
        cdb_bytes: row.cdb_bytes() as u16,
    }
}

/// SPC-4 §6.36.
pub(crate) fn supported_task_management_functions(call: &mut Call<'_>) -> Result<Step, Fault> {
    const REPD: u8 = 0x80;
    let view = view(call);
    let allocation_bytes = view.allocation_length.get() as usize;
    if allocation_bytes < 4 {
        return Err(Fault::cdb(6));
    }
    let mut data = task_management_functions().to_vec();
    if view.options & REPD != 0 {
        // extended parameter data: TMF timeouts, all "no figure" (SPC-4 table 299)
        data[3] = 0x0C;
        data.extend_from_slice(&[0; 12]);
    }
    call.parameters(data, allocation_bytes)
}

/// SPC-4 §6.38, §5.17.
pub(crate) fn timestamp(call: &mut Call<'_>) -> Result<Step, Fault> {
    let view = view(call);
    // the array's wall clock: "initialized by methods outside the scope of this standard"
    const ORIGIN: u8 = 0x03;
    let clock = (call.clock)().to_be_bytes();
    let data = [&[0, 10, ORIGIN, 0], &clock[2..], &[0, 0]].concat();
    call.parameters(data, view.allocation_length.get() as usize)
}
