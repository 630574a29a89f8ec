//! Full feature phase: dispatch of PDUs, the command window, and sense data that this crate makes itself.
//!
//! One connection delivers its PDUs in order, so commands arrive in CmdSN order. A CmdSN
//! outside the window is ignored (RFC 7143 §4.2.2.1). A CmdSN inside the window but ahead means that commands are
//! missing, which can never arrive later; it ends the connection.

use std::collections::VecDeque;
use std::rc::Rc;

use base::limits;
use bytes::Bytes;
use wire::iscsi::{
    Header, Lengths, LogoutReason, LogoutRequest, LogoutResponse, LogoutResult, NopIn, NopOut, Opcode,
    RESERVED_TAG, RejectReason, Residual, ScsiResponse, ServiceResponse, is_immediate,
};

use crate::api::{CloseReason, Directory, SessionIdentity, SessionKind, TaskTag};
use crate::failure::Failure;
use crate::frame::Pdu;
use crate::keys::Parameters;
use crate::link::{Link, Window};
use crate::params::ConnectionParams;
use crate::serial;
use crate::tasks::{Task, Tasks};
use block::Budget;

/// An exchange of text that is not over.
pub(crate) struct TextExchange {
    pub initiator_tag: u32,
    pub target_tag: u32,
    pub received: Vec<u8>,
    /// What is left of the answer.
    pub answer: Bytes,
}

pub(crate) struct Session {
    pub identity: SessionIdentity,
    pub parameters: Parameters,
    pub connection_id: u16,
    exp_cmd_sn: u32,
    pub tasks: Tasks,
    /// What all sessions of the shard share.
    pub budget: Rc<Budget>,
    /// Write data asked for and not yet answered, of `WRITE_BYTES_PER_SESSION_MAX`.
    pub write_bytes_reserved: usize,
    /// Commands that wait for room in it, first come first served.
    pub waiting_for_room: VecDeque<TaskTag>,
    pub target_tags: TargetTags,
    pub text: Option<TextExchange>,
}

/// Tags of ours that the initiator repeats; never [`RESERVED_TAG`].
#[derive(Default)]
pub(crate) struct TargetTags(u32);

impl TargetTags {
    pub fn next(&mut self) -> u32 {
        self.0 = (self.0 + 1) & 0x7fff_ffff;
        self.0
    }
}

/// Whether a numbered request may be carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    Now,
    Ignore,
    OutOfOrder,
}

impl Session {
    pub fn new(
        identity: SessionIdentity,
        parameters: Parameters,
        (connection_id, cmd_sn): (u16, u32),
        budget: Rc<Budget>,
    ) -> Session {
        Session {
            identity,
            parameters,
            connection_id,
            exp_cmd_sn: cmd_sn,
            tasks: Tasks::default(),
            budget,
            write_bytes_reserved: 0,
            waiting_for_room: VecDeque::new(),
            target_tags: TargetTags::default(),
            text: None,
        }
    }

    /// MaxCmdSN never goes back: it grows by one with every command received and by one with every answer,
    /// and shrinks by one with every command that stays.
    pub fn window(&self) -> Window {
        let room = limits::COMMANDS_PER_SESSION_MAX - self.tasks.ordered();
        Window { exp_cmd_sn: self.exp_cmd_sn, max_cmd_sn: self.exp_cmd_sn.wrapping_add(room).wrapping_sub(1) }
    }

    pub fn on_pdu(
        &mut self,
        link: &mut Link,
        params: &ConnectionParams,
        pdu: Pdu,
        directory: &dyn Directory,
    ) {
        let opcode = Opcode::of(&pdu.header);
        if !pdu.data_intact && opcode != Some(Opcode::DataOut) {
            // What was asked is lost, and at ErrorRecoveryLevel 0 nobody asks again (RFC 7143 §7.8).
            return link.reject_and_close(RejectReason::DataDigestError, &pdu.header, self.window());
        }
        if self.identity.kind == SessionKind::Discovery
            && !matches!(opcode, Some(Opcode::TextRequest | Opcode::LogoutRequest | Opcode::NopOut))
        {
            return link.reject_and_close(RejectReason::ProtocolError, &pdu.header, self.window());
        }
        match opcode {
            Some(Opcode::ScsiCommand) => self.on_scsi_command(link, pdu),
            Some(Opcode::DataOut) => self.on_data_out(link, pdu),
            Some(Opcode::NopOut) => self.on_nop_out(link, &pdu),
            Some(Opcode::TaskManagementRequest) => self.on_task_management(link, &pdu.header),
            Some(Opcode::TextRequest) => self.on_text_request(link, params, &pdu, directory),
            Some(Opcode::LogoutRequest) => self.on_logout(link, &pdu.header),
            Some(Opcode::Snack) => link.reject(RejectReason::SnackReject, &pdu.header, self.window()),
            Some(
                Opcode::LoginRequest
                | Opcode::NopIn
                | Opcode::ScsiResponse
                | Opcode::TaskManagementResponse
                | Opcode::LoginResponse
                | Opcode::TextResponse
                | Opcode::DataIn
                | Opcode::LogoutResponse
                | Opcode::R2t
                | Opcode::AsyncMessage
                | Opcode::Reject,
            ) => link.reject_and_close(RejectReason::ProtocolError, &pdu.header, self.window()),
            None => link.reject(RejectReason::CommandNotSupported, &pdu.header, self.window()),
        }
    }

