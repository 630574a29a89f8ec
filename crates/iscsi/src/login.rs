//! The login phase of a target's connection (RFC 7143 §6.3): stages, text over several PDUs, identity.
//!
//! ```text
//!   security negotiation ──► operational negotiation ──► (engine agrees) full feature phase
//!            └──────────────────────────────────────────────┘
//! ```
//! What always holds: the first request fixes ISID, TSIH and CID; no stage ends without authentication; the text is
//! bounded by `LOGIN_TEXT_BYTES_MAX` and `TEXT_KEYS_MAX`. A refused request ends the connection.

use base::limits;
use wire::iscsi::{
    Header, Lengths, LoginRequest, LoginResponse, LoginStage, LoginStatus, Numbers, Opcode, TextPairs,
    emit_pair, task_tag,
};

use crate::api::{CloseReason, Directory, LoginFault, SessionIdentity, SessionKind};
use crate::frame::Pdu;
use crate::keys::{self, Answer, KEYS, Parameters};
use crate::link::{Link, Window};
use crate::params::ConnectionParams;
use crate::security::{Security, SecurityKeys};

/// MaxRecvDataSegmentLength of both ends until they agree on another (RFC 7143 §13.12).
pub(crate) const LOGIN_SEGMENT_BYTES: usize = 8192;

/// A login in progress.
pub(crate) struct Login {
    first: Option<LoginRequest>,
    stage: LoginStage,
    /// Gathered over requests with the C bit.
    text: Vec<u8>,
    names: Option<Names>,
    /// As the initiator calls itself, known to us or not.
    claimed: Option<String>,
    security: Security,
    agreed: Parameters,
    /// One bit per row of [`KEYS`].
    seen: u64,
    keys: usize,
    segment_stated: bool,
}

const _: () = assert!(KEYS.len() <= 64);

/// Who wants to log in, and to what.
struct Names {
    initiator: String,
    alias: Option<String>,
    target: Option<String>,
    kind: SessionKind,
}

/// A login that needs nothing but the engine's agreement; its last response is held back.
pub(crate) struct ReadyLogin {
    pub identity: SessionIdentity,
    pub agreed: Parameters,
    pub connection_id: u16,
    pub cmd_sn: u32,
    response: LoginResponse,
    text: Vec<u8>,
}

/// What a request led to.
pub(crate) enum LoginStep {
    Continue,
    Ready(Box<ReadyLogin>),
    Refused(LoginStatus),
    /// Not even a login: nothing is answered.
    Dropped,
}

/// The declared names of one text.
#[derive(Default)]
struct Declared<'a> {
    initiator_name: Option<&'a str>,
    initiator_alias: Option<&'a str>,
    target_name: Option<&'a str>,
    session_type: Option<&'a str>,
}

impl<'a> Declared<'a> {
    fn take(&mut self, key: &str, value: &'a str) -> bool {
        let place = match key {
            "InitiatorName" => &mut self.initiator_name,
            "InitiatorAlias" => &mut self.initiator_alias,
            "TargetName" => &mut self.target_name,
            "SessionType" => &mut self.session_type,
            _ => return false,
        };
        *place = Some(value);
        true
    }

    fn any(&self) -> bool {
        [self.initiator_name, self.initiator_alias, self.target_name, self.session_type]
            .iter()
            .any(Option::is_some)
    }
}

impl Login {
    pub fn new() -> Login {
        Login {
            first: None,
            stage: LoginStage::SecurityNegotiation,
            text: Vec::new(),
            names: None,
            claimed: None,
            security: Security::new(Default::default()),
            agreed: Parameters::DEFAULT,
            seen: 0,
            keys: 0,
            segment_stated: false,
        }
    }

