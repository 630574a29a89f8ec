//! Requests: PERSISTENT RESERVE OUT (SPC-4 §6.16), RESERVE and RELEASE, and the end of a nexus.

use super::{Registrant, ReservationType};

/// One request, from one registrant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReservationRequest {
    /// REGISTER, or REGISTER AND IGNORE EXISTING KEY, where no key is given.
    Register {
        key: Option<u64>,
        new_key: u64,
        names: Names,
        persist: bool,
    },
    Reserve {
        key: u64,
        kind: ReservationType,
    },
    Release {
        key: u64,
        kind: ReservationType,
    },
    Clear {
        key: u64,
    },
    /// PREEMPT, or PREEMPT AND ABORT.
    Preempt {
        key: u64,
        victim: u64,
        kind: ReservationType,
        abort: bool,
    },
    /// REGISTER AND MOVE.
    Move {
        key: u64,
        new_key: u64,
        to: Registrant,
        unregister: bool,
        persist: bool,
    },
    /// RESERVE (6) or (10).
    ReserveUnit,
    /// RELEASE (6) or (10).
    ReleaseUnit,
    /// The nexus is lost, or the logical unit was reset: what RESERVE has reserved is free again.
    NexusLost,
    UnitReset,
}

/// Which registrants a REGISTER is for, beside the one that it came from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// SPEC_I_PT: these initiator ports, too.
    pub specified: Option<Vec<Specified>>,
    /// ALL_TG_PT: all of these target ports; otherwise the one that the request came through.
    pub all_ports: Option<Vec<u16>>,
}

/// Initiator ports that a REGISTER names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Specified {
    /// The initiator port of this name, as in [`NexusName::initiator`](super::NexusName::initiator).
    Port(String),
    /// Every port that is logged in of the initiator of this name.
    Device(String),
}
