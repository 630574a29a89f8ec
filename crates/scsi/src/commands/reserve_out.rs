//! Converts the parameters of PERSISTENT RESERVE OUT (SPC-4 §6.16) into a request.

use base::limits::RESERVE_OUT_BYTES_MAX;
use reservation::{Names, Registrant, ReservationRequest, ReservationType, Specified};
use wire::scsi::reservation::{MoveList, RESERVE_OUT_BYTES, ReserveOutList, TransportId};

use crate::call::Call;
use crate::fault::Fault;

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;
const REGISTER_AND_MOVE: u8 = 7;

/// The request of a PERSISTENT RESERVE OUT.
pub(crate) fn parse(call: &mut Call<'_>) -> Result<ReservationRequest, Fault> {
    let action = call.cdb[1] & 0x1F;
    let length = u32::from_be_bytes([call.cdb[5], call.cdb[6], call.cdb[7], call.cdb[8]]) as usize;
    if !(RESERVE_OUT_BYTES..=RESERVE_OUT_BYTES_MAX).contains(&length) {
        return Err(Fault::ParameterListLength);
    }
    let list = call.take_data_out(length)?.to_vec();
    if action == REGISTER_AND_MOVE {
        return parse_move(call, &list);
    }
    let parameters = ReserveOutList::parse(&list).ok_or(Fault::ParameterListLength)?;
    let specified = parameters.specify_initiator_ports && matches!(action, REGISTER | REGISTER_AND_IGNORE);
    if !specified && length != RESERVE_OUT_BYTES {
        return Err(Fault::ParameterListLength);
    }
    let (key, new_key) = (parameters.key, parameters.service_action_key);
    Ok(match action {
        REGISTER | REGISTER_AND_IGNORE => {
            check_persist(call, parameters.persist, 20)?;
            let names = Names {
                specified: specified.then(|| specified_ports(action, &list)).transpose()?,
                all_ports: parameters.all_target_ports.then(|| ports(call)),
            };
            let key = (action == REGISTER).then_some(key);
            ReservationRequest::Register { key, new_key, names, persist: parameters.persist }
        }
        RESERVE => ReservationRequest::Reserve { key, kind: kind(call)? },
        RELEASE => ReservationRequest::Release { key, kind: kind(call)? },
        CLEAR => ReservationRequest::Clear { key },
        PREEMPT | PREEMPT_AND_ABORT => ReservationRequest::Preempt {
            key,
            victim: new_key,
            kind: kind(call)?,
            abort: action == PREEMPT_AND_ABORT,
        },
        _ => return Err(Fault::cdb_bit(1, 4)),
    })
}

fn ports(call: &Call<'_>) -> Vec<u16> {
    call.unit.target.ports.iter().map(|port| port.relative_id).collect()
}

/// Scope and type: the logical unit, and one that exists.
fn kind(call: &Call<'_>) -> Result<ReservationType, Fault> {
    if call.cdb[2] >> 4 != 0 {
        return Err(Fault::cdb_bit(2, 7));
    }
    ReservationType::from_number(call.cdb[2] & 0x0F).ok_or(Fault::cdb_bit(2, 3))
}

/// APTPL where nothing is there to keep it: refused (SPC-4 §5.13.5).
fn check_persist(call: &Call<'_>, persist: bool, byte: u16) -> Result<(), Fault> {
    if persist && !call.unit.keeps_reservations {
        return Err(Fault::FieldInParameters { byte, bit: Some(0) });
    }
    Ok(())
}

fn specified_ports(action: u8, list: &[u8]) -> Result<Vec<Specified>, Fault> {
    if action == REGISTER_AND_IGNORE {
        return Err(Fault::FieldInParameters { byte: 20, bit: Some(3) });
    }
    if list.len() < RESERVE_OUT_BYTES + 4 {
        return Err(Fault::ParameterListLength);
    }
    let wrong = Fault::FieldInParameters { byte: RESERVE_OUT_BYTES as u16, bit: None };
    let ids = ReserveOutList::transport_ids(list).ok_or(wrong)?;
    let specified = |id| match id {
        TransportId::Port(name) => Specified::Port(name),
        TransportId::Device(name) => Specified::Device(name),
    };
    Ok(ids.into_iter().map(specified).collect())
}

fn parse_move(call: &Call<'_>, list: &[u8]) -> Result<ReservationRequest, Fault> {
    let wrong = |byte| Fault::FieldInParameters { byte, bit: None };
    let parameters = MoveList::parse(list).ok_or(Fault::ParameterListLength)?;
    check_persist(call, parameters.persist, 17)?;
    if parameters.service_action_key == 0 {
        return Err(wrong(8));
    }
    let port = parameters.relative_port;
    if call.unit.target.group_of(port).is_none() {
        return Err(wrong(18));
    }
    // an initiator device without a port cannot hold anything
    let Some(TransportId::Port(initiator)) = parameters.transport_id else { return Err(wrong(24)) };
    let to = Registrant::nexus(initiator, port);
    if to == *call.nexus.name() {
        return Err(wrong(24));
    }
    Ok(ReservationRequest::Move {
        key: parameters.key,
        new_key: parameters.service_action_key,
        to,
        unregister: parameters.unregister,
        persist: parameters.persist,
    })
}
