//! REPORT TARGET PORT GROUPS (SPC-4 §6.37) and SET TARGET PORT GROUPS (§6.45).

use reservation::{AccessState, Cause};
use wire::scsi::cdb::MaintenanceInCdb;
use wire::scsi::port_groups::{
    PortGroupRow, PortGroupState, PortGroupStatus, SET_DESCRIPTOR_BYTES, SET_HEADER_BYTES, emit_port_groups,
    parse_set_port_groups,
};
use zerocopy::FromBytes;

use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Continuation, Pending, Step};

fn view(call: &Call<'_>) -> MaintenanceInCdb {
    MaintenanceInCdb::read_from_bytes(call.cdb).expect("the table gives MAINTENANCE IN and OUT twelve bytes")
}

/// ASYMMETRIC ACCESS STATE (SPC-4 table 307).
fn code(state: AccessState) -> PortGroupState {
    match state {
        AccessState::ActiveOptimized => PortGroupState::ActiveOptimized,
        AccessState::ActiveNonOptimized => PortGroupState::ActiveNonOptimized,
        AccessState::Standby => PortGroupState::Standby,
        AccessState::Unavailable => PortGroupState::Unavailable,
        AccessState::Transitioning => PortGroupState::Transitioning,
    }
}

/// STATUS CODE (SPC-4 table 308).
fn status(cause: Option<Cause>) -> PortGroupStatus {
    match cause {
        None => PortGroupStatus::None,
        Some(Cause::Explicit) => PortGroupStatus::Explicit,
        Some(Cause::Implicit) => PortGroupStatus::Implicit,
    }
}

/// A state that a group can be told to have: *transitioning* is none.
fn state_of(asked: u8) -> Option<AccessState> {
    let state = AccessState::ALL.into_iter().find(|&state| code(state) as u8 == asked)?;
    (state != AccessState::Transitioning).then_some(state)
}

pub(crate) fn report(call: &mut Call<'_>) -> Result<Step, Fault> {
    const EXTENDED: u8 = 0x20;
    let target = &call.unit.target;
    let states = call.nexus.access();
    let groups = target.groups();
    let row = |&group: &u16| PortGroupRow {
        group,
        state: code(states.of(group)),
        // hosts rank a preferred group above an optimized one, and would not follow the states
        preferred: false,
        status: status(states.cause(group)),
        ports: target.ports.iter().filter(|port| port.group == group).map(|port| port.relative_id).collect(),
    };
    let rows: Vec<PortGroupRow> = groups.iter().map(row).collect();
    let view = view(call);
    let data = emit_port_groups(&rows, view.service_action & EXTENDED != 0);
    call.parameters(data, view.allocation_length.get() as usize)
}

/// The states are one owner's: what is asked goes there.
pub(crate) fn set(call: &mut Call<'_>) -> Result<Step, Fault> {
    let bytes = view(call).allocation_length.get() as usize;
    let known = call.unit.target.groups();
    if bytes > SET_HEADER_BYTES + SET_DESCRIPTOR_BYTES * known.len() {
        return Err(Fault::ParameterListLength);
    }
    let list = call.take_data_out(bytes)?.to_vec();
    let wanted = parse_set_port_groups(&list).ok_or(Fault::ParameterListLength)?;
    let mut changes: Vec<(u16, AccessState)> = Vec::new();
    for (index, (group, asked)) in wanted.into_iter().enumerate() {
        let at = (SET_HEADER_BYTES + SET_DESCRIPTOR_BYTES * index) as u16;
        let state = state_of(asked).ok_or(Fault::FieldInParameters { byte: at, bit: Some(3) })?;
        if !known.contains(&group) || changes.iter().any(|(other, _)| *other == group) {
            return Err(Fault::FieldInParameters { byte: at + 2, bit: None });
        }
        changes.push((group, state));
    }
    let continuation =
        Continuation { data_out_bytes: call.data_out_bytes.unwrap_or(0), pending: Pending::Reserve };
    Ok(Step::SetAccess(changes, continuation))
}
