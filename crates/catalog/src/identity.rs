//! Identities by which hosts know volumes and the array: unique by construction, never changed, never reused.

use std::fmt;
use std::str::FromStr;

use base::{ArrayId, VolumeId};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;

/// The organisation part of our NAA identifiers, with the "locally administered" bit set: Tangelo has no
/// assignment of the IEEE, and must not sit on anybody else's.
const COMPANY_ID: u128 = 0x02_5447;

/// A logical unit's NAA identifier in format 6h, IEEE Registered Extended (SPC-4 §7.8.6.5.6), 16 bytes.
///
/// ```text
/// | 6h (4 bits) | company (24 bits) | array id, its upper 68 bits | volume id (32 bits) |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Naa([u8; 16]);

impl Naa {
    /// Of a volume of this array. Array ids are random and volume ids are never reused, so neither is this.
    pub fn derive(array: ArrayId, volume: VolumeId) -> Naa {
        let value = 6 << 124 | COMPANY_ID << 100 | (array.0 >> 60) << 32 | u128::from(volume.0);
        Naa(value.to_be_bytes())
    }

    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Naa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Naa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Naa({self})")
    }
}

impl FromStr for Naa {
    type Err = CatalogError;
    fn from_str(text: &str) -> Result<Naa, CatalogError> {
        let good = text.len() == 32 && text.starts_with('6') && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(value) if good => Ok(Naa(value.to_be_bytes())),
            _ => Err(CatalogError::Damaged { what: format!("\"{text}\" is not an NAA 6h identifier") }),
        }
    }
}

impl TryFrom<String> for Naa {
    type Error = CatalogError;
    fn try_from(text: String) -> Result<Naa, CatalogError> {
        text.parse()
    }
}

impl From<Naa> for String {
    fn from(naa: Naa) -> String {
        naa.to_string()
    }
}

/// The unit serial number of a volume (SPC-4 §7.8.15): 20 hexadecimal digits, the array's first 12 and the
/// volume's 8.
pub(crate) fn serial(array: ArrayId, volume: VolumeId) -> String {
    format!("{:012x}{:08x}", array.0 >> 80, volume.0)
}

/// The array's iSCSI target name (RFC 7143 §4.2.7.4).
pub fn target_name(array: ArrayId) -> String {
    format!("iqn.2026-11.io.tangelo:{:012x}", array.0 >> 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_laid_out_as_drawn() {
        let array = ArrayId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        let naa = Naa::derive(array, VolumeId(0xA5));
        assert_eq!(naa.to_string(), "60254470123456789abcdef0000000a5");
        assert_eq!(naa.bytes()[0] >> 4, 6);
        assert_eq!(naa.to_string().parse(), Ok(naa));
        assert_eq!(serial(array, VolumeId(0xA5)), "0123456789ab000000a5");
        assert_eq!(target_name(array), "iqn.2026-11.io.tangelo:0123456789ab");
        assert!(target_name(array).parse::<crate::IscsiName>().is_ok());
    }

    #[test]
    fn what_is_not_an_naa_identifier() {
        for bad in ["", "6", "50254470123456789abcdef0000000a5", "6+254470123456789abcdef0000000a5"] {
            assert!(bad.parse::<Naa>().is_err(), "{bad}");
        }
    }
}
