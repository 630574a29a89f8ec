//! An initiator, sans-IO: it logs in, sends commands, and returns their results.
//!
//! It has one session over one connection at ErrorRecoveryLevel 0, with as many outstanding commands as the target's
//! command window allows. The tests of the target, the simulator's hosts and the load generator use it. So it checks
//! everything that it receives: numbers, offsets, lengths, digests. An error ends the session with a [`Fault`].
//!
//! ```text
//!   new ──► logging in ──Event::LoggedIn──► commands, text, NOP ──logout──► Event::LoggedOut
//!                └───────────────── Event::Failed ◄─────┘
//! ```

mod login;
mod task;
mod transfer;

use std::collections::VecDeque;

use block::Payload;
use bytes::{Bytes, BytesMut};
use wire::iscsi::{
    AsyncEvent, AsyncMessage, Header, Lengths, LoginStatus, LogoutReason, LogoutRequest, LogoutResponse,
    LogoutResult, NopIn, NopOut, Numbers, Opcode, RESERVED_TAG, Reject, RejectReason, Residual,
    TaskManagementResult, TextRequest, TextResponse,
};

use crate::api::{Chap, TaskAttribute};
use crate::frame::{Assembler, FrameError, Pdu};
use crate::keys::Parameters;
use crate::login::LOGIN_SEGMENT_BYTES;
use crate::output::Output;
use crate::serial;
use login::Login;
use task::{Kind, Tasks};

/// Who logs in, to what, and with which wishes.
#[derive(Clone, Debug)]
pub struct InitiatorParams {
    pub initiator_name: String,
    pub isid: [u8; 6],
    /// None: a discovery session.
    pub target_name: Option<String>,
    /// What we prove.
    pub chap: Option<Chap>,
    /// What the target must prove; only together with `chap`.
    pub mutual: Option<Chap>,
    /// `CHAP_A`, by preference: 5 is MD5, 7 is SHA-256, 8 is SHA3-256.
    pub chap_algorithms: String,
    /// What is offered. `receive_segment_bytes` is stated.
    pub wanted: Parameters,
    /// The first CmdSN.
    pub cmd_sn: u32,
}

impl InitiatorParams {
    pub fn new(initiator_name: &str, target_name: Option<&str>) -> InitiatorParams {
        InitiatorParams {
            initiator_name: initiator_name.to_string(),
            isid: [0x80, 0, 0, 0, 0, 1],
            target_name: target_name.map(str::to_string),
            chap: None,
            mutual: None,
            chap_algorithms: "7,5".to_string(),
            wanted: Parameters {
                initial_r2t: false,
                receive_segment_bytes: 256 << 10,
                max_burst_bytes: 1 << 20,
                ..Parameters::DEFAULT
            },
            cmd_sn: 1,
        }
    }
}

/// Names a request until its event; the low 16 bits are a small number that is reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag(pub u32);

