//! Builders for rows of the opcode table: the common case, and the differences from it.

use crate::commands::reserve;
use crate::table::AluaClass::{self, Active, ActiveOrStandby};
use crate::table::AttentionRule::{self, Reports};
use crate::table::Availability::{self, Always};
use crate::table::Direction::{self, In, Out};
use crate::table::Medium::{self, Untouched, Written};
use crate::table::ReadOnlyRule::{self, Harmless};
use crate::table::ReservationClass::{self, Allowed};
use crate::table::Row;

pub(crate) type Handler =
    fn(&mut crate::call::Call<'_>) -> Result<crate::response::Step, crate::fault::Fault>;

/// A command with the most common properties; the builders below change them.
pub(crate) const fn row(
    opcode: u8,
    name: &'static str,
    reference: &'static str,
    usage: &'static [u8],
    handler: Handler,
) -> Row {
    Row {
        opcode,
        service_action: None,
        name,
        reference,
        usage,
        direction: Direction::None,
        reservation: Allowed,
        alua: Active,
        attention: Reports,
        medium: Untouched,
        read_only: Harmless,
        availability: Always,
        handler,
    }
}

/// Usage masks of PERSISTENT RESERVE IN and OUT, by service action.
static RESERVE_IN: [[u8; 10]; 4] = {
    let mut usage = [[0x5E, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0]; 4];
    let mut action = 0;
    while action < usage.len() {
        usage[action][1] = action as u8;
        action += 1;
    }
    usage
};
static RESERVE_OUT: [[u8; 10]; 8] = {
    let mut usage = [[0x5F, 0, 0xFF, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0]; 8];
    let mut action = 0;
    while action < usage.len() {
        usage[action][1] = action as u8;
        action += 1;
    }
    usage
};

pub(crate) const fn reserve_in(
    action: u8,
    name: &'static str,
    reference: &'static str,
    handler: Handler,
) -> Row {
    row(0x5E, name, reference, &RESERVE_IN[action as usize], handler)
        .service_action(action)
        .data(In)
        .alua(ActiveOrStandby)
}

pub(crate) const fn reserve_out(action: u8, name: &'static str) -> Row {
    row(0x5F, name, "SPC-4 §6.16", &RESERVE_OUT[action as usize], reserve::persistent_out)
        .service_action(action)
        .data(Out)
        .reserved(ReservationClass::Own)
        .alua(ActiveOrStandby)
        .read_only(ReadOnlyRule::Others)
}

impl Row {
    pub(crate) const fn service_action(self, service_action: u8) -> Row {
        Row { service_action: Some(service_action), ..self }
    }

    pub(crate) const fn data(self, direction: Direction) -> Row {
        Row { direction, ..self }
    }

    pub(crate) const fn reserved(self, reservation: ReservationClass) -> Row {
        Row { reservation, ..self }
    }

    pub(crate) const fn alua(self, alua: AluaClass) -> Row {
        Row { alua, ..self }
    }

    pub(crate) const fn attention(self, attention: AttentionRule) -> Row {
        Row { attention, ..self }
    }

    pub(crate) const fn only(self, availability: Availability) -> Row {
        Row { availability, ..self }
    }

    pub(crate) const fn read_only(self, read_only: ReadOnlyRule) -> Row {
        Row { read_only, ..self }
    }

    pub(crate) const fn medium(self, medium: Medium) -> Row {
        Row { medium, ..self }
    }

    /// Reads the medium.
    pub(crate) const fn reads(self) -> Row {
        self.data(In).reserved(ReservationClass::Read)
    }

    /// Changes the medium.
    pub(crate) const fn writes(self) -> Row {
        self.data(Out).reserved(ReservationClass::Write).medium(Written).read_only(ReadOnlyRule::Writes)
    }
}
