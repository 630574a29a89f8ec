//! Sense data, fixed and descriptor format (SPC-4 §4.5).
//!
//! ```text
//!   fixed (18 bytes)                            descriptor (8 bytes and descriptors)
//!   0     VALID | response code 70h, 71h         0     response code 72h, 73h
//!   2     sense key                              1     sense key
//!   3-6   information                            2, 3  ASC, ASCQ
//!   7     additional length 10                   7     additional length
//!   12,13 ASC, ASCQ                              8..   00h information (12 bytes), 02h key-specific (8 bytes)
//!   15-17 SKSV and sense key specific
//! ```
//! In the fixed format, information that needs more than four bytes is omitted (SPC-4 §4.5.3).

use bytes::Bytes;

use super::sense_code::{SenseCode, SenseKey};

/// Points at a field that was wrong (SPC-4 §4.5.2.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldPointer {
    /// In the CDB; otherwise in the parameter data.
    pub in_cdb: bool,
    /// The field's first byte.
    pub byte: u16,
    /// The field's most significant bit, where it is narrower than a byte.
    pub bit: Option<u8>,
}

impl FieldPointer {
    fn emit(self) -> [u8; 3] {
        let bits = self.bit.map_or(0, |bit| 0x08 | (bit & 7));
        let byte = self.byte.to_be_bytes();
        [0x80 | if self.in_cdb { 0x40 } else { 0 } | bits, byte[0], byte[1]]
    }

    fn parse(field: [u8; 3]) -> FieldPointer {
        let bit = (field[0] & 0x08 != 0).then_some(field[0] & 7);
        FieldPointer { in_cdb: field[0] & 0x40 != 0, byte: u16::from_be_bytes([field[1], field[2]]), bit }
    }
}

/// Which of the two formats an initiator wants (D_SENSE of the control mode page).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SenseFormat {
    #[default]
    Fixed,
    Descriptor,
}

/// Why a command did not end well, or what state the logical unit is in. Always about the current command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    pub key: SenseKey,
    pub code: SenseCode,
    /// What it means depends on the code: an LBA, an offset.
    pub information: Option<u64>,
    /// With ILLEGAL REQUEST only.
    pub field: Option<FieldPointer>,
}

const INFORMATION_DESCRIPTOR: u8 = 0x00;
const KEY_SPECIFIC_DESCRIPTOR: u8 = 0x02;

impl Sense {
    pub const fn new(key: SenseKey, code: SenseCode) -> Sense {
        Sense { key, code, information: None, field: None }
    }

    pub const NONE: Sense = Sense::new(SenseKey::NoSense, SenseCode::NoAdditionalSense);

    pub fn emit(&self, format: SenseFormat) -> Bytes {
        match format {
            SenseFormat::Fixed => self.emit_fixed(),
            SenseFormat::Descriptor => self.emit_descriptor(),
        }
    }

    fn emit_fixed(&self) -> Bytes {
        let mut out = [0u8; 18];
        out[0] = 0x70;
        out[2] = self.key.code();
        if let Some(information) = self.information.and_then(|value| u32::try_from(value).ok()) {
            out[0] |= 0x80;
            out[3..7].copy_from_slice(&information.to_be_bytes());
        }
        out[7] = 10;
        out[12] = self.code.additional_sense_code();
        out[13] = self.code.qualifier();
        if let Some(field) = self.field {
            out[15..18].copy_from_slice(&field.emit());
        }
        Bytes::copy_from_slice(&out)
    }

    fn emit_descriptor(&self) -> Bytes {
        let mut out =
            vec![0x72, self.key.code(), self.code.additional_sense_code(), self.code.qualifier(), 0, 0, 0, 0];
        if let Some(information) = self.information {
            out.extend_from_slice(&[INFORMATION_DESCRIPTOR, 0x0A, 0x80, 0]);
            out.extend_from_slice(&information.to_be_bytes());
        }
        if let Some(field) = self.field {
            out.extend_from_slice(&[KEY_SPECIFIC_DESCRIPTOR, 0x06, 0, 0]);
            out.extend_from_slice(&field.emit());
            out.push(0);
        }
        out[7] = (out.len() - 8) as u8;
        out.into()
    }

    /// Reads sense data about the current command in either format. `None` where it is cut short, about an
    /// earlier command, or has a code that we do not know.
    pub fn parse(bytes: &[u8]) -> Option<(Sense, SenseFormat)> {
        match bytes.first()? & 0x7F {
            0x70 => Sense::parse_fixed(bytes).map(|sense| (sense, SenseFormat::Fixed)),
            0x72 => Sense::parse_descriptor(bytes).map(|sense| (sense, SenseFormat::Descriptor)),
            _ => None,
        }
    }

