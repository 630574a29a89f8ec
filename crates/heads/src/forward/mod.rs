//! Hosts at the portals of the partner: it forwards what they send to the owner, and what they are answered back to them.
//!
//! ```text
//!   host ─► portal of the partner ─► Forwarder ═══ connection for hosts ═══► Door ─► engine of the owner
//!                                      stamps, credit ──►  ◄── data, more credit
//! ```
//!
//! The owner serves such a connection as any other: it has a portal, a host's address, bytes. So commands of both heads' portals meet in one
//! place, and reservations, task management and the order of writes hold over both.
//!
//! What always holds: what a host has sent carries the owner's clock, as the partner has heard it last, and is refused when it is too old
//! or of another term; a head that stood still drops its hosts' connections; nobody holds more of a connection than its window.

mod door;
mod forwarder;
mod frame;
mod shard;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, RwLock};

use pair::{HOSTS_PORT_BEHIND, Portal, Stamp};

pub(crate) use door::Door;
pub use forwarder::ForwardOptions;
pub use shard::ForwardShard;
pub(crate) use shard::{end_late, is_of_forwarder};

/// So much of a connection may be on its way to the owner, or wait there, if it does not say otherwise.
pub const WINDOW_BYTES: usize = 512 << 10;
/// The longest piece in a frame.
const PIECE_BYTES_MAX: usize = 256 << 10;

const _: () = assert!(PIECE_BYTES_MAX + frame::STAMP_BYTES <= pair::HOSTS_BYTES_MAX);

/// Where an owner takes what is forwarded, if that is where it listens for its partner.
fn door_of(link: SocketAddr) -> SocketAddr {
    SocketAddr::new(link.ip(), link.port() + HOSTS_PORT_BEHIND)
}

/// What a partner has heard of its owner's clock; set by the head, read by the threads that forward.
#[derive(Clone, Default, Debug)]
pub struct Heard(Arc<Mutex<Option<Stamp>>>);

impl Heard {
    pub(crate) fn set(&self, stamp: Option<Stamp>) {
        *self.0.lock().expect("nobody panics with it") = stamp;
    }

    fn get(&self) -> Option<Stamp> {
        *self.0.lock().expect("nobody panics with it")
    }
}

/// The portals of this head, as its configuration says. They may change.
#[derive(Clone, Default, Debug)]
pub struct Portals(Arc<RwLock<Vec<Portal>>>);

impl Portals {
    pub fn new(portals: Vec<Portal>) -> Portals {
        Portals(Arc::new(RwLock::new(portals)))
    }

    pub fn set(&self, portals: Vec<Portal>) {
        *self.0.write().expect("nobody panics with it") = portals;
    }

    fn get(&self) -> Vec<Portal> {
        self.0.read().expect("nobody panics with it").clone()
    }
}