    /// One PDU of the initiator.
    pub fn on_pdu(
        &mut self,
        link: &mut Link,
        params: &ConnectionParams,
        pdu: &Pdu,
        directory: &dyn Directory,
        random: &mut dyn FnMut() -> u64,
    ) -> LoginStep {
        if Opcode::of(&pdu.header) != Some(Opcode::LoginRequest) {
            if self.first.is_none() {
                return LoginStep::Dropped; // RFC 7143 §6.3: the first PDU must be a login request
            }
            return self.refuse(link, &pdu.header, LoginStatus::InvalidDuringLogin);
        }
        let request = match LoginRequest::parse(&pdu.header) {
            Ok(request) => request,
            Err(_) => return self.refuse(link, &pdu.header, LoginStatus::InitiatorError),
        };
        match self.on_request(link, params, &request, pdu, directory, random) {
            Ok(step) => step,
            Err(status) => self.refuse(link, &pdu.header, status),
        }
    }

    fn on_request(
        &mut self,
        link: &mut Link,
        params: &ConnectionParams,
        request: &LoginRequest,
        pdu: &Pdu,
        directory: &dyn Directory,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<LoginStep, LoginStatus> {
        self.check_sequence(link, request)?;
        if self.text.len() + pdu.data.len() > limits::LOGIN_TEXT_BYTES_MAX {
            return Err(LoginStatus::OutOfResources);
        }
        for piece in pdu.data.pieces() {
            self.text.extend_from_slice(piece);
        }
        if request.proceed {
            self.respond(link, request, None, Vec::new());
            return Ok(LoginStep::Continue);
        }
        let text = std::mem::take(&mut self.text);
        let mut answers = Vec::new();
        self.on_text(&text, params, directory, &mut answers, random)?;
        if answers.len() > LOGIN_SEGMENT_BYTES {
            return Err(LoginStatus::OutOfResources);
        }
        let next = self.check_transit(request)?;
        if let Some(next) = next {
            self.stage = next;
        }
        if next == Some(LoginStage::FullFeature) {
            return Ok(LoginStep::Ready(Box::new(self.ready(params, request, answers)?)));
        }
        self.respond(link, request, next, answers);
        Ok(LoginStep::Continue)
    }

    /// Does this request belong to the login so far?
    fn check_sequence(&mut self, link: &mut Link, request: &LoginRequest) -> Result<(), LoginStatus> {
        let Some(first) = &self.first else {
            link.stat_sn = request.exp_stat_sn;
            self.first = Some(*request);
            self.stage = request.current_stage;
            if request.version_min > 0 {
                return Err(LoginStatus::UnsupportedVersion);
            }
            if request.tsih != 0 {
                return Err(LoginStatus::SessionDoesNotExist); // sessions have one connection, never another
            }
            return Ok(());
        };
        let same = (request.isid, request.tsih, request.connection_id)
            == (first.isid, first.tsih, first.connection_id);
        if !same || request.current_stage != self.stage {
            return Err(LoginStatus::InitiatorError);
        }
        Ok(())
    }

    fn on_text(
        &mut self,
        text: &[u8],
        params: &ConnectionParams,
        directory: &dyn Directory,
        answers: &mut Vec<u8>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), LoginStatus> {
        let (mut declared, mut security, mut offers) =
            (Declared::default(), SecurityKeys::default(), Vec::new());
        for pair in TextPairs::new(text) {
            let (key, value) = pair.map_err(|_| LoginStatus::InitiatorError)?;
            self.note_key(key)?;
            if !declared.take(key, value) && !security.take(key, value) {
                offers.push((key, value));
            }
        }
        match self.names {
            None => self.on_names(&declared, params, directory, answers)?,
            Some(_) if declared.any() => return Err(LoginStatus::InitiatorError),
            Some(_) => {}
        }
        self.security.on_keys(&security, answers, random)?;
        if self.stage == LoginStage::OperationalNegotiation && !self.security.is_satisfied() {
            return Err(LoginStatus::AuthenticationFailed);
        }
        self.on_offers(&offers, answers);
        Ok(())
    }

    /// Keys are few, and none is sent twice (RFC 7143 §6.2).
    fn note_key(&mut self, key: &str) -> Result<(), LoginStatus> {
        self.keys += 1;
        if self.keys > limits::TEXT_KEYS_MAX {
            return Err(LoginStatus::OutOfResources);
        }
        if let Some(row) = KEYS.iter().position(|known| known.name == key) {
            if self.seen & 1 << row != 0 {
                return Err(LoginStatus::InitiatorError);
            }
            self.seen |= 1 << row;
        }
        Ok(())
    }

    /// The first text says who wants what (RFC 7143 §6.3.1).
    fn on_names(
        &mut self,
        declared: &Declared<'_>,
        params: &ConnectionParams,
        directory: &dyn Directory,
        answers: &mut Vec<u8>,
    ) -> Result<(), LoginStatus> {
        let kind = match declared.session_type {
            None | Some("Normal") => SessionKind::Normal,
            Some("Discovery") => SessionKind::Discovery,
            Some(_) => return Err(LoginStatus::SessionTypeNotSupported),
        };
        let initiator = declared.initiator_name.filter(|name| is_name(name));
        let initiator = initiator.ok_or(LoginStatus::MissingParameter)?.to_ascii_lowercase();
        self.claimed = Some(initiator.clone());
        let target = declared.target_name.map(str::to_ascii_lowercase);
        if kind == SessionKind::Normal && target.is_none() {
            return Err(LoginStatus::MissingParameter);
        }
        let access = match directory.find_host(&initiator) {
            Some(access) => access,
            None if kind == SessionKind::Discovery => Default::default(), // it will be shown nothing
            None => return Err(LoginStatus::AuthorizationFailed),
        };
        if target.as_deref().is_some_and(|target| target != directory.target_name()) {
            return Err(LoginStatus::NotFound);
        }
        if kind == SessionKind::Normal {
            emit_pair(answers, "TargetPortalGroupTag", &params.portal_group_tag.to_string());
            if !directory.target_alias().is_empty() {
                emit_pair(answers, "TargetAlias", directory.target_alias());
            }
        }
        let alias = declared.initiator_alias.map(str::to_string);
        self.security = Security::new(access);
        self.names = Some(Names { initiator, alias, target, kind });
        Ok(())
    }

    fn on_offers(&mut self, offers: &[(&str, &str)], answers: &mut Vec<u8>) {
        let kind = self.names.as_ref().map_or(SessionKind::Normal, |names| names.kind);
        let mut agree = |name, value| match keys::find(name) {
            None => keys::NOT_UNDERSTOOD.into(),
            Some(key) => keys::answer(key, value, kind, Parameters::TARGET, &mut self.agreed),
        };
        // in whatever order they come, FirstBurstLength is answered by what MaxBurstLength has come to
        for &(name, value) in offers.iter().filter(|(name, _)| *name == keys::MAX_BURST_LENGTH) {
            agree(name, value);
        }
        for &(name, value) in offers {
            let answer = agree(name, value);
            match answer {
                Answer::Nothing => {}
                Answer::Word(word) => emit_pair(answers, name, word),
                Answer::Number(number) => emit_pair(answers, name, &number.to_string()),
            }
        }
        if self.stage == LoginStage::OperationalNegotiation && !self.segment_stated {
            let ours = Parameters::TARGET.receive_segment_bytes;
            emit_pair(answers, "MaxRecvDataSegmentLength", &ours.to_string());
            self.agreed.receive_segment_bytes = ours;
            self.segment_stated = true;
        }
    }

    /// Where the initiator may go: nowhere before it is authenticated.
    fn check_transit(&self, request: &LoginRequest) -> Result<Option<LoginStage>, LoginStatus> {
        let Some(next) = request.next_stage else { return Ok(None) };
        if self.security.is_satisfied() {
            return Ok(Some(next));
        }
        if self.security.has_begun() { Ok(None) } else { Err(LoginStatus::AuthenticationFailed) }
    }

    fn ready(
        &self,
        params: &ConnectionParams,
        request: &LoginRequest,
        text: Vec<u8>,
    ) -> Result<ReadyLogin, LoginStatus> {
        let names = self.names.as_ref().ok_or(LoginStatus::MissingParameter)?;
        Ok(ReadyLogin {
            identity: SessionIdentity {
                initiator_name: names.initiator.clone(),
                initiator_alias: names.alias.clone(),
                isid: request.isid,
                target_name: names.target.clone(),
                portal_group_tag: params.portal_group_tag,
                kind: names.kind,
            },
            agreed: self.agreed.within_burst(),
            connection_id: request.connection_id,
            cmd_sn: request.cmd_sn,
            response: response(request, Some(LoginStage::FullFeature), LoginStatus::Success),
            text,
        })
    }

    fn respond(&self, link: &mut Link, request: &LoginRequest, next: Option<LoginStage>, text: Vec<u8>) {
        let numbers = link.status_numbers(window(request.cmd_sn));
        let response = LoginResponse { numbers, ..response(request, next, LoginStatus::Success) };
        link.push_text(&response.emit(Lengths::data(text.len())), text);
    }

    pub fn claimed_initiator(&self) -> Option<&str> {
        self.claimed.as_deref()
    }

    /// What is behind this status.
    pub fn fault(&self, status: LoginStatus) -> LoginFault {
        let (class, detail) = status.codes();
        match status {
            LoginStatus::AuthorizationFailed => LoginFault::UnknownInitiator,
            LoginStatus::NotFound => LoginFault::UnknownTarget,
            LoginStatus::AuthenticationFailed => self.security.fault(),
            _ => LoginFault::Other { class, detail },
        }
    }

    /// Says no, and that is the end of the connection. `header`: of the offending PDU.
    pub fn refuse(&self, link: &mut Link, header: &Header, status: LoginStatus) -> LoginStep {
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let refusal = LoginResponse {
            proceed: false,
            current_stage: self.stage,
            next_stage: None,
            version_max: 0,
            version_active: 0,
            isid: [header[8], header[9], header[10], header[11], header[12], header[13]],
            tsih: 0,
            task_tag: task_tag(header),
            numbers: link.status_numbers(window(word(24))),
            status,
        };
        link.output.push_small(&refusal.emit(Lengths::default()), &[]);
        LoginStep::Refused(status)
    }
}

impl ReadyLogin {
    /// The engine agrees: the last response of the login.
    pub fn complete(&mut self, link: &mut Link, tsih: u16) {
        self.response.tsih = tsih;
        self.response.numbers = link.status_numbers(window(self.cmd_sn));
        let text = std::mem::take(&mut self.text);
        link.push_text(&self.response.emit(Lengths::data(text.len())), text);
    }

