//! Logical unit numbers (SAM-5 §4.7): eight bytes, of which we use one level.
//!
//! ```text
//!   byte 0            byte 1        bytes 2-7
//!   00bbbbbb          number        0          peripheral device addressing, bus 0: LUN 0-255
//!   01nnnnnn          nnnnnnnn      0          flat space addressing: LUN 0-16383
//!   C1                01            0          the REPORT LUNS well-known logical unit
//! ```
//! LUNs up to 255 are emitted in the peripheral form, greater ones in the flat form, as Linux and ESXi
//! expect. The parser accepts both forms for every number.

use std::fmt;

use base::limits::LUN_MAX;

const REPORT_LUNS: u64 = 0xC101 << 48;

/// A logical unit number of at most [`LUN_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lun(u16);

/// Why eight bytes name no logical unit of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LunError {
    /// The REPORT LUNS well-known logical unit (SAM-5 §4.7.7.5.1): not a disk, but it answers.
    WellKnownReportLuns,
    /// Another addressing method, another bus, a second level.
    Unsupported,
}

impl Lun {
    /// `None` above [`LUN_MAX`].
    pub const fn new(number: u16) -> Option<Lun> {
        if number <= LUN_MAX { Some(Lun(number)) } else { None }
    }

    pub const fn number(self) -> u16 {
        self.0
    }

    /// Understands the eight bytes of a LUN field, as a big-endian integer.
    pub const fn parse(field: u64) -> Result<Lun, LunError> {
        if field == REPORT_LUNS {
            return Err(LunError::WellKnownReportLuns);
        }
        if field << 16 != 0 {
            return Err(LunError::Unsupported);
        }
        let first = (field >> 48) as u16;
        match first >> 14 {
            0b00 if first <= 0xFF => Ok(Lun(first)),
            0b01 => Ok(Lun(first & 0x3FFF)),
            _ => Err(LunError::Unsupported),
        }
    }

    /// The inverse of [`Lun::parse`].
    pub const fn emit(self) -> u64 {
        let first = if self.0 <= 0xFF { self.0 } else { 0x4000 | self.0 };
        (first as u64) << 48
    }
}

impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

const _: () = assert!(LUN_MAX == 0x3FFF);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let emit = |number| Lun::new(number).unwrap().emit().to_be_bytes();
        assert_eq!(emit(0), [0; 8]);
        assert_eq!(emit(5), [0, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!(emit(255), [0, 255, 0, 0, 0, 0, 0, 0]);
        assert_eq!(emit(256), [0x41, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(emit(16383), [0x7F, 0xFF, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Lun::new(16384), None);
    }

    #[test]
    fn refuses_what_is_not_a_single_level_lun() {
        let parse = |bytes: [u8; 8]| Lun::parse(u64::from_be_bytes(bytes));
        assert_eq!(parse([0x40, 5, 0, 0, 0, 0, 0, 0]), Ok(Lun(5)), "flat form of a small number");
        assert_eq!(parse([0xC1, 1, 0, 0, 0, 0, 0, 0]), Err(LunError::WellKnownReportLuns));
        assert_eq!(parse([0xC1, 2, 0, 0, 0, 0, 0, 0]), Err(LunError::Unsupported));
        assert_eq!(parse([0x01, 5, 0, 0, 0, 0, 0, 0]), Err(LunError::Unsupported), "bus 1");
        assert_eq!(parse([0x80, 5, 0, 0, 0, 0, 0, 0]), Err(LunError::Unsupported), "logical unit method");
        assert_eq!(parse([0, 5, 0, 1, 0, 0, 0, 0]), Err(LunError::Unsupported), "second level");
        assert_eq!(parse([0, 5, 0, 0, 0, 0, 0, 1]), Err(LunError::Unsupported));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(number in 0..=LUN_MAX) {
            let lun = Lun::new(number).unwrap();
            prop_assert_eq!(Lun::parse(lun.emit()), Ok(lun));
        }

        #[test]
        fn whatever_parses_is_in_range(field: u64) {
            if let Ok(lun) = Lun::parse(field) {
                prop_assert!(lun.number() <= LUN_MAX);
            }
        }
    }
}
