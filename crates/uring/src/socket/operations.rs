//! The operations on sockets, from start to end.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, IoError, ListenerHandle, Outcome, Token};
use rustix::net::SocketAddrAny;

use super::listen::stream_socket;
use super::{Connection, Listener};
use crate::core::{Core, accepted, shut_down};
use crate::errno::{is_transient, socket_error};
use crate::ring::Entry;
use crate::slots::Work;

impl Core {
    pub(crate) fn listen(&mut self, token: Token, address: SocketAddr) -> Result<(), IoError> {
        let (socket, address) = self.common.addresses.listen(address)?;
        let listener = Listener { socket, address, accepting: 0, closing: None };
        match self.listeners.add(listener) {
            Some(handle) => {
                self.end(token, Outcome::Listening(ListenerHandle(handle), address));
                Ok(())
            }
            None => {
                self.common.addresses.forget(address);
                Err(IoError::TooMany)
            }
        }
    }

    /// Shutting a listening socket down frees its address at once, and fails the accepts that wait.
    pub(crate) fn close_listener(&mut self, token: Token, handle: ListenerHandle) -> Result<(), IoError> {
        let listener = self.listeners.get(handle.0).filter(|listener| listener.closing.is_none());
        let listener = listener.ok_or(IoError::Closed)?;
        listener.closing = Some(token);
        shut_down(&listener.socket);
        self.common.addresses.forget(listener.address);
        self.close_listener_if_idle(handle);
        Ok(())
    }

    fn close_listener_if_idle(&mut self, handle: ListenerHandle) {
        if let Some(Listener { accepting: 0, closing: Some(token), .. }) = self.listeners.get(handle.0) {
            let token = *token;
            drop(self.listeners.remove(handle.0));
            self.end(token, Outcome::Done);
        }
    }

    pub(crate) fn accept(&mut self, token: Token, handle: ListenerHandle) -> Result<(), IoError> {
        let listener = self.listeners.get(handle.0).filter(|listener| listener.closing.is_none());
        let listener = listener.ok_or(IoError::Closed)?;
        listener.accepting += 1;
        let socket = listener.socket.as_raw_fd();
        self.start(token, Work::Accept { listener: handle, socket });
        Ok(())
    }

    pub(crate) fn on_accepted(&mut self, slot: u32, handle: ListenerHandle, socket: RawFd, result: i32) {
        let closing = self.listeners.get(handle.0).is_none_or(|listener| listener.closing.is_some());
        let outcome = match result {
            0.. => self.adopt(accepted(result), closing || self.is_ending()),
            _ if closing || self.is_ending() => Some(Err(IoError::Closed)),
            // gone again before we took it, or some trouble of the network: the next one may be better
            _ if is_transient(-result) || matches!(-result, libc::ECONNABORTED | libc::EPROTO) => None,
            _ => Some(Err(socket_error(-result))),
        };
        match outcome {
            None => return self.again(slot, Work::Accept { listener: handle, socket }),
            Some(Ok(outcome)) => self.finish(slot, outcome),
            Some(Err(error)) => self.finish(slot, Outcome::Failed(error)),
        }
        if let Some(listener) = self.listeners.get(handle.0) {
            listener.accepting -= 1;
        }
        self.close_listener_if_idle(handle);
    }

    /// Takes an accepted connection in. None where its peer has gone already.
    fn adopt(&mut self, socket: OwnedFd, closing: bool) -> Option<Result<Outcome, IoError>> {
        if closing {
            return Some(Err(IoError::Closed));
        }
        let stream = TcpStream::from(socket);
        let (peer, local) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
        let handle = self.connections.add(Connection::new(stream.into()));
        Some(handle.ok_or(IoError::TooMany).map(|handle| {
            let connection = ConnectionHandle(handle);
            Outcome::Accepted { connection, peer, local }
        }))
    }

    pub(crate) fn connect(&mut self, token: Token, address: SocketAddr) -> Result<(), IoError> {
        let socket = stream_socket(address)?;
        self.start(token, Work::Connect { socket, address: SocketAddrAny::from(address) });
        Ok(())
    }

    pub(crate) fn on_connected(&mut self, slot: u32, socket: OwnedFd, address: SocketAddrAny, result: i32) {
        if result < 0 && is_transient(-result) && self.may_retry(slot) {
            return self.again(slot, Work::Connect { socket, address });
        }
        let outcome = match result {
            ..0 => Err(socket_error(-result)),
            _ => {
                let stream = TcpStream::from(socket);
                let local = stream.local_addr().map_err(|_| IoError::Closed);
                local.and_then(|local| {
                    let handle =
                        self.connections.add(Connection::new(stream.into())).ok_or(IoError::TooMany)?;
                    Ok(Outcome::Connected { connection: ConnectionHandle(handle), local })
                })
            }
        };
        self.finish(slot, outcome.unwrap_or_else(Outcome::Failed));
    }

