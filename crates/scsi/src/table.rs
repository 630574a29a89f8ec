//! The columns of the opcode table, and the checks that follow from them.
//!
//! The rows are in `rows.rs`. Validation of CDBs, REPORT SUPPORTED OPERATION CODES and docs/scsi-commands.md all
//! use them. A command exists if and only if it has a row.

use reservation::{AccessState, Use};

use crate::call::Call;
use crate::fault::Fault;
use crate::response::Step;
use crate::rows::ROWS;

/// Which way a command's data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    None,
    In,
    Out,
}

/// How a command fares under another nexus's reservation (SPC-4 table 66, SBC-3 table 13; for RESERVE SPC-2
/// table 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReservationClass {
    /// Never a conflict.
    Always,
    /// Looks at the reservations itself: PERSISTENT RESERVE OUT, RESERVE, RELEASE.
    Own,
    /// A conflict with RESERVE only.
    Allowed,
    /// A conflict with exclusive access.
    Read,
    /// A conflict with exclusive access and with write exclusive.
    Write,
    /// The same, but only a conflict with RESERVE where this byte of the CDB has this value under the mask.
    WriteUnless { byte: u8, mask: u8, value: u8 },
}

/// As the reservations see it. A row's own class is resolved by [`Row::reservation_of`] first.
impl From<ReservationClass> for Use {
    fn from(class: ReservationClass) -> Use {
        match class {
            ReservationClass::Always | ReservationClass::Own => Use::Exempt,
            ReservationClass::Allowed => Use::Tolerated,
            ReservationClass::Read => Use::Read,
            ReservationClass::Write | ReservationClass::WriteUnless { .. } => Use::Write,
        }
    }
}

/// In which asymmetric access states a command is served (SPC-4 §5.16.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AluaClass {
    Any,
    ActiveOrStandby,
    Active,
}

/// What a command does about pending unit attentions (SAM-5 §5.14.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttentionRule {
    /// Is not executed; reports the condition instead.
    Reports,
    /// Is executed and leaves them pending (INQUIRY), or handles them itself (REPORT LUNS, REQUEST SENSE).
    Passes,
}

/// Whether a write-protected logical unit refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    Untouched,
    Written,
}

/// Whether a nexus with a read-only mapping may execute the command. It may read. It may not change what others read
/// or may do. Each value has its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadOnlyRule {
    /// Served: it changes nothing. A flush is of this kind.
    Harmless,
    /// Served: it changes only what this nexus sees (MODE SELECT).
    Own,
    /// Served: it gives up what this nexus holds (RELEASE), as after a mapping has become read-only.
    GivesUp,
    /// Served if the mapping of its destination allows writes; the destination may be another logical unit (EXTENDED COPY).
    Destination,
    /// Refused: it writes.
    Writes,
    /// Refused: it changes what other nexuses may do. A host that may only read must not exclude hosts that write.
    Others,
}

impl ReadOnlyRule {
    pub(crate) fn is_served(self) -> bool {
        match self {
            ReadOnlyRule::Harmless
            | ReadOnlyRule::Own
            | ReadOnlyRule::GivesUp
            | ReadOnlyRule::Destination => true,
            ReadOnlyRule::Writes | ReadOnlyRule::Others => false,
        }
    }
}

/// Which logical units have the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Availability {
    Always,
    /// Thin ones.
    Thin,
}

/// One command.
pub(crate) struct Row {
    pub(crate) opcode: u8,
    /// In bits 4-0 of byte 1.
    pub(crate) service_action: Option<u8>,
    pub(crate) name: &'static str,
    /// Where the standards say what it does.
    pub(crate) reference: &'static str,
    /// The CDB usage data of REPORT SUPPORTED OPERATION CODES: the opcode, then a one for every bit that we
    /// evaluate; its length is the CDB's.
    pub(crate) usage: &'static [u8],
    pub(crate) direction: Direction,
    pub(crate) reservation: ReservationClass,
    pub(crate) alua: AluaClass,
    pub(crate) attention: AttentionRule,
    pub(crate) medium: Medium,
    pub(crate) read_only: ReadOnlyRule,
    pub(crate) availability: Availability,
    pub(crate) handler: fn(&mut Call<'_>) -> Result<Step, Fault>,
}

impl Row {
    pub(crate) fn cdb_bytes(&self) -> usize {
        self.usage.len()
    }

    pub(crate) fn is_available(&self, thin: bool) -> bool {
        match self.availability {
            Availability::Always => true,
            Availability::Thin => thin,
        }
    }

    /// Refuses a CDB with a bit that we do not evaluate, pointing at the first (SPC-4 §4.2.5.1).
    pub(crate) fn check_reserved_bits(&self, cdb: &[u8]) -> Result<(), Fault> {
        if let (Some(given), Some(usage)) = (ends(cdb), ends(self.usage))
            && given.0 & !usage.0 == 0
            && given.1 & !usage.1 == 0
        {
            return Ok(());
        }
        for (byte, (&given, &usage)) in cdb.iter().zip(self.usage).enumerate().skip(1) {
            let evaluated = if byte == 1 && self.service_action.is_some() { usage | 0x1F } else { usage };
            let wrong = given & !evaluated;
            if wrong != 0 {
                return Err(Fault::cdb_bit(byte as u16, 7 - wrong.leading_zeros() as u8));
            }
        }
        Ok(())
    }

