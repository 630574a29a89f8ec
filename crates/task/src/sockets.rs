//! What tasks do with sockets.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, IoError, ListenerHandle, Operation, Outcome};

use crate::io::{Io, done, failure};

impl Io {
    pub async fn listen(&self, address: SocketAddr) -> Result<(ListenerHandle, SocketAddr), IoError> {
        listening(self.operation(Operation::Listen { address }).await)
    }

    /// For connections to this portal of the other head, which it forwards.
    pub async fn listen_forwarded(
        &self,
        address: SocketAddr,
    ) -> Result<(ListenerHandle, SocketAddr), IoError> {
        listening(self.operation(Operation::ListenForwarded { address }).await)
    }

    pub async fn close_listener(&self, listener: ListenerHandle) -> Result<(), IoError> {
        done(self.operation(Operation::CloseListener { listener }).await)
    }

    /// The connection, the peer's address, our address.
    pub async fn accept(
        &self,
        listener: ListenerHandle,
    ) -> Result<(ConnectionHandle, SocketAddr, SocketAddr), IoError> {
        match self.operation(Operation::Accept { listener }).await {
            Outcome::Accepted { connection, peer, local } => Ok((connection, peer, local)),
            outcome => Err(failure(outcome)),
        }
    }

    pub async fn connect(&self, address: SocketAddr) -> Result<(ConnectionHandle, SocketAddr), IoError> {
        match self.operation(Operation::Connect { address }).await {
            Outcome::Connected { connection, local } => Ok((connection, local)),
            outcome => Err(failure(outcome)),
        }
    }

    /// Appends what arrives to the buffer's spare capacity; nothing appended means the peer has finished.
    pub async fn receive(
        &self,
        connection: ConnectionHandle,
        buffer: BytesMut,
    ) -> (BytesMut, Result<(), IoError>) {
        match self.operation(Operation::Receive { connection, buffer }).await {
            Outcome::Received(buffer, result) => (buffer, result),
            outcome => unreachable!("a receive ends as a receive, not {outcome:?}"),
        }
    }

    pub async fn send(&self, connection: ConnectionHandle, data: Vec<Bytes>) -> Result<(), IoError> {
        done(self.operation(Operation::Send { connection, data }).await)
    }

    pub async fn close_connection(&self, connection: ConnectionHandle) -> Result<(), IoError> {
        done(self.operation(Operation::CloseConnection { connection }).await)
    }
}

fn listening(outcome: Outcome) -> Result<(ListenerHandle, SocketAddr), IoError> {
    match outcome {
        Outcome::Listening(listener, address) => Ok((listener, address)),
        outcome => Err(failure(outcome)),
    }
}