    pub(crate) fn receive(&mut self, token: Token, handle: ConnectionHandle, buffer: BytesMut) {
        assert!(buffer.capacity() > buffer.len(), "a receive needs room");
        match self.open_connection(handle) {
            Err(error) => self.end(token, Outcome::Received(buffer, Err(error))),
            Ok(connection) => {
                assert!(!connection.receiving, "one receive at a time");
                connection.receiving = true;
                let socket = connection.socket.as_raw_fd();
                let poll_first = !connection.has_more;
                self.start(token, Work::Receive { connection: handle, socket, buffer, poll_first });
            }
        }
    }

    pub(crate) fn on_received(
        &mut self,
        slot: u32,
        handle: ConnectionHandle,
        socket: RawFd,
        mut buffer: BytesMut,
        entry: Entry,
    ) {
        let connection = self.connections.get(handle.0).expect("it stays while a receive is in flight");
        let closing = connection.closing.is_some();
        connection.has_more = entry.socket_has_more || entry.result < 0;
        let result = match entry.result {
            _ if closing || self.is_ending() => Err(IoError::Closed),
            received @ 0.. => {
                let length = buffer.len() + received as usize;
                assert!(length <= buffer.capacity(), "the kernel received more than there was room for");
                // SAFETY: the kernel has written `received` bytes to the spare capacity it was given.
                unsafe { buffer.set_len(length) };
                Ok(())
            }
            error if is_transient(-error) && self.may_retry(slot) => {
                return self
                    .again(slot, Work::Receive { connection: handle, socket, buffer, poll_first: false });
            }
            error => Err(socket_error(-error)),
        };
        self.finish(slot, Outcome::Received(buffer, result));
        self.connections.get(handle.0).expect("still there").receiving = false;
        self.close_connection_if_idle(handle);
    }

    pub(crate) fn send(
        &mut self,
        token: Token,
        handle: ConnectionHandle,
        data: Vec<Bytes>,
    ) -> Result<(), IoError> {
        let connection = self.open_connection(handle)?;
        assert!(!connection.sending, "one send at a time");
        let length = data.iter().map(Bytes::len).sum();
        if length == 0 {
            self.end(token, Outcome::Done);
            return Ok(());
        }
        connection.sending = true;
        let socket = connection.socket.as_raw_fd();
        self.start(token, Work::Send { connection: handle, socket, data, length, done: 0 });
        Ok(())
    }

    pub(crate) fn on_sent(
        &mut self,
        slot: u32,
        connection: ConnectionHandle,
        socket: RawFd,
        (data, length, done): (Vec<Bytes>, usize, usize),
        result: i32,
    ) {
        let closing =
            self.connections.get(connection.0).is_none_or(|connection| connection.closing.is_some());
        let outcome = match result {
            _ if closing || self.is_ending() => Outcome::Failed(IoError::Closed),
            sent @ 0.. => {
                let done = done + sent as usize;
                assert!(done <= length, "the kernel sent more than it was given");
                if done < length {
                    return self.again(slot, Work::Send { connection, socket, data, length, done });
                }
                Outcome::Done
            }
            error if is_transient(-error) && self.may_retry(slot) => {
                return self.again(slot, Work::Send { connection, socket, data, length, done });
            }
            error => Outcome::Failed(socket_error(-error)),
        };
        self.finish(slot, outcome);
        self.connections.get(connection.0).expect("it stays while a send is in flight").sending = false;
        self.close_connection_if_idle(connection);
    }

    /// Shut down both ways, what is in flight completes by itself; then the socket is closed.
    pub(crate) fn close_connection(&mut self, token: Token, handle: ConnectionHandle) -> Result<(), IoError> {
        let connection = self.open_connection(handle)?;
        connection.closing = Some(token);
        shut_down(&connection.socket);
        self.close_connection_if_idle(handle);
        Ok(())
    }

    fn close_connection_if_idle(&mut self, handle: ConnectionHandle) {
        if let Some(Connection { receiving: false, sending: false, closing: Some(token), .. }) =
            self.connections.get(handle.0)
        {
            let token = *token;
            drop(self.connections.remove(handle.0));
            self.end(token, Outcome::Done);
        }
    }

    fn open_connection(&mut self, handle: ConnectionHandle) -> Result<&mut Connection, IoError> {
        let connection = self.connections.get(handle.0).filter(|connection| connection.closing.is_none());
        connection.ok_or(IoError::Closed)
    }
}