    /// The engine does not.
    pub fn refuse(&self, link: &mut Link, status: LoginStatus) {
        let numbers = link.status_numbers(window(self.cmd_sn));
        let refusal = LoginResponse { numbers, status, next_stage: None, ..self.response };
        link.output.push_small(&refusal.emit(Lengths::default()), &[]);
    }
}

/// The window that a new session starts with.
pub(crate) fn window(cmd_sn: u32) -> Window {
    Window {
        exp_cmd_sn: cmd_sn,
        max_cmd_sn: cmd_sn.wrapping_add(limits::COMMANDS_PER_SESSION_MAX).wrapping_sub(1),
    }
}

fn response(request: &LoginRequest, next: Option<LoginStage>, status: LoginStatus) -> LoginResponse {
    LoginResponse {
        proceed: false,
        current_stage: request.current_stage,
        next_stage: next,
        version_max: 0,
        version_active: 0,
        isid: request.isid,
        tsih: request.tsih,
        task_tag: request.task_tag,
        numbers: Numbers::default(),
        status,
    }
}

pub(crate) fn close_reason(status: LoginStatus) -> CloseReason {
    let (class, detail) = status.codes();
    CloseReason::LoginRefused { class, detail }
}

/// RFC 7143 §4.2.7.2: at most 223 bytes.
fn is_name(name: &str) -> bool {
    (1..=223).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic() || byte >= 0x80)
}
