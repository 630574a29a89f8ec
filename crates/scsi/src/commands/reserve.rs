//! Reservations: PERSISTENT RESERVE IN (SPC-4 §6.15) and OUT (§6.16), RESERVE and RELEASE (SPC-2 §7.16-§7.22).
//!
//! Requests that change reservations go to their owner. Queries are answered from the state that this nexus received
//! last.

use reservation::{Registration, ReservationRequest};
use wire::scsi::reservation::{
    FullStatus, ReservationType, TransportId, emit_capabilities, emit_full_status, emit_keys,
    emit_reservation,
};

use super::reserve_out;
use crate::call::Call;
use crate::fault::Fault;
use crate::response::{Continuation, Pending, Step};

fn ask(call: &Call<'_>, request: ReservationRequest) -> Result<Step, Fault> {
    let data_out_bytes = call.data_out_bytes.unwrap_or(0);
    Ok(Step::Reserve(request, Continuation { data_out_bytes, pending: Pending::Reserve }))
}

pub(crate) fn persistent_out(call: &mut Call<'_>) -> Result<Step, Fault> {
    let request = reserve_out::parse(call)?;
    ask(call, request)
}

pub(crate) fn reserve(call: &mut Call<'_>) -> Result<Step, Fault> {
    ask(call, ReservationRequest::ReserveUnit)
}

pub(crate) fn release(call: &mut Call<'_>) -> Result<Step, Fault> {
    ask(call, ReservationRequest::ReleaseUnit)
}

/// The type's code on the wire.
fn code(kind: reservation::ReservationType) -> ReservationType {
    ReservationType::from_code(kind.number()).expect("the numbers are the codes of SPC-4")
}

fn answer(call: &Call<'_>, data: Vec<u8>) -> Result<Step, Fault> {
    call.parameters(data, usize::from(u16::from_be_bytes([call.cdb[7], call.cdb[8]])))
}

pub(crate) fn read_keys(call: &mut Call<'_>) -> Result<Step, Fault> {
    let reservations = call.nexus.reservations();
    let keys: Vec<u64> = reservations.registrations().iter().map(|one| one.key).collect();
    answer(call, emit_keys(reservations.generation(), &keys))
}

pub(crate) fn read_reservation(call: &mut Call<'_>) -> Result<Step, Fault> {
    let reservations = call.nexus.reservations();
    let held = reservations.held_key().map(|(key, kind)| (key, code(kind)));
    answer(call, emit_reservation(reservations.generation(), held))
}

pub(crate) fn report_capabilities(call: &mut Call<'_>) -> Result<Step, Fault> {
    let persists = call.nexus.reservations().persists();
    answer(call, emit_capabilities(call.unit.keeps_reservations, persists).to_vec())
}

pub(crate) fn read_full_status(call: &mut Call<'_>) -> Result<Step, Fault> {
    let reservations = call.nexus.reservations();
    let row = |one: &Registration| {
        let holds =
            |held: &&reservation::Held| held.holder.as_ref().is_none_or(|holder| *holder == one.registrant);
        // an NVMe host has no TransportID; READ KEYS has its key
        let nexus = one.registrant.as_nexus()?;
        Some(FullStatus {
            key: one.key,
            holds: reservations.held().filter(holds).map(|held| code(held.kind)),
            relative_port: nexus.port,
            transport_id: TransportId::Port(nexus.initiator.to_string()),
        })
    };
    let rows: Vec<FullStatus> = reservations.registrations().iter().filter_map(row).collect();
    answer(call, emit_full_status(reservations.generation(), &rows))
}
