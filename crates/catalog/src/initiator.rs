//! Names of initiators: each transport has its own kind.

use std::str::FromStr;

use base::limits::{ISCSI_NAME_BYTES_MAX, NVME_NAME_BYTES_MAX};
use serde::{Deserialize, Serialize};

use crate::name::{NameError, text_type};

/// What a host logs in as.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Initiator {
    Iscsi(IscsiName),
    Nvme(NvmeName),
    FibreChannel(Wwpn),
}

impl Initiator {
    pub fn as_str(&self) -> &str {
        match self {
            Initiator::Iscsi(name) => name.as_str(),
            Initiator::Nvme(name) => name.as_str(),
            Initiator::FibreChannel(name) => name.as_str(),
        }
    }
}

const BEGINNINGS: &str =
    "it must begin with \"iqn.\", \"eui.\" or \"naa.\", as in iqn.1993-08.org.debian:01:abc";

fn bad(text: &str, what: &'static str, reason: &'static str) -> NameError {
    NameError::BadInitiator { name: text.to_owned(), what, reason }
}

impl FromStr for Initiator {
    type Err = NameError;

    /// The kind follows from the form: `nqn.` is NVMe, sixteen hexadecimal digits are a WWPN, all else is iSCSI.
    fn from_str(text: &str) -> Result<Initiator, NameError> {
        if text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("nqn.")) {
            return text.parse().map(Initiator::Nvme);
        }
        if let Some(wwpn) = Wwpn::parse(text) {
            return Ok(Initiator::FibreChannel(wwpn));
        }
        text.parse().map(Initiator::Iscsi)
    }
}

text_type!(Initiator);

/// An initiator's iSCSI name (RFC 7143 §4.2.7) in `iqn.`, `eui.` or `naa.` format, in lower case.
///
/// Names are compared without regard to case (§4.2.7.2 maps upper case to lower). Of what the section allows,
/// only ASCII is accepted; beyond it, `_` is, because initiators in the field put host names there unchanged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IscsiName(String);

impl IscsiName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IscsiName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<IscsiName, NameError> {
        if text.len() > ISCSI_NAME_BYTES_MAX {
            return Err(NameError::TooLong { length: text.chars().count(), max: ISCSI_NAME_BYTES_MAX });
        }
        let name = text.to_ascii_lowercase();
        let verdict = match name.get(..4) {
            Some("iqn.") => check_iqn(&name[4..]),
            Some("eui.") => {
                check_hexadecimal(&name[4..], &[16], "\"eui.\" is followed by 16 hexadecimal digits")
            }
            Some("naa.") => check_hexadecimal(
                &name[4..],
                &[16, 32],
                "\"naa.\" is followed by 16 or 32 hexadecimal digits",
            ),
            _ => Err(BEGINNINGS),
        };
        match verdict {
            Ok(()) => Ok(IscsiName(name)),
            Err(reason) => Err(bad(text, "an iSCSI name", reason)),
        }
    }
}

/// `yyyy-mm.reversed.domain[:anything]` (RFC 7143 §4.2.7.4).
fn check_iqn(rest: &str) -> Result<(), &'static str> {
    let bytes = rest.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let dated = (0..4).all(digit)
        && bytes.get(4) == Some(&b'-')
        && digit(5)
        && digit(6)
        && bytes.get(7) == Some(&b'.');
    if !dated {
        return Err("\"iqn.\" is followed by a date and a dot, as in iqn.1993-08.org.debian:01:abc");
    }
    if !matches!(&bytes[5..7], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2']) {
        return Err("the month must be 01 to 12");
    }
    let naming = &rest[8..];
    if !naming
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | ':' | '_'))
    {
        return Err("letters, digits, '-', '.', ':' and '_' are allowed");
    }
    let authority = naming.split(':').next().unwrap_or("");
    if authority.is_empty() || authority.split('.').any(str::is_empty) {
        return Err("the date is followed by a reversed domain name, as in iqn.1993-08.org.debian:01:abc");
    }
    Ok(())
}

fn check_hexadecimal(digits: &str, lengths: &[usize], reason: &'static str) -> Result<(), &'static str> {
    let good = lengths.contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if good { Ok(()) } else { Err(reason) }
}

/// A host's NVMe Qualified Name (NVM Express Base 2.0 §4.5): `nqn.yyyy-mm.reversed.domain:anything`. Names are compared
/// byte by byte. Of what the section allows, only printable ASCII is accepted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NvmeName(String);

impl NvmeName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NvmeName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<NvmeName, NameError> {
        const WHAT: &str = "an NVMe qualified name";
        if text.len() > NVME_NAME_BYTES_MAX {
            return Err(NameError::TooLong { length: text.chars().count(), max: NVME_NAME_BYTES_MAX });
        }
        let rest = text.strip_prefix("nqn.").ok_or_else(|| bad(text, WHAT, "it must begin with \"nqn.\""))?;
        let (authority, own) = rest.split_once(':').unwrap_or((rest, ""));
        check_iqn(&authority.to_ascii_lowercase()).map_err(|_| {
            let reason = "\"nqn.\" is followed by a date and a reversed domain name, as in nqn.2014-08.org.nvmexpress:uuid:...";
            bad(text, WHAT, reason)
        })?;
        if own.is_empty() || !own.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad(text, WHAT, "the domain is followed by a colon and printable characters"));
        }
        Ok(NvmeName(text.to_owned()))
    }
}
text_type!(NvmeName);
text_type!(IscsiName);