impl Tag {
    pub fn slot(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// A SCSI command.
#[derive(Clone, Debug)]
pub struct Request {
    pub lun: u64,
    pub cdb: [u8; 16],
    /// What follows the first 16 bytes of a longer CDB.
    pub cdb_extra: Bytes,
    pub attribute: TaskAttribute,
    pub data_out: Payload,
    pub expected_in: u32,
    pub immediate: bool,
}

impl Request {
    pub fn new(lun: u64, cdb: [u8; 16]) -> Request {
        Request {
            lun,
            cdb,
            cdb_extra: Bytes::new(),
            attribute: TaskAttribute::Simple,
            data_out: Payload::new(),
            expected_in: 0,
            immediate: false,
        }
    }
}

/// What came of a command.
#[derive(Clone, Debug)]
pub struct Completion {
    pub status: u8,
    /// Without its length field.
    pub sense: Bytes,
    pub data_in: Payload,
    pub residual: Residual,
    /// Of the read of a bidirectional command.
    pub read_residual: Residual,
}

/// A target that SendTargets told of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetRecord {
    pub name: String,
    /// `address:port,portal group tag`.
    pub addresses: Vec<String>,
}

/// What has happened.
#[derive(Clone, Debug)]
pub enum Event {
    LoggedIn {
        tsih: u16,
        parameters: Parameters,
    },
    Completed(Tag, Completion),
    /// `ended`: commands that will not be answered any more.
    TaskManagement {
        tag: Tag,
        result: TaskManagementResult,
        ended: Vec<Tag>,
    },
    /// The answer to [`Initiator::nop`], with its data.
    Pong(Tag, Payload),
    Targets(Vec<TargetRecord>),
    Async(AsyncEvent),
    Rejected(RejectReason, Header),
    LoggedOut(LogoutResult),
    /// The last event.
    Failed(Fault),
}

/// Why a session cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    LoginRefused(LoginStatus),
    /// The target answered an offer with what the offer does not allow, or the login makes no headway.
    Negotiation,
    /// The target did not prove what mutual CHAP asks of it.
    TargetNotAuthentic,
    HeaderDigest,
    DataDigest,
    /// A PDU that makes no sense here.
    UnexpectedPdu,
    /// A StatSN that is not the next one.
    StatusNumber,
    /// DataSN, offset, length or sequence of data that do not follow each other.
    DataSequence,
}

/// Text of one answer, over all its PDUs.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionNumbers {
    /// The next command's.
    pub cmd_sn: u32,
    pub max_cmd_sn: u32,
    /// The next status's.
    pub exp_stat_sn: u32,
}

/// The window is full: wait for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowFull;

enum Phase {
    Login(Box<Login>),
    FullFeature,
    Over,
}

pub struct Initiator {
    params: InitiatorParams,
    parameters: Parameters,
    phase: Phase,
    assembler: Assembler,
    output: Output,
    events: VecDeque<Event>,
    tasks: Tasks,
    cmd_sn: u32,
    max_cmd_sn: u32,
    exp_stat_sn: u32,
    text: Vec<u8>,
}

impl Initiator {
    /// Its first login request is ready to be taken.
    pub fn new(params: InitiatorParams) -> Initiator {
        let mut initiator = Initiator {
            parameters: Parameters::DEFAULT,
            phase: Phase::Over,
            assembler: Assembler::new(LOGIN_SEGMENT_BYTES),
            output: Output::new(),
            events: VecDeque::new(),
            tasks: Tasks::default(),
            cmd_sn: params.cmd_sn,
            max_cmd_sn: params.cmd_sn,
            exp_stat_sn: 0,
            text: Vec::new(),
            params,
        };
        initiator.begin_login();
        initiator
    }

    /// Consumes what was received.
    pub fn on_receive(&mut self, input: &mut BytesMut, random: &mut dyn FnMut() -> u64) {
        while !matches!(self.phase, Phase::Over) {
            let done = match self.assembler.next(input) {
                Ok(None) => return,
                Ok(Some(pdu)) => self.on_pdu(pdu, random),
                Err(FrameError::HeaderDigest) => Err(Fault::HeaderDigest),
                Err(FrameError::Length { .. }) => Err(Fault::UnexpectedPdu),
            };
            if let Err(fault) = done {
                self.events.push_back(Event::Failed(fault));
                self.phase = Phase::Over;
            }
        }
        input.clear();
    }

    pub fn receive_bytes_wanted(&self) -> usize {
        self.assembler.bytes_wanted()
    }

    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub fn take_output(&mut self) -> Vec<Bytes> {
        self.output.take()
    }

    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    pub fn queued_bytes(&self) -> usize {
        self.output.queued_bytes()
    }

    /// Whether [`Initiator::command`] would be let in.
    pub fn can_send(&self) -> bool {
        matches!(self.phase, Phase::FullFeature) && !serial::is_before(self.max_cmd_sn, self.cmd_sn)
    }

