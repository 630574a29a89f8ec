//! Creating sockets: for listening and for outgoing connections.
//!
//! Several shards may listen at one address; the kernel distributes connections among them (`SO_REUSEPORT`). With
//! this option, a second process of the same user could also listen there, unnoticed. So the first socket of this
//! process at an address is first bound without the option.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use base::HashMap;
use env::IoError;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::errno::socket_error;

/// Connections that wait to be accepted, per listener.
const BACKLOG: i32 = 1024;

/// The addresses at which this process listens, with the number of listeners.
#[derive(Default)]
pub struct Addresses {
    listeners: Mutex<HashMap<SocketAddr, u32>>,
}

impl Addresses {
    /// A listening socket and the address it has got (for port 0). To be given back by [`Addresses::forget`].
    pub fn listen(&self, address: SocketAddr) -> Result<(OwnedFd, SocketAddr), IoError> {
        let mut listeners = self.listeners.lock().expect("no panic under the lock");
        let is_ours = listeners.contains_key(&address);
        if !is_ours && address.port() != 0 {
            drop(listening_socket(address, false)?);
        }
        let socket = listening_socket(address, true)?;
        let bound = rustix::net::getsockname(&socket).map_err(error_of)?;
        let bound = SocketAddr::try_from(bound).map_err(error_of)?;
        *listeners.entry(bound).or_default() += 1;
        Ok((socket, bound))
    }

    pub fn forget(&self, address: SocketAddr) {
        let mut listeners = self.listeners.lock().expect("no panic under the lock");
        let count = listeners.get_mut(&address).expect("it was listened at");
        *count -= 1;
        if *count == 0 {
            listeners.remove(&address);
        }
    }
}

fn listening_socket(address: SocketAddr, shared: bool) -> Result<OwnedFd, IoError> {
    let socket = stream_socket(address)?;
    let make = || {
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, shared)?;
        if address.is_ipv6() {
            // "[::]" and "0.0.0.0" are two portals, each of its own family
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)
    };
    make().map_err(error_of)?;
    Ok(socket)
}

/// A stream socket for the address's family. It does not hold back small segments, nor do the connections that it
/// accepts. Buffers are left to the kernel's automatic tuning, which setting a size would end.
pub fn stream_socket(address: SocketAddr) -> Result<OwnedFd, IoError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    // blocking: the ring waits, and would hand EAGAIN through otherwise
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(error_of)?;
    sockopt::set_tcp_nodelay(&socket, true).map_err(error_of)?;
    Ok(socket)
}

fn error_of(error: rustix::io::Errno) -> IoError {
    socket_error(error.raw_os_error())
}
