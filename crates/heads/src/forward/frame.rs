//! What is said over a connection for hosts.
//!
//! ```text
//!   to the owner     1 begins (JSON)     2 data: term (8), the owner's clock in ns (8), bytes     3 the host has finished sending
//!                    4 the partner's portals (JSON), over a connection without a host
//!   to the partner   2 data: bytes       5 credit: so many bytes more (4)
//! ```
//!
//! Little-endian. A connection begins without credit.

use std::net::SocketAddr;

use base::Nanos;
use bytes::Bytes;
use pair::{Portal, Stamp, Term};
use serde::{Deserialize, Serialize};

pub(super) const BEGIN: u16 = 1;
pub(super) const DATA: u16 = 2;
pub(super) const FINISHED: u16 = 3;
pub(super) const PORTALS: u16 = 4;
pub(super) const CREDIT: u16 = 5;

pub(super) const STAMP_BYTES: usize = 16;

/// A host's connection to a portal of the partner.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begin {
    /// As the partner has told its portals.
    pub portal: SocketAddr,
    /// The two ends of the host's connection.
    pub host: SocketAddr,
    pub local: SocketAddr,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ToOwner {
    Begin(Begin),
    Data(Stamp, Bytes),
    Finished,
    Portals(Vec<Portal>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ToPartner {
    Data(Bytes),
    Credit(u32),
}

pub(super) fn stamp_bytes(stamp: Stamp) -> Bytes {
    let mut bytes = Vec::with_capacity(STAMP_BYTES);
    bytes.extend_from_slice(&stamp.term.0.to_le_bytes());
    bytes.extend_from_slice(&stamp.at.0.to_le_bytes());
    Bytes::from(bytes)
}

/// A value that is sent as JSON.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("it can be written as JSON"))
}

impl ToOwner {
    /// `None`: it makes no sense.
    pub fn decode(kind: u16, content: Vec<u8>) -> Option<ToOwner> {
        match kind {
            BEGIN => serde_json::from_slice(&content).ok().map(ToOwner::Begin),
            PORTALS => serde_json::from_slice(&content).ok().map(ToOwner::Portals),
            FINISHED => content.is_empty().then_some(ToOwner::Finished),
            DATA => {
                let number = |at: usize| Some(u64::from_le_bytes(content.get(at..at + 8)?.try_into().ok()?));
                let stamp = Stamp { term: Term(number(0)?), at: Nanos(number(8)?) };
                Some(ToOwner::Data(stamp, Bytes::from(content).slice(STAMP_BYTES..)))
            }
            _ => None,
        }
    }
}

impl ToPartner {
    /// `None`: it makes no sense.
    pub fn decode(kind: u16, content: Vec<u8>) -> Option<ToPartner> {
        match kind {
            DATA => Some(ToPartner::Data(Bytes::from(content))),
            CREDIT => Some(ToPartner::Credit(u32::from_le_bytes(content.try_into().ok()?))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let address = |text: &str| text.parse().unwrap();
        let begin = Begin {
            portal: address("192.0.2.2:3260"),
            host: address("192.0.2.9:40000"),
            local: address("192.0.2.2:3260"),
        };
        assert_eq!(ToOwner::decode(BEGIN, json(&begin).to_vec()), Some(ToOwner::Begin(begin)));
        let portal =
            Portal { address: address("[2001:db8::1]:3260"), group: 33, hosts: vec!["h".to_owned()] };
        let portals = vec![portal];
        assert_eq!(ToOwner::decode(PORTALS, json(&portals).to_vec()), Some(ToOwner::Portals(portals)));
        let stamp = Stamp { term: Term(7), at: Nanos(u64::MAX) };
        let data = [&stamp_bytes(stamp)[..], b"command"].concat();
        assert_eq!(ToOwner::decode(DATA, data), Some(ToOwner::Data(stamp, Bytes::from_static(b"command"))));
        assert_eq!(ToPartner::decode(CREDIT, vec![0, 1, 0, 0]), Some(ToPartner::Credit(256)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(ToOwner::decode(DATA, vec![0; STAMP_BYTES - 1]), None);
        assert_eq!(ToOwner::decode(FINISHED, vec![0]), None);
        assert_eq!(ToOwner::decode(BEGIN, b"{}".to_vec()), None);
        assert_eq!(ToOwner::decode(CREDIT, vec![0; 4]), None);
        assert_eq!(ToPartner::decode(CREDIT, vec![0; 3]), None);
        assert_eq!(ToPartner::decode(BEGIN, vec![]), None);
    }
}