    /// For a caller that continues the session itself; no request may be outstanding.
    pub fn numbers(&self) -> SessionNumbers {
        assert!(self.outstanding() == 0 && self.output.is_empty(), "a session is handed on at rest");
        let &Initiator { cmd_sn, max_cmd_sn, exp_stat_sn, .. } = self;
        SessionNumbers { cmd_sn, max_cmd_sn, exp_stat_sn }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Requests that have not been answered.
    pub fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    /// Removes a command that another initiator has ended by a reset, so it will not be answered. `false`: it was
    /// answered, or does not exist.
    pub fn forget(&mut self, tag: Tag) -> bool {
        self.tasks.take_command(tag).is_some()
    }

    fn on_pdu(&mut self, pdu: Pdu, random: &mut dyn FnMut() -> u64) -> Result<(), Fault> {
        if !pdu.data_intact {
            return Err(Fault::DataDigest);
        }
        let opcode = Opcode::of(&pdu.header).ok_or(Fault::UnexpectedPdu)?;
        if matches!(self.phase, Phase::Login(_)) {
            return match opcode {
                Opcode::LoginResponse => self.on_login_response(&pdu, random),
                _ => Err(Fault::UnexpectedPdu),
            };
        }
        match opcode {
            Opcode::ScsiResponse => self.on_scsi_response(&pdu),
            Opcode::DataIn => self.on_data_in(pdu),
            Opcode::R2t => self.on_r2t(&pdu.header),
            Opcode::NopIn => self.on_nop_in(pdu),
            Opcode::TaskManagementResponse => self.on_task_management_response(&pdu.header),
            Opcode::TextResponse => self.on_text_response(&pdu),
            Opcode::LogoutResponse => self.on_logout_response(&pdu.header),
            Opcode::AsyncMessage => {
                let message = meaning(AsyncMessage::parse(&pdu.header))?;
                self.on_status(message.numbers)?;
                self.events.push_back(Event::Async(message.event));
                Ok(())
            }
            Opcode::Reject => {
                let reject = meaning(Reject::parse(&pdu.header))?;
                self.on_status(reject.numbers)?;
                let header = pdu.data.to_vec().try_into().map_err(|_| Fault::UnexpectedPdu)?;
                self.events.push_back(Event::Rejected(reject.reason, header));
                Ok(())
            }
            _ => Err(Fault::UnexpectedPdu),
        }
    }

    /// Takes note of numbers that come with a status.
    fn on_status(&mut self, numbers: Numbers) -> Result<(), Fault> {
        if numbers.stat_sn != self.exp_stat_sn {
            return Err(Fault::StatusNumber);
        }
        self.exp_stat_sn = self.exp_stat_sn.wrapping_add(1);
        self.on_window(numbers.exp_cmd_sn, numbers.max_cmd_sn);
        Ok(())
    }

    /// RFC 7143 §4.2.2.1: numbers that go back are old and are ignored.
    fn on_window(&mut self, exp_cmd_sn: u32, max_cmd_sn: u32) {
        let empty = exp_cmd_sn.wrapping_sub(1);
        if !serial::is_before(max_cmd_sn, empty) && serial::is_before(self.max_cmd_sn, max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
        }
    }

    /// The number of a request, used up unless it is immediate.
    fn number(&mut self, immediate: bool) -> u32 {
        let number = self.cmd_sn;
        if !immediate {
            self.cmd_sn = self.cmd_sn.wrapping_add(1);
        }
        number
    }

    /// Sends a ping; [`Event::Pong`] brings its data back. Full feature phase only.
    pub fn nop(&mut self, data: Bytes) -> Tag {
        let tag = self.tasks.insert(Kind::Nop, 0);
        let nop = NopOut {
            immediate: true,
            lun: 0,
            task_tag: tag.0,
            target_tag: RESERVED_TAG,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.output.push(&nop.emit(Lengths::data(data.len())), [data]);
        tag
    }

    fn on_nop_in(&mut self, pdu: Pdu) -> Result<(), Fault> {
        let nop = meaning(NopIn::parse(&pdu.header))?;
        if nop.task_tag != RESERVED_TAG {
            self.on_status(nop.numbers)?;
            let tag = Tag(nop.task_tag);
            self.tasks.take(tag, |kind| matches!(kind, Kind::Nop)).ok_or(Fault::UnexpectedPdu)?;
            self.events.push_back(Event::Pong(tag, pdu.data));
            return Ok(());
        }
        self.on_window(nop.numbers.exp_cmd_sn, nop.numbers.max_cmd_sn);
        if nop.target_tag != RESERVED_TAG {
            let answer = NopOut {
                immediate: true,
                lun: nop.lun,
                task_tag: RESERVED_TAG,
                target_tag: nop.target_tag,
                cmd_sn: self.cmd_sn,
                exp_stat_sn: self.exp_stat_sn,
            };
            self.output.push_small(&answer.emit(Lengths::default()), &[]);
        }
        Ok(())
    }

    /// Asks which targets there are: "All", a name, or "" for the one logged in to.
    pub fn send_targets(&mut self, which: &str) {
        let mut text = Vec::new();
        wire::iscsi::emit_pair(&mut text, "SendTargets", which);
        let tag = self.tasks.insert(Kind::Text, 0);
        self.send_text(tag.0, RESERVED_TAG, text);
    }

    fn send_text(&mut self, task_tag: u32, target_tag: u32, text: Vec<u8>) {
        let request = TextRequest {
            immediate: false,
            is_final: true,
            proceed: false,
            lun: 0,
            task_tag,
            target_tag,
            cmd_sn: self.number(false),
            exp_stat_sn: self.exp_stat_sn,
        };
        self.output.push(&request.emit(Lengths::data(text.len())), [Bytes::from(text)]);
    }

    fn on_text_response(&mut self, pdu: &Pdu) -> Result<(), Fault> {
        let response = meaning(TextResponse::parse(&pdu.header))?;
        self.on_status(response.numbers)?;
        if self.text.len() + pdu.data.len() > TEXT_BYTES_MAX {
            return Err(Fault::UnexpectedPdu);
        }
        self.text.extend_from_slice(&pdu.data.to_vec());
        if !response.is_final {
            self.send_text(response.task_tag, response.target_tag, Vec::new());
            return Ok(());
        }
        let is_text = |kind: &Kind| matches!(kind, Kind::Text);
        self.tasks.take(Tag(response.task_tag), is_text).ok_or(Fault::UnexpectedPdu)?;
        let text = std::mem::take(&mut self.text);
        let mut targets: Vec<TargetRecord> = Vec::new();
        for pair in wire::iscsi::TextPairs::new(&text) {
            match pair.map_err(|_| Fault::UnexpectedPdu)? {
                ("TargetName", name) => {
                    targets.push(TargetRecord { name: name.to_string(), addresses: Vec::new() });
                }
                ("TargetAddress", address) => {
                    let target = targets.last_mut().ok_or(Fault::UnexpectedPdu)?;
                    target.addresses.push(address.to_string());
                }
                _ => {}
            }
        }
        self.events.push_back(Event::Targets(targets));
        Ok(())
    }

    /// Ends the session in an orderly manner.
    pub fn logout(&mut self) {
        let tag = self.tasks.insert(Kind::Logout, 0);
        let request = LogoutRequest {
            immediate: true,
            reason: LogoutReason::CloseSession,
            task_tag: tag.0,
            connection_id: login::CONNECTION_ID,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.output.push_small(&request.emit(), &[]);
    }

    fn on_logout_response(&mut self, header: &Header) -> Result<(), Fault> {
        let response = meaning(LogoutResponse::parse(header))?;
        self.on_status(response.numbers)?;
        let is_logout = |kind: &Kind| matches!(kind, Kind::Logout);
        self.tasks.take(Tag(response.task_tag), is_logout).ok_or(Fault::UnexpectedPdu)?;
        self.events.push_back(Event::LoggedOut(response.result));
        if response.result == LogoutResult::Closed {
            self.phase = Phase::Over;
        }
        Ok(())
    }
}

/// An initiator rejects nothing: a PDU that it cannot parse ends the session.
fn meaning<T>(parsed: Result<T, RejectReason>) -> Result<T, Fault> {
    parsed.map_err(|_| Fault::UnexpectedPdu)
}