    /// Checks the number of a request, and uses it up.
    pub fn admit(&mut self, header: &Header) -> Admission {
        if is_immediate(header) {
            return Admission::Now;
        }
        let cmd_sn = u32::from_be_bytes([header[24], header[25], header[26], header[27]]);
        let window = self.window();
        if !serial::is_between(window.exp_cmd_sn, cmd_sn, window.max_cmd_sn) {
            Admission::Ignore
        } else if cmd_sn == window.exp_cmd_sn {
            self.exp_cmd_sn = self.exp_cmd_sn.wrapping_add(1);
            Admission::Now
        } else {
            Admission::OutOfOrder
        }
    }

    /// [`Session::admit`], with what follows where the answer is no.
    pub fn is_admitted(&mut self, link: &mut Link, header: &Header) -> bool {
        match self.admit(header) {
            Admission::Now => true,
            Admission::Ignore => false,
            Admission::OutOfOrder => {
                link.reject_and_close(RejectReason::ProtocolError, header, self.window());
                false
            }
        }
    }

    /// Refuses a numbered request for its content. It counts as received all the same.
    pub fn reject_numbered(&mut self, link: &mut Link, header: &Header, reason: RejectReason) {
        if self.is_admitted(link, header) {
            link.reject(reason, header, self.window());
        }
    }

    fn on_nop_out(&mut self, link: &mut Link, pdu: &Pdu) {
        let nop = match NopOut::parse(&pdu.header) {
            Ok(nop) => nop,
            Err(reason) => return self.reject_numbered(link, &pdu.header, reason),
        };
        if !self.is_admitted(link, &pdu.header) || nop.task_tag == RESERVED_TAG {
            return; // the answer to a NOP-In of ours, which has done its work by coming
        }
        let echo = pdu.data.len().min(self.parameters.send_segment_bytes as usize);
        let echo = pdu.data.slice(0..echo);
        let numbers = link.status_numbers(self.window());
        let answer = NopIn { lun: nop.lun, task_tag: nop.task_tag, target_tag: RESERVED_TAG, numbers };
        link.output.push(&answer.emit(Lengths::data(echo.len())), echo.pieces().iter().cloned());
    }

    /// Asks for a sign of life (RFC 7143 §11.19).
    pub fn probe(&mut self, link: &mut Link) {
        let target_tag = self.target_tags.next();
        let numbers = link.peek_numbers(self.window());
        let nop = NopIn { lun: 0, task_tag: RESERVED_TAG, target_tag, numbers };
        link.output.push_small(&nop.emit(Lengths::default()), &[]);
    }

    fn on_logout(&mut self, link: &mut Link, header: &Header) {
        let request = match LogoutRequest::parse(header) {
            Ok(request) => request,
            Err(reason) => return self.reject_numbered(link, header, reason),
        };
        if !self.is_admitted(link, header) {
            return;
        }
        let result = match request.reason {
            LogoutReason::CloseSession => LogoutResult::Closed,
            LogoutReason::CloseConnection if request.connection_id == self.connection_id => {
                LogoutResult::Closed
            }
            LogoutReason::CloseConnection => LogoutResult::ConnectionNotFound,
            LogoutReason::RemoveForRecovery => LogoutResult::RecoveryNotSupported,
        };
        let response = LogoutResponse {
            result,
            task_tag: request.task_tag,
            numbers: link.status_numbers(self.window()),
            time_to_wait_seconds: self.parameters.time_to_wait_seconds as u16,
            time_to_retain_seconds: 0,
        };
        link.output.push_small(&response.emit(), &[]);
        if result == LogoutResult::Closed {
            link.close(CloseReason::LoggedOut);
        }
    }

    /// Removes a task: no answer is sent for it. Its share of the write budget goes to the next task.
    pub fn drop_task(&mut self, link: &mut Link, tag: TaskTag) -> Option<Task> {
        let task = self.tasks.remove(tag)?;
        self.write_bytes_reserved -= task.reserved_bytes();
        if !self.waiting_for_room.is_empty() {
            self.waiting_for_room.retain(|&waiting| waiting != tag);
            self.hand_out_room(link);
        }
        Some(task)
    }

    /// Answers a command for which there is no room (SAM-5 §5.3.1).
    pub fn refuse_for_room(&mut self, link: &mut Link, initiator_tag: u32, lun: u64, expected_bytes: u32) {
        let status = if self.tasks.has_command(lun) { TASK_SET_FULL } else { BUSY };
        self.end(link, initiator_tag, status, expected_bytes);
    }

    /// Ends a command with a status that comes alone, of whose data nothing was used.
    pub fn end(&mut self, link: &mut Link, initiator_tag: u32, status: u8, expected_bytes: u32) {
        let response = ScsiResponse {
            response: ServiceResponse::Completed,
            status,
            task_tag: initiator_tag,
            numbers: link.status_numbers(self.window()),
            exp_data_sn: 0,
            residual: Residual::new(u64::from(expected_bytes), 0),
            read_residual: Residual::None,
        };
        link.output.push_small(&response.emit(Lengths::default()), &[]);
    }

    /// Answers a command that never reached the engine.
    pub fn fail(&mut self, link: &mut Link, initiator_tag: u32, expected_bytes: u32, failure: Failure) {
        let sense = failure.sense();
        let response = ScsiResponse {
            response: ServiceResponse::Completed,
            status: CHECK_CONDITION,
            task_tag: initiator_tag,
            numbers: link.status_numbers(self.window()),
            exp_data_sn: 0,
            residual: Residual::new(u64::from(expected_bytes), 0),
            read_residual: Residual::None,
        };
        link.output.push_small(&response.emit(Lengths::data(sense.len())), &sense);
    }
}

pub(crate) const CHECK_CONDITION: u8 = 0x02;
const BUSY: u8 = 0x08;
const TASK_SET_FULL: u8 = 0x28;
