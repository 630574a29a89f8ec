//! Sockets of one shard: listeners and connections by handle, and the operations in flight on each.
//!
//! What always holds: a descriptor is closed only when no operation on it is in flight, so the kernel cannot
//! reuse its number under an operation; a handle names one socket and never a later one.

pub mod listen;
mod operations;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use base::limits::CONNECTIONS_PER_SHARD_MAX;
use env::Token;

/// Sockets of each sort that a shard can have open: more than it serves, so that it can refuse those itself.
pub const SOCKETS_MAX: usize = 2 * CONNECTIONS_PER_SHARD_MAX;

const _: () = assert!(SOCKETS_MAX <= 1 << 16, "a handle has 16 bits for the place");

pub struct Connection {
    pub socket: OwnedFd,
    pub receiving: bool,
    pub sending: bool,
    /// More had arrived than the last receive took, or nothing is known yet.
    pub has_more: bool,
    /// Who asked to close it.
    pub closing: Option<Token>,
}

impl Connection {
    pub fn new(socket: OwnedFd) -> Connection {
        Connection { socket, receiving: false, sending: false, has_more: true, closing: None }
    }
}

pub struct Listener {
    pub socket: OwnedFd,
    pub address: SocketAddr,
    /// Accepts in flight.
    pub accepting: u32,
    /// Who asked to close it.
    pub closing: Option<Token>,
}

/// Things by handle: 16 bits of place, 16 bits of how often the place was used before.
pub struct Table<T> {
    places: Vec<(u16, Option<T>)>,
    free: Vec<u16>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// None where [`SOCKETS_MAX`] are there.
    pub fn add(&mut self, thing: T) -> Option<u32> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < SOCKETS_MAX => {
                self.places.push((0, None));
                (self.places.len() - 1) as u16
            }
            None => return None,
        };
        let (uses, content) = &mut self.places[place as usize];
        *content = Some(thing);
        Some((u32::from(*uses) << 16) | u32::from(place))
    }

    pub fn get(&mut self, handle: u32) -> Option<&mut T> {
        match self.places.get_mut(handle as usize & 0xFFFF) {
            Some((uses, content)) if u32::from(*uses) == handle >> 16 => content.as_mut(),
            _ => None,
        }
    }

    pub fn remove(&mut self, handle: u32) -> Option<T> {
        self.get(handle)?;
        let (uses, content) = &mut self.places[handle as usize & 0xFFFF];
        *uses = uses.wrapping_add(1);
        self.free.push(handle as u16);
        content.take()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, content)| content.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_never_names_the_successor() {
        let mut table = Table::default();
        let first = table.add("first").expect("room");
        let other = table.add("other").expect("room");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.add("second").expect("room");
        assert_eq!(second & 0xFFFF, first & 0xFFFF, "the place is reused");
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&mut "second"));
        assert_eq!(table.get(other), Some(&mut "other"));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = Table::default();
        let handles: Vec<u32> = (0..SOCKETS_MAX).map(|i| table.add(i).expect("room")).collect();
        assert_eq!(table.add(0), None);
        table.remove(handles[7]);
        assert!(table.add(0).is_some());
        assert_eq!(table.iter().count(), SOCKETS_MAX);
    }
}
