//! Answers that are no errors: the command is sent again, as every initiator does.
//!
//! A UNIT ATTENTION (SAM-5 §5.14) reports an event once, and the command that got it was not executed. BUSY and
//! TASK SET FULL (SAM-5 §5.3.1) ask the initiator to wait. Each is counted by name; the number of retries is limited.

use std::collections::BTreeMap;
use std::fmt;

use base::Nanos;
use wire::scsi::{SenseCode, SenseKey, Status};

/// How often a command is sent again: with the pauses that BUSY takes, for half a minute.
const TRIES_MAX: u32 = 128;
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Pauses double until they are `PAUSE_MIN` times two to this.
const DOUBLINGS_MAX: u32 = 8;

/// How often commands were sent again, by why.
pub type Retried = BTreeMap<String, u64>;

/// Why a command is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    /// Additional sense code and qualifier.
    UnitAttention(u8, u8),
    Busy,
    TaskSetFull,
}

impl Met {
    /// None: it is an error. `sense` is in either format, without its length.
    pub fn of(status: u8, sense: &[u8]) -> Option<Met> {
        match Status::from_code(status)? {
            Status::Busy => Some(Met::Busy),
            Status::TaskSetFull => Some(Met::TaskSetFull),
            Status::CheckCondition => {
                let (_, asc, ascq) = key_and_codes(sense)?;
                (sense_key(sense)? == SenseKey::UnitAttention).then_some(Met::UnitAttention(asc, ascq))
            }
            _ => None,
        }
    }

    /// How long to wait before a command is sent again that has been so often before; None: never again.
    pub fn pause(self, tries: u32) -> Option<Nanos> {
        let pause = match self {
            Met::UnitAttention(..) => Nanos(0),
            Met::Busy | Met::TaskSetFull => Nanos(PAUSE_MIN.0 << tries.min(DOUBLINGS_MAX)),
        };
        (tries < TRIES_MAX).then_some(pause)
    }

    pub fn count(self, retried: &mut Retried) {
        *retried.entry(self.to_string()).or_default() += 1;
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Met::UnitAttention(asc, ascq) => {
                write!(f, "UNIT ATTENTION {}", named(asc, ascq))
            }
            Met::Busy => f.write_str("BUSY"),
            Met::TaskSetFull => f.write_str("TASK SET FULL"),
        }
    }
}

/// Sense key, additional sense code and qualifier; of fixed or descriptor format (SPC-4 §4.5).
fn key_and_codes(sense: &[u8]) -> Option<(u8, u8, u8)> {
    let (key, codes) = match sense.first()? & 0x7f {
        0x70 => (*sense.get(2)?, sense.get(12..14)),
        0x72 => (*sense.get(1)?, sense.get(2..4)),
        _ => return None,
    };
    let codes = codes.unwrap_or(&[0, 0]);
    Some((key & 0x0f, codes[0], codes[1]))
}

/// The class of an error, where the sense data tells it.
pub fn sense_key(sense: &[u8]) -> Option<SenseKey> {
    key_and_codes(sense).and_then(|(key, ..)| SenseKey::from_code(key))
}

/// Both numbers, and the name that the standard has for them.
fn named(asc: u8, ascq: u8) -> String {
    let name = SenseCode::from_codes(asc, ascq).map(|code| format!(" {}", code.name())).unwrap_or_default();
    format!("{asc:02x}h/{ascq:02x}h{name}")
}

/// Of a command that ended with something else than GOOD.
pub fn failure(status: u8, sense: &[u8]) -> String {
    let told = match key_and_codes(sense) {
        Some((key, asc, ascq)) => format!("sense key {key:x}h, {}", named(asc, ascq)),
        None => format!("sense {sense:02x?}"),
    };
    format!("a command ended with status {status:02x}h, {told}")
}

/// Adds what another has met.
pub fn add(retried: &mut Retried, other: &Retried) {
    other.iter().for_each(|(met, times)| *retried.entry(met.clone()).or_default() += times);
}

/// A line for people; empty where nothing was met.
pub fn told(retried: &Retried) -> String {
    let each: Vec<String> = retried.iter().map(|(met, times)| format!("{times} x {met}")).collect();
    if each.is_empty() { String::new() } else { format!("sent again: {}\n", each.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::scsi::{Sense, SenseFormat};

    #[test]
    fn what_is_worth_another_try_is_told_from_errors_in_both_formats() {
        for format in [SenseFormat::Fixed, SenseFormat::Descriptor] {
            let sense = |key, code| Sense::new(key, code).emit(format);
            let attention = sense(SenseKey::UnitAttention, SenseCode::ThinProvisioningThreshold);
            let met = Met::of(0x02, &attention).expect("worth another try");
            assert_eq!(met, Met::UnitAttention(0x38, 0x07));
            let text = "UNIT ATTENTION 38h/07h THIN PROVISIONING SOFT THRESHOLD REACHED";
            assert_eq!(met.to_string(), text);
            assert_eq!(Met::of(0x02, &sense(SenseKey::MediumError, SenseCode::UnrecoveredReadError)), None);
        }
        assert_eq!(
            [0x08, 0x28].map(|status| Met::of(status, &[])),
            [Some(Met::Busy), Some(Met::TaskSetFull)]
        );
        // reservation conflict, task aborted, no such status, no sense data, too little of it
        assert_eq!([0x18, 0x40, 0x77, 0x02].map(|status| Met::of(status, &[])), [None; 4]);
        assert_eq!(Met::of(0x02, &[0x70, 0]), None);
        assert_eq!(Met::UnitAttention(0xfe, 0xdc).to_string(), "UNIT ATTENTION feh/dch", "another vendor's");
    }

    #[test]
    fn an_error_is_told_by_its_names() {
        let sense = Sense::new(SenseKey::DataProtect, SenseCode::ThinProvisioningThreshold);
        let text =
            "a command ended with status 02h, sense key 7h, 38h/07h THIN PROVISIONING SOFT THRESHOLD REACHED";
        assert_eq!(failure(0x02, &sense.emit(SenseFormat::Fixed)), text);
        assert_eq!(failure(0x18, &[]), "a command ended with status 18h, sense []");
    }

    #[test]
    fn patience_has_an_end() {
        let all = |met: Met| (0..TRIES_MAX).map(|tries| met.pause(tries).expect("again").0).sum::<u64>();
        assert_eq!(all(Met::UnitAttention(0x29, 0)), 0);
        let seconds = all(Met::Busy) / 1_000_000_000;
        assert!((20..40).contains(&seconds), "{seconds}");
        assert_eq!((Met::Busy.pause(TRIES_MAX), Met::UnitAttention(0x29, 0).pause(TRIES_MAX)), (None, None));
    }

    #[test]
    fn counts_add_up() {
        let (mut one, mut other) = (Retried::new(), Retried::new());
        Met::Busy.count(&mut one);
        Met::Busy.count(&mut other);
        Met::TaskSetFull.count(&mut other);
        add(&mut one, &other);
        assert_eq!(told(&one), "sent again: 2 x BUSY, 1 x TASK SET FULL\n");
        assert_eq!(told(&Retried::new()), "");
    }
}