/// The World Wide Port Name of a Fibre Channel port, as `10:00:00:90:fa:12:34:56`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wwpn(String);

impl Wwpn {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Sixteen hexadecimal digits, with colons between pairs or without, or after `0x`.
    fn parse(text: &str) -> Option<Wwpn> {
        let digits = match text.split(':').collect::<Vec<_>>()[..] {
            [plain] => plain.strip_prefix("0x").unwrap_or(plain).to_owned(),
            ref pairs if pairs.len() == 8 && pairs.iter().all(|pair| pair.len() == 2) => pairs.concat(),
            _ => return None,
        };
        if digits.len() != 16 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let digits = digits.to_ascii_lowercase();
        let pairs: Vec<&str> = (0..8).map(|pair| &digits[2 * pair..2 * pair + 2]).collect();
        Some(Wwpn(pairs.join(":")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_says_which_kind_it_is() {
        let kind = |text: &str| text.parse::<Initiator>();
        let nvme = "nqn.2014-08.org.nvmexpress:uuid:2cf8a3e1-0000-4b1e-9f6e-1f9c2f0b7a11";
        assert!(matches!(kind(nvme), Ok(Initiator::Nvme(name)) if name.as_str() == nvme));
        for wwpn in ["10:00:00:90:FA:12:34:56", "0x10000090fa123456", "10000090fa123456"] {
            let parsed = kind(wwpn).unwrap();
            assert!(matches!(&parsed, Initiator::FibreChannel(_)));
            assert_eq!(parsed.to_string(), "10:00:00:90:fa:12:34:56");
            assert_eq!(kind(&String::from(parsed.clone())), Ok(parsed));
        }
        assert!(
            matches!(kind("IQN.1993-08.org.debian:01:Abc"), Ok(Initiator::Iscsi(name)) if name.as_str() == "iqn.1993-08.org.debian:01:abc")
        );
        for bad in [
            "nqn.2014-08.org.nvmexpress",
            "nqn.14-08.x:y",
            "nqn.2014-08.org.x:",
            "nqn.2014-08.org.x:a b",
            "10:00:00:90:fa:12:34",
            "pve1",
        ] {
            assert!(kind(bad).is_err(), "{bad}");
        }
        let long = format!("nqn.2014-08.org.x:{}", "a".repeat(206));
        assert!(matches!(kind(&long), Err(NameError::TooLong { length: 224, max: 223 })));
    }

    #[test]
    fn iscsi_names() {
        for good in [
            "iqn.1993-08.org.debian:01:abc",
            "iqn.1991-05.com.microsoft:host.example.com",
            "iqn.2001-04.com.example",
            "iqn.1998-01.com.vmware:esx_1-4f2a",
            "eui.02004567a425678d",
            "naa.52004567ba64678d",
            "naa.62004567ba64678d0123456789abcdef",
        ] {
            assert_eq!(good.parse::<IscsiName>().unwrap().as_str(), good);
        }
        let upper: IscsiName = "IQN.1993-08.ORG.Debian:01:ABC".parse().unwrap();
        assert_eq!(upper.as_str(), "iqn.1993-08.org.debian:01:abc");
        for bad in [
            "",
            "iqn",
            "iqn.",
            "iqn.1993-08",
            "iqn.1993-08.",
            "iqn.1993-13.org.debian",
            "iqn.1993-00.org.debian",
            "iqn.93-08.org.debian",
            "iqn.1993-08.:abc",
            "iqn.1993-08.org..debian:a",
            "iqn.1993-08.org.debian:a b",
            "iqn.1993-08.org.debian:ä",
            "eui.02004567a425678",
            "eui.02004567a425678g",
            "naa.123",
            "pve1",
            "äqn.1993",
        ] {
            assert!(bad.parse::<IscsiName>().is_err(), "{bad:?} was accepted");
        }
        let long = format!("iqn.1993-08.org.debian:{}", "a".repeat(201));
        assert!(matches!(long.parse::<IscsiName>(), Err(NameError::TooLong { length: 224, max: 223 })));
    }
}
