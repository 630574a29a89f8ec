//! One connection of a target: login, full feature phase, timers, and the end.
//!
//! ```text
//!   Login ──ready──► Agreement (the engine drops older sessions) ──complete_login──► FullFeature
//!     └──────────────────────────── refused, timed out, closed ──────────────────────────┴──► Closed
//! ```

use base::{Nanos, limits};
use bytes::{Bytes, BytesMut};
use wire::iscsi::{AsyncEvent, AsyncMessage, Lengths, LoginStatus, RejectReason};

use crate::api::{
    CloseReason, CommandResponse, Directory, Effect, LoginFault, TaskManagementResponse, TaskTag,
};
use crate::frame::{Assembler, FrameError, Pdu};
use crate::link::Link;
use crate::login::{self, LOGIN_SEGMENT_BYTES, Login, LoginStep, ReadyLogin};
use crate::params::ConnectionParams;
use crate::session::Session;

enum Phase {
    Login(Box<Login>),
    Agreement(Box<ReadyLogin>),
    FullFeature(Box<Session>),
    Closed,
}

/// The target's end of one connection, which is one session.
///
/// After each call that may have produced something, drain [`Connection::next_effect`] and send
/// [`Connection::take_output`] (one send at a time; take again when it is done).
pub struct Connection {
    params: ConnectionParams,
    phase: Phase,
    link: Link,
    assembler: Assembler,
    /// When something was last heard, or when the connection began.
    heard: Nanos,
    /// When a NOP-In went out that nothing has followed.
    probed: Option<Nanos>,
    login_deadline: Nanos,
    /// As the initiator calls itself.
    claimed: Option<String>,
    /// Why its login was refused.
    fault: Option<LoginFault>,
}

impl Connection {
    pub fn new(params: ConnectionParams, now: Nanos) -> Connection {
        Connection {
            params,
            phase: Phase::Login(Box::new(Login::new())),
            link: Link::new(),
            assembler: Assembler::new(LOGIN_SEGMENT_BYTES),
            heard: now,
            probed: None,
            login_deadline: now + Nanos(limits::LOGIN_NS_MAX),
            claimed: None,
            fault: None,
        }
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
        self.note_heard(input, now);
        while self.on_next(input, directory, random) {}
    }

