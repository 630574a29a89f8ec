//! One connection of a target: login, then full feature phase.

use std::net::SocketAddr;

use base::Nanos;
use bytes::{Bytes, BytesMut};

use crate::api::{CloseReason, CommandResponse, Directory, Effect, TaskManagementResponse, TaskTag};

/// Where a connection came in.
#[derive(Clone, Debug)]
pub struct ConnectionParams {
    /// Our end of the socket.
    pub local_address: SocketAddr,
    /// Of the portal that accepted it.
    pub portal_group_tag: u16,
}

/// The target's end of one connection, which is one session.
///
/// After each call that may have produced something, drain [`Connection::next_effect`] and send
/// [`Connection::take_output`] (one send at a time; take again when it is done).
pub struct Connection {}

impl Connection {
    pub fn new(params: ConnectionParams, now: Nanos) -> Connection {
        let _ = (params, now);
        todo!()
    }

    /// Consumes what was received, PDU by PDU, without copying payload. Stops early, leaving bytes in
    /// `input`, while [`Connection::wants_receive`] is false: call again with the same buffer (before
    /// receiving more) once it is true. Never fails: errors become rejects, statuses and [`Effect::Close`].
    pub fn on_receive(
        &mut self,
        input: &mut BytesMut,
        directory: &dyn Directory,
        now: Nanos,
        random: &mut dyn FnMut() -> u64,
    ) {
        let _ = (input, directory, now, random);
        todo!()
    }

    /// Whether to feed this connection: false while too much output waits, while a login waits for the
    /// engine, and after it has ended.
    pub fn wants_receive(&self) -> bool {
        todo!()
    }

    /// How many more bytes must arrive before anything more can be consumed; at least 1. The receive
    /// buffer should have at least this much room (more is better).
    pub fn receive_bytes_wanted(&self) -> usize {
        todo!()
    }

    /// Time has passed: login timeout, NOP-In keepalive.
    pub fn on_tick(&mut self, now: Nanos) {
        let _ = now;
        todo!()
    }

    /// When [`Connection::on_tick`] has something to do at the latest.
    pub fn next_deadline(&self) -> Nanos {
        todo!()
    }

    pub fn next_effect(&mut self) -> Option<Effect> {
        todo!()
    }

    /// Answers [`Effect::LoggedIn`]: the session exists, named `tsih` (not zero).
    pub fn complete_login(&mut self, tsih: u16) {
        let _ = tsih;
        todo!()
    }

    /// Answers [`Effect::LoggedIn`]: out of resources (login status 03/02). Closes.
    pub fn refuse_login(&mut self) {
        todo!()
    }

    /// Answers a command. Ignored where the task is not known any more.
    pub fn respond(&mut self, task: TaskTag, response: CommandResponse) {
        let _ = (task, response);
        todo!()
    }

    /// Answers a task management request. Ignored where it is not known any more.
    pub fn respond_task_management(&mut self, task: TaskTag, response: TaskManagementResponse) {
        let _ = (task, response);
        todo!()
    }

    /// The engine will never answer this command (aborted on behalf of another session); the initiator
    /// gets no response for it.
    pub fn forget(&mut self, task: TaskTag) {
        let _ = task;
        todo!()
    }

    /// Everything that is ready to be sent, in order; empty when there is nothing.
    pub fn take_output(&mut self) -> Vec<Bytes> {
        todo!()
    }

    /// Whether [`Connection::take_output`] has something to give.
    pub fn has_output(&self) -> bool {
        todo!()
    }

    /// Asks the initiator to log out within `seconds` (async message, RFC 7143 §11.9.1 event 1).
    pub fn request_logout(&mut self, seconds: u16) {
        let _ = seconds;
        todo!()
    }

    /// Ends the connection: tells a logged-in initiator that it will be dropped (async event 2) and emits
    /// [`Effect::Close`].
    pub fn close(&mut self, reason: CloseReason) {
        let _ = reason;
        todo!()
    }
}