    /// The reservation class of a command: never [`ReservationClass::WriteUnless`].
    pub(crate) fn reservation_of(&self, cdb: &[u8]) -> ReservationClass {
        match self.reservation {
            ReservationClass::WriteUnless { byte, mask, value } => {
                if cdb[usize::from(byte)] & mask == value {
                    ReservationClass::Allowed
                } else {
                    ReservationClass::Write
                }
            }
            class => class,
        }
    }

    pub(crate) fn check_alua(&self, state: AccessState) -> Result<(), Fault> {
        let fault = match state {
            AccessState::ActiveOptimized | AccessState::ActiveNonOptimized => return Ok(()),
            AccessState::Standby if self.alua == AluaClass::ActiveOrStandby => return Ok(()),
            AccessState::Standby => Fault::AluaStandby,
            AccessState::Unavailable => Fault::AluaUnavailable,
            AccessState::Transitioning => Fault::AluaTransition,
        };
        if self.alua == AluaClass::Any { Ok(()) } else { Err(fault) }
    }
}

/// The first and the last eight bytes of a CDB of 8 to 16: all of it, at once.
fn ends(cdb: &[u8]) -> Option<(u64, u64)> {
    let (first, last) = (cdb.first_chunk()?, cdb.last_chunk()?);
    (cdb.len() <= 16).then(|| (u64::from_le_bytes(*first), u64::from_le_bytes(*last)))
}

/// The command that a CDB asks for, where this kind of logical unit has it. The opcode is looked up by a
/// small index: the table is searched once per process.
pub(crate) fn find(opcode: u8, service_action: u8, thin: bool) -> Option<&'static Row> {
    let first = usize::from(INDEX[usize::from(opcode)]);
    let rows = ROWS.get(first..)?.iter().take_while(|row| row.opcode == opcode);
    let mut rows = rows.filter(|row| row.service_action.is_none_or(|wanted| wanted == service_action));
    rows.next().filter(|row| row.is_available(thin))
}

/// All rows of an opcode.
pub(crate) fn rows_of(opcode: u8) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.opcode == opcode)
}

/// For every opcode its first row, or one past the last.
static INDEX: [u8; 256] = index();

const fn index() -> [u8; 256] {
    assert!(ROWS.len() < 255);
    let mut index = [ROWS.len() as u8; 256];
    let mut row = ROWS.len();
    while row > 0 {
        row -= 1;
        index[ROWS[row].opcode as usize] = row as u8;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_complete_and_unambiguous() {
        for pair in ROWS.windows(2) {
            let key = |row: &Row| (row.opcode, row.service_action);
            assert!(key(&pair[0]) < key(&pair[1]), "{} before {}", pair[0].name, pair[1].name);
            let mixed = pair[0].opcode == pair[1].opcode && pair[0].service_action.is_none();
            assert!(!mixed, "{:02x}h with and without a service action", pair[0].opcode);
        }
        for row in ROWS {
            assert_eq!(row.usage[0], row.opcode, "{}", row.name);
            assert_eq!(wire::scsi::cdb::cdb_length(row.opcode), Some(row.cdb_bytes()), "{}", row.name);
            assert_eq!(row.usage[row.cdb_bytes() - 1], 0, "{}: NACA and the like are refused", row.name);
            if let Some(service_action) = row.service_action {
                assert_eq!(row.usage[1] & 0x1F, service_action, "{}", row.name);
            }
            if row.medium == Medium::Written {
                assert_eq!(row.reservation, ReservationClass::Write, "{}", row.name);
            }
            // a new command that takes data, or is about reservations, is not harmless unless somebody has thought so
            assert_eq!(row.medium == Medium::Written, row.read_only == ReadOnlyRule::Writes, "{}", row.name);
            let compares = row.name.starts_with("VERIFY");
            let suspicious = row.reservation == ReservationClass::Own || row.direction == Direction::Out;
            let harmless = row.read_only == ReadOnlyRule::Harmless;
            assert!(!(suspicious && harmless) || compares, "{}", row.name);
        }
    }

    #[test]
    fn every_row_is_found_and_nothing_else() {
        for opcode in 0..=255u8 {
            for service_action in 0..32u8 {
                let expected = ROWS.iter().position(|row| {
                    row.opcode == opcode && row.service_action.is_none_or(|wanted| wanted == service_action)
                });
                let found = find(opcode, service_action, true).map(|row| row as *const Row);
                assert_eq!(found, expected.map(|index| &ROWS[index] as *const Row));
            }
        }
        assert!(find(0x42, 0, false).is_none(), "UNMAP needs a thin volume");
    }
}