    /// The same, but stops after the first PDU with an effect. The caller executes the effect, then calls again.
    /// So the data of a command is still in the caches, even if more PDUs follow in the buffer.
    pub fn on_receive_some(
        &mut self,
        input: &mut BytesMut,
        directory: &dyn Directory,
        now: Nanos,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Effect> {
        self.note_heard(input, now);
        loop {
            let effect = self.link.next_effect();
            if effect.is_some() || !self.on_next(input, directory, random) {
                return effect;
            }
        }
    }

    fn note_heard(&mut self, input: &BytesMut, now: Nanos) {
        if !input.is_empty() {
            (self.heard, self.probed) = (now, None);
        }
    }

    /// Consumes one PDU. `false` where none is whole, or none is wanted.
    fn on_next(
        &mut self,
        input: &mut BytesMut,
        directory: &dyn Directory,
        random: &mut dyn FnMut() -> u64,
    ) -> bool {
        if self.link.is_closed() {
            input.clear();
        }
        if !self.wants_receive() {
            return false;
        }
        match self.assembler.next(input) {
            Ok(Some(pdu)) => self.on_pdu(pdu, directory, random),
            Ok(None) => return false,
            Err(error) => self.on_frame_error(error),
        }
        true
    }

    /// Whether to feed this connection: false while too much output waits, while a login waits for the
    /// engine, and after it has ended.
    pub fn wants_receive(&self) -> bool {
        !self.link.is_closed()
            && !matches!(self.phase, Phase::Agreement(_) | Phase::Closed)
            && self.link.output.queued_bytes() < limits::OUTPUT_BYTES_PER_CONNECTION_MAX
    }

    /// How many bytes of the PDU in progress (or of the next header) are still to come; at least 1. Some
    /// of a large PDU may be consumed before all of it is there; room for the rest saves receives.
    pub fn receive_bytes_wanted(&self) -> usize {
        self.assembler.bytes_wanted()
    }

    fn on_pdu(&mut self, pdu: Pdu, directory: &dyn Directory, random: &mut dyn FnMut() -> u64) {
        match &mut self.phase {
            Phase::Login(login) => {
                let step = login.on_pdu(&mut self.link, &self.params, &pdu, directory, random);
                if let (None, Some(name)) = (&self.claimed, login.claimed_initiator()) {
                    self.claimed = Some(name.to_owned());
                }
                if let LoginStep::Refused(status) = step {
                    self.fault = Some(login.fault(status));
                }
                self.after_login_step(step);
            }
            Phase::FullFeature(session) => {
                session.on_pdu(&mut self.link, &self.params, pdu, directory);
                self.after_close();
            }
            Phase::Agreement(_) | Phase::Closed => unreachable!("nothing is received in this phase"),
        }
    }

    fn after_login_step(&mut self, step: LoginStep) {
        match step {
            LoginStep::Continue => {}
            LoginStep::Ready(ready) => {
                self.link.effect(Effect::LoggedIn(ready.identity.clone()));
                self.phase = Phase::Agreement(ready);
            }
            LoginStep::Refused(status) => self.end(login::close_reason(status)),
            LoginStep::Dropped => self.end(CloseReason::ProtocolError),
        }
    }

    fn on_frame_error(&mut self, error: FrameError) {
        match (error, &mut self.phase) {
            (FrameError::HeaderDigest, _) => self.end(CloseReason::HeaderDigestError),
            (FrameError::Length { header }, Phase::Login(login)) => {
                let step = login.refuse(&mut self.link, &header, LoginStatus::InitiatorError);
                self.fault = Some(login.fault(LoginStatus::InitiatorError));
                self.after_login_step(step);
            }
            (FrameError::Length { header }, Phase::FullFeature(session)) => {
                self.link.reject_and_close(RejectReason::InvalidPduField, &header, session.window());
                self.after_close();
            }
            (FrameError::Length { .. }, Phase::Agreement(_) | Phase::Closed) => {
                self.end(CloseReason::ProtocolError);
            }
        }
    }

    fn end(&mut self, reason: CloseReason) {
        self.link.close(reason);
        self.after_close();
    }

    fn after_close(&mut self) {
        if self.link.is_closed() {
            self.phase = Phase::Closed;
        }
    }

    /// Time has passed: login timeout, NOP-In keepalive.
    pub fn on_tick(&mut self, now: Nanos) {
        if now < self.next_deadline() {
            return;
        }
        match &mut self.phase {
            Phase::Closed => {}
            Phase::Login(_) | Phase::Agreement(_) => self.end(CloseReason::LoginTimedOut),
            Phase::FullFeature(_) if self.probed.is_some() => self.end(CloseReason::Unresponsive),
            Phase::FullFeature(session) => {
                session.probe(&mut self.link);
                self.probed = Some(now);
            }
        }
    }

    /// When [`Connection::on_tick`] has something to do at the latest.
    pub fn next_deadline(&self) -> Nanos {
        match (&self.phase, self.probed) {
            (Phase::Closed, _) => Nanos::MAX,
            (Phase::Login(_) | Phase::Agreement(_), _) => self.login_deadline,
            (Phase::FullFeature(_), Some(probed)) => probed + Nanos(limits::NOP_ANSWER_NS_MAX),
            (Phase::FullFeature(_), None) => self.heard + Nanos(limits::NOP_IDLE_NS),
        }
    }

    /// As the initiator calls itself, in lower case, where it has said so; proved only where it is logged in.
    pub fn claimed_initiator(&self) -> Option<&str> {
        self.claimed.as_deref()
    }

    /// The reason why the protocol has refused the login.
    pub fn login_fault(&self) -> Option<LoginFault> {
        self.fault
    }

    pub fn next_effect(&mut self) -> Option<Effect> {
        self.link.next_effect()
    }

    /// Answers [`Effect::LoggedIn`]: the session exists, named `tsih` (not zero). Ignored where the
    /// connection has ended meanwhile.
    pub fn complete_login(&mut self, tsih: u16) {
        assert!(tsih != 0, "a session is not named 0");
        let Phase::Agreement(ready) = &mut self.phase else { return };
        ready.complete(&mut self.link, tsih);
        let agreed = ready.agreed;
        let numbers = (ready.connection_id, ready.cmd_sn);
        let session = Session::new(ready.identity.clone(), agreed, numbers, self.params.budget.clone());
        self.phase = Phase::FullFeature(Box::new(session));
        self.assembler.header_digest = agreed.header_digest;
        self.assembler.data_digest = agreed.data_digest;
        self.assembler.data_bytes_max = agreed.receive_segment_bytes as usize;
        self.link.output.header_digest = agreed.header_digest;
        self.link.output.data_digest = agreed.data_digest;
    }

    /// Answers [`Effect::LoggedIn`]: out of resources (login status 03/02). Closes.
    pub fn refuse_login(&mut self, status: LoginStatus) {
        let Phase::Agreement(ready) = &mut self.phase else { return };
        ready.refuse(&mut self.link, status);
        self.end(login::close_reason(status));
    }

    /// Answers a command. Ignored where the task is not known any more.
    pub fn respond(&mut self, task: TaskTag, response: CommandResponse) {
        if let Phase::FullFeature(session) = &mut self.phase {
            session.respond(&mut self.link, task, response);
        }
    }

    /// Answers a task management request. Ignored where it is not known any more.
    pub fn respond_task_management(&mut self, task: TaskTag, response: TaskManagementResponse) {
        if let Phase::FullFeature(session) = &mut self.phase {
            session.respond_task_management(&mut self.link, task, response);
        }
    }

    /// The engine will never answer this command (aborted on behalf of another session); the initiator
    /// gets no response for it.
    pub fn forget(&mut self, task: TaskTag) {
        if let Phase::FullFeature(session) = &mut self.phase {
            session.drop_task(&mut self.link, task);
        }
    }

    /// Another session has aborted the commands to a LUN whose field `is_its` knows: those that still collect their
    /// data end now, with this status or without an answer. Returns whether there were any. Further data for
    /// them is dropped.
    pub fn end_collecting(&mut self, is_its: &dyn Fn(u64) -> bool, status: Option<u8>) -> bool {
        match &mut self.phase {
            Phase::FullFeature(session) => session.end_collecting(&mut self.link, is_its, status),
            _ => false,
        }
    }

    /// Everything that is ready to be sent, in order; empty when there is nothing.
    pub fn take_output(&mut self) -> Vec<Bytes> {
        self.link.output.take()
    }

    /// Whether [`Connection::take_output`] has something to give.
    pub fn has_output(&self) -> bool {
        !self.link.output.is_empty()
    }

    /// Asks the initiator to log out within `seconds` (async message, RFC 7143 §11.9.1 event 1). Does
    /// nothing outside full feature phase.
    pub fn request_logout(&mut self, seconds: u16) {
        self.send_async(AsyncEvent::LogoutRequested { within_seconds: seconds });
    }

    /// Ends the connection: tells a logged-in initiator that it will be dropped (async event 2) and emits
    /// [`Effect::Close`]. Does nothing where it has ended already.
    pub fn close(&mut self, reason: CloseReason) {
        if let Phase::FullFeature(session) = &self.phase {
            let connection_id = session.connection_id;
            self.send_async(AsyncEvent::ConnectionDropped {
                connection_id,
                time_to_wait_seconds: 0,
                time_to_retain_seconds: 0,
            });
        }
        if !self.link.is_closed() {
            self.end(reason);
        }
    }

    fn send_async(&mut self, event: AsyncEvent) {
        let Phase::FullFeature(session) = &self.phase else { return };
        let numbers = self.link.status_numbers(session.window());
        let message = AsyncMessage { lun: 0, numbers, event };
        self.link.output.push_small(&message.emit(Lengths::default()), &[]);
    }
}
