//! Addresses that are with the head that owns the array, for hosts that know only one address.
//!
//! | file | what |
//! |---|---|
//! | `interface` | addresses of this machine's interfaces, by netlink |
//! | `announce` | the frames that tell others where an address is now: ARP (RFC 5227) and neighbour advertisements (RFC 4861) |
//! | `keeper` | the addresses that this head is to have, kept or given up |
//!
//! What always holds: an address is added for a few seconds only, and again and again as long as it is to be here. So the kernel of a head
//! whose program has died, or stands still, gives it up by itself, while another head has it.

mod announce;
mod interface;
mod keeper;

pub use keeper::{Floating, Stage};

use std::net::IpAddr;

/// An address, and the interface that is to have it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FloatingAddress {
    pub address: IpAddr,
    pub interface: String,
}
