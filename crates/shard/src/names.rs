//! The identity of a session and the shard that serves it, as shards name them to each other.

use std::net::IpAddr;

use base::ShardId;

/// Names an iSCSI session (RFC 7143 §4.4.3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionKey {
    pub initiator: String,
    pub isid: [u8; 6],
    pub portal_group_tag: u16,
}

/// The host and the address that request a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRequest {
    /// All initiators of the host, in lower case.
    pub initiators: Vec<String>,
    pub source: AddressSource,
    /// Sessions of the host on the shard that serves the new one.
    pub on_shard: usize,
}

/// Where a session is served: the shard, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionPlace {
    pub shard: ShardId,
    pub number: u64,
}

/// A running command: its session, and the tag that the session's protocol gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandPlace {
    pub session: SessionPlace,
    pub tag: u32,
}

/// Which limit refuses a further session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SessionLimit {
    Host,
    Address,
    Shard,
}

/// The source of an address. An IPv6 address counts as its network, because one host can use any number of addresses
/// there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AddressSource([u8; 8]);

impl AddressSource {
    pub fn of(address: IpAddr) -> AddressSource {
        let mut bytes = [0; 8];
        match address.to_canonical() {
            IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes.copy_from_slice(&address.octets()[..8]),
        }
        AddressSource(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let of = |address: &str| AddressSource::of(address.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