    fn parse_fixed(bytes: &[u8]) -> Option<Sense> {
        let bytes: &[u8; 18] = bytes.first_chunk()?;
        let key = SenseKey::from_code(bytes[2] & 0x0F)?;
        let code = SenseCode::from_codes(bytes[12], bytes[13])?;
        let information = u32::from_be_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
        let information = (bytes[0] & 0x80 != 0).then_some(u64::from(information));
        let field = (bytes[15] & 0x80 != 0).then(|| FieldPointer::parse([bytes[15], bytes[16], bytes[17]]));
        Some(Sense { key, code, information, field })
    }

    fn parse_descriptor(bytes: &[u8]) -> Option<Sense> {
        let (header, rest) = bytes.split_first_chunk::<8>()?;
        let mut rest = rest.get(..usize::from(header[7]))?;
        let key = SenseKey::from_code(header[1] & 0x0F)?;
        let mut sense = Sense::new(key, SenseCode::from_codes(header[2], header[3])?);
        while let Some((&[kind, length], after)) = rest.split_first_chunk::<2>() {
            let (body, next) = after.split_at_checked(usize::from(length))?;
            match (kind, body) {
                (INFORMATION_DESCRIPTOR, [valid, _, value @ ..]) if valid & 0x80 != 0 => {
                    sense.information = value.first_chunk().copied().map(u64::from_be_bytes);
                }
                (KEY_SPECIFIC_DESCRIPTOR, [_, _, valid, high, low, ..]) if valid & 0x80 != 0 => {
                    sense.field = Some(FieldPointer::parse([*valid, *high, *low]));
                }
                _ => {}
            }
            rest = next;
        }
        Some(sense)
    }
}

impl std::fmt::Display for Sense {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.key, self.code.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_fixed() {
        let mut sense = Sense::new(SenseKey::MediumError, SenseCode::UnrecoveredReadError);
        sense.information = Some(0x0102_0304);
        let bytes = sense.emit(SenseFormat::Fixed);
        assert_eq!(bytes[..], [0xF0, 0, 3, 1, 2, 3, 4, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0]);
        sense.information = Some(1 << 32);
        assert_eq!(sense.emit(SenseFormat::Fixed)[..7], [0x70, 0, 3, 0, 0, 0, 0], "does not fit");
    }

    #[test]
    fn golden_descriptor() {
        let mut sense = Sense::new(SenseKey::IllegalRequest, SenseCode::InvalidFieldInCdb);
        sense.information = Some(0x0102_0304_0506_0708);
        sense.field = Some(FieldPointer { in_cdb: true, byte: 2, bit: Some(5) });
        let bytes = sense.emit(SenseFormat::Descriptor);
        let header = [0x72, 5, 0x24, 0, 0, 0, 0, 20];
        let information = [0, 0x0A, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let field = [2, 6, 0, 0, 0xCD, 0, 2, 0];
        assert_eq!(bytes[..], [&header[..], &information, &field].concat());
    }

    fn any_sense() -> impl Strategy<Value = Sense> {
        let field = (any::<bool>(), any::<u16>(), proptest::option::of(0u8..8));
        let field = field.prop_map(|(in_cdb, byte, bit)| FieldPointer { in_cdb, byte, bit });
        (
            proptest::sample::select(&SenseKey::ALL[..]),
            proptest::sample::select(SenseCode::ALL),
            proptest::option::of(any::<u32>().prop_map(u64::from)),
            proptest::option::of(field),
        )
            .prop_map(|(key, code, information, field)| Sense { key, code, information, field })
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(sense in any_sense(), wide in proptest::option::of(any::<u64>())) {
            let parsed = Sense::parse(&sense.emit(SenseFormat::Fixed));
            prop_assert_eq!(parsed, Some((sense, SenseFormat::Fixed)));
            let sense = Sense { information: wide, ..sense };
            let parsed = Sense::parse(&sense.emit(SenseFormat::Descriptor));
            prop_assert_eq!(parsed, Some((sense, SenseFormat::Descriptor)));
        }

        #[test]
        fn any_bytes_are_read_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), code in 0x70u8..0x74) {
            let _ = Sense::parse(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = code;
            }
            let _ = Sense::parse(&bytes);
        }
    }
}
