//! Converts reservations and access states to their form in the catalog, and back.

use catalog::{KeptAccess, KeptAccesses, KeptHold, KeptRegistrant, KeptRegistration, KeptReservations};
use reservation::{
    AccessState, AccessStates, Held, NexusName, Registrant, Registration, ReservationType, Reservations,
};

/// The form of reservations in the catalog.
pub fn reservations_to_keep(reservations: &Reservations) -> Option<KeptReservations> {
    let (registrations, held) = reservations.to_keep()?;
    let position = |name: &Registrant| {
        registrations.iter().position(|one| one.registrant == *name).expect("a holder is registered")
    };
    let held =
        held.map(|held| KeptHold { kind: held.kind.number(), holder: held.holder.as_ref().map(position) });
    let kept = |one: &Registration| {
        let registrant = match &one.registrant {
            Registrant::Nexus(NexusName { initiator, port }) => {
                KeptRegistrant::Nexus { initiator: initiator.to_string(), port: *port }
            }
            Registrant::NvmeHost(id) => KeptRegistrant::NvmeHost(*id),
        };
        KeptRegistration { registrant, key: one.key }
    };
    Some(KeptReservations { registrations: registrations.iter().map(kept).collect(), held })
}

/// The inverse, after a restart.
pub fn reservations(kept: Option<&KeptReservations>) -> Reservations {
    let Some(kept) = kept else { return Reservations::default() };
    let registration = |one: &KeptRegistration| {
        let registrant = match &one.registrant {
            KeptRegistrant::Nexus { initiator, port } => Registrant::nexus(initiator.as_str(), *port),
            KeptRegistrant::NvmeHost(id) => Registrant::NvmeHost(*id),
        };
        Registration { registrant, key: one.key }
    };
    let registrations: Vec<Registration> = kept.registrations.iter().map(registration).collect();
    let held = kept.held.map(|held| Held {
        kind: ReservationType::from_number(held.kind).expect("the catalog checks types"),
        holder: held.holder.map(|index| registrations[index].registrant.clone()),
    });
    Reservations::kept(registrations, held).expect("the catalog checks what it keeps")
}

/// The form of access states in the catalog.
pub fn access_to_keep(states: &AccessStates) -> KeptAccesses {
    let kept = |(group, state)| {
        let state = match state {
            AccessState::ActiveNonOptimized => KeptAccess::ActiveNonOptimized,
            AccessState::Standby => KeptAccess::Standby,
            AccessState::Unavailable => KeptAccess::Unavailable,
            AccessState::ActiveOptimized | AccessState::Transitioning => {
                unreachable!("not where a change ends")
            }
        };
        (group, state)
    };
    states.told().map(kept).collect()
}

/// The inverse, after a restart, for the groups that the array has.
pub fn access(kept: &KeptAccesses, known: &[u16]) -> AccessStates {
    let state = |(&group, kept): (&u16, &KeptAccess)| {
        let state = match kept {
            KeptAccess::ActiveNonOptimized => AccessState::ActiveNonOptimized,
            KeptAccess::Standby => AccessState::Standby,
            KeptAccess::Unavailable => AccessState::Unavailable,
        };
        (group, state)
    };
    AccessStates::kept(kept.iter().map(state), known)
}
