//! Where a head or the witness listens: an address and five ports in a row, of which the administrator names the first.
//!
//! | port | what | who connects |
//! |---|---|---|
//! | BASE | the link between the heads | the other head |
//! | BASE + 1 | the door | a joiner, with a token |
//! | BASE + 2 | etcd, clients' side | both heads |
//! | BASE + 3 | etcd, peers' side | the other members |
//! | BASE + 4 | what hosts send to the other head's portals | the other head, if it is the partner |

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// BASE, if the administrator does not name another.
pub const PORT_DEFAULT: u16 = 3261;

/// How many ports in a row are used.
const PORTS: u16 = pair::HOSTS_PORT_BEHIND + 1;

/// Addresses that one member has at most.
pub const ADDRESSES_MAX: usize = 8;

/// An address of this server, and the first of five ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    address: IpAddr,
    base: u16,
}

/// Why this is no place to listen.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PortsError {
    #[error(
        "{text} is no address; give ADDRESS or ADDRESS:PORT, for example 192.0.2.1 or [2001:db8::1]:3261"
    )]
    NotAnAddress { text: String },
    #[error("{address} is no address of one server; give the address that the other servers connect to")]
    NotOfAServer { address: IpAddr },
    #[error("port {base} cannot be used, because it and the next four are needed: give 1 to 65531")]
    Port { base: u16 },
    #[error("there are {count} addresses to listen on; give 1 to {ADDRESSES_MAX}")]
    Count { count: usize },
}

impl Ports {
    pub fn new(address: IpAddr, base: u16) -> Result<Ports, PortsError> {
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || is_broadcast {
            return Err(PortsError::NotOfAServer { address });
        }
        if base == 0 || base.checked_add(PORTS - 1).is_none() {
            return Err(PortsError::Port { base });
        }
        Ok(Ports { address, base })
    }

    /// The ports whose first one is that of the link.
    pub fn of_link(link: SocketAddr) -> Result<Ports, PortsError> {
        Ports::new(link.ip(), link.port())
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The other head connects here.
    pub fn link(&self) -> SocketAddr {
        self.at(0)
    }

    /// A joiner connects here.
    pub fn door(&self) -> SocketAddr {
        self.at(1)
    }

    /// etcd's clients connect here.
    pub fn client(&self) -> SocketAddr {
        self.at(2)
    }

    /// etcd's other members connect here.
    pub fn peer(&self) -> SocketAddr {
        self.at(3)
    }

    fn at(&self, offset: u16) -> SocketAddr {
        debug_assert!(offset < PORTS);
        SocketAddr::new(self.address, self.base + offset)
    }
}

impl FromStr for Ports {
    type Err = PortsError;

    fn from_str(text: &str) -> Result<Ports, PortsError> {
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ports::new(address, PORT_DEFAULT);
        }
        let address: SocketAddr =
            text.parse().map_err(|_| PortsError::NotAnAddress { text: text.to_owned() })?;
        Ports::of_link(address)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.link().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_ports_follow_from_an_address() {
        for (text, link, peer) in [
            ("192.0.2.1", "192.0.2.1:3261", "192.0.2.1:3264"),
            ("192.0.2.1:7000", "192.0.2.1:7000", "192.0.2.1:7003"),
            ("2001:db8::1", "[2001:db8::1]:3261", "[2001:db8::1]:3264"),
            ("[2001:db8::1]", "[2001:db8::1]:3261", "[2001:db8::1]:3264"),
            ("[2001:db8::1]:65531", "[2001:db8::1]:65531", "[2001:db8::1]:65534"),
        ] {
            let ports: Ports = text.parse().unwrap();
            assert_eq!((ports.to_string(), ports.peer().to_string()), (link.to_owned(), peer.to_owned()));
            assert_eq!(ports.door().port(), ports.link().port() + 1);
            assert_eq!(ports.client().port(), ports.link().port() + 2);
            assert_eq!(Ports::of_link(ports.link()), Ok(ports));
        }
    }

    #[test]
    fn what_nobody_can_connect_to_is_refused() {
        let parse = |text: &str| text.parse::<Ports>();
        for text in ["", "server-a", "192.0.2.1:", "192.0.2.1:70000", "192.0.2.1/24"] {
            assert!(matches!(parse(text), Err(PortsError::NotAnAddress { .. })), "{text}");
        }
        for text in ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255:3261"] {
            assert!(matches!(parse(text), Err(PortsError::NotOfAServer { .. })), "{text}");
        }
        assert_eq!(parse("192.0.2.1:65532"), Err(PortsError::Port { base: 65532 }));
        assert_eq!(parse("192.0.2.1:0"), Err(PortsError::Port { base: 0 }));
    }
}
