//! The login of an initiator: names, CHAP, offered keys (RFC 7143 §6.3, §12.1).

use base::secret::is_same;
use bytes::Bytes;
use wire::iscsi::{Lengths, LoginRequest, LoginResponse, LoginStage, LoginStatus, TextPairs, emit_pair};

use super::{Event, Fault, Initiator, Phase, meaning};
use crate::api::{Chap, SessionKind};
use crate::chap::{self, Algorithm};
use crate::frame::Pdu;
use crate::keys;
use crate::login::LOGIN_SEGMENT_BYTES;
use crate::security::SecurityKeys;

/// Ours in every session.
pub(super) const CONNECTION_ID: u16 = 0;
const LOGIN_TAG: u32 = 0;
/// Responses until a login that makes no headway is given up.
const STEPS_MAX: u32 = 32;

/// A login in progress.
pub(super) struct Login {
    stage: LoginStage,
    text: Vec<u8>,
    steps: u32,
    /// What the target must answer to our challenge; None: nothing (any more).
    target_owes: Option<Vec<u8>>,
    authenticated: bool,
}

impl Initiator {
    pub(super) fn begin_login(&mut self) {
        let login = Login {
            stage: LoginStage::SecurityNegotiation,
            text: Vec::new(),
            steps: 0,
            target_owes: None,
            authenticated: false,
        };
        self.phase = Phase::Login(Box::new(login));
        let mut text = Vec::new();
        emit_pair(&mut text, "InitiatorName", &self.params.initiator_name);
        match &self.params.target_name {
            Some(name) => emit_pair(&mut text, "TargetName", name),
            None => emit_pair(&mut text, "SessionType", "Discovery"),
        }
        let method = if self.params.chap.is_some() { "CHAP" } else { "None" };
        emit_pair(&mut text, "AuthMethod", method);
        let next = self.params.chap.is_none().then_some(LoginStage::OperationalNegotiation);
        self.send_login(LoginStage::SecurityNegotiation, next, text);
    }

    fn send_login(&mut self, stage: LoginStage, next: Option<LoginStage>, text: Vec<u8>) {
        let request = LoginRequest {
            proceed: false,
            current_stage: stage,
            next_stage: next,
            version_max: 0,
            version_min: 0,
            isid: self.params.isid,
            tsih: 0,
            task_tag: LOGIN_TAG,
            connection_id: CONNECTION_ID,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.output.push(&request.emit(Lengths::data(text.len())), [Bytes::from(text)]);
    }

    fn kind(&self) -> SessionKind {
        match self.params.target_name {
            Some(_) => SessionKind::Normal,
            None => SessionKind::Discovery,
        }
    }

    pub(super) fn on_login_response(
        &mut self,
        pdu: &Pdu,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), Fault> {
        let response = meaning(LoginResponse::parse(&pdu.header))?;
        if response.status != LoginStatus::Success {
            return Err(Fault::LoginRefused(response.status));
        }
        let Phase::Login(login) = &mut self.phase else { return Err(Fault::UnexpectedPdu) };
        login.steps += 1;
        let first = login.steps == 1;
        if login.steps > STEPS_MAX || response.current_stage != login.stage {
            return Err(Fault::Negotiation);
        }
        if login.text.len() + pdu.data.len() > 2 * LOGIN_SEGMENT_BYTES {
            return Err(Fault::Negotiation);
        }
        login.text.extend_from_slice(&pdu.data.to_vec());
        if first {
            self.exp_stat_sn = response.numbers.stat_sn;
        }
        self.on_status(response.numbers)?;
        let Phase::Login(login) = &mut self.phase else { return Err(Fault::UnexpectedPdu) };
        let stage = login.stage;
        if response.proceed {
            self.send_login(stage, None, Vec::new());
            return Ok(());
        }
        let text = std::mem::take(&mut login.text);
        match stage {
            LoginStage::SecurityNegotiation => self.on_security(&text, &response, random),
            _ => self.on_operational(&text, &response),
        }
    }

    fn on_security(
        &mut self,
        text: &[u8],
        response: &LoginResponse,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), Fault> {
        let mut keys = SecurityKeys::default();
        for pair in TextPairs::new(text) {
            let (key, value) = pair.map_err(|_| Fault::Negotiation)?;
            keys.take(key, value);
        }
        let Phase::Login(login) = &mut self.phase else { return Err(Fault::UnexpectedPdu) };
        if let Some(expected) = login.target_owes.take() {
            check_target(&keys, self.params.mutual.as_ref(), &expected)?;
            login.authenticated = true;
        }
        if response.next_stage.is_some() {
            if self.params.chap.is_some() && !login.authenticated {
                return Err(Fault::TargetNotAuthentic);
            }
            return self.begin_operational(response);
        }
        let mut out = Vec::new();
        let mut next = None;
        match (keys.auth_method, keys.algorithms) {
            (Some("CHAP"), _) if self.params.chap.is_some() => {
                emit_pair(&mut out, "CHAP_A", &self.params.chap_algorithms);
            }
            (None, Some(algorithm)) => {
                self.answer_challenge(algorithm, &keys, random, &mut out)?;
                next = Some(LoginStage::OperationalNegotiation);
            }
            (Some("None"), _) | (None, None) => next = Some(LoginStage::OperationalNegotiation),
            (Some(_), _) => return Err(Fault::Negotiation),
        }
        self.send_login(LoginStage::SecurityNegotiation, next, out);
        Ok(())
    }

    fn answer_challenge(
        &mut self,
        algorithm: &str,
        keys: &SecurityKeys<'_>,
        random: &mut dyn FnMut() -> u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Phase::Login(login) = &mut self.phase else { return Err(Fault::UnexpectedPdu) };
        let chap = self.params.chap.as_ref().ok_or(Fault::Negotiation)?;
        let algorithm = Algorithm::choose(algorithm).ok_or(Fault::Negotiation)?;
        let identifier = keys.identifier.and_then(|text| text.parse().ok()).ok_or(Fault::Negotiation)?;
        let challenge = keys.challenge.and_then(chap::from_binary_value).ok_or(Fault::Negotiation)?;
        emit_pair(out, "CHAP_N", &chap.user);
        emit_pair(out, "CHAP_R", &chap::to_hex(&algorithm.respond(identifier, &chap.secret.0, &challenge)));
        match &self.params.mutual {
            None => login.authenticated = true,
            Some(mutual) => {
                let identifier = random() as u8;
                let ours = chap::challenge(algorithm, random);
                emit_pair(out, "CHAP_I", &identifier.to_string());
                emit_pair(out, "CHAP_C", &chap::to_hex(&ours));
                login.target_owes = Some(algorithm.respond(identifier, &mutual.secret.0, &ours));
            }
        }
        Ok(())
    }

    fn begin_operational(&mut self, response: &LoginResponse) -> Result<(), Fault> {
        let stage = LoginStage::OperationalNegotiation;
        if response.next_stage != Some(stage) {
            return Err(Fault::Negotiation);
        }
        let Phase::Login(login) = &mut self.phase else { return Err(Fault::UnexpectedPdu) };
        login.stage = stage;
        let mut text = Vec::new();
        for (key, value) in keys::offers(self.params.wanted, self.kind()) {
            emit_pair(&mut text, key, &value);
        }
        self.send_login(stage, Some(LoginStage::FullFeature), text);
        Ok(())
    }

    fn on_operational(&mut self, text: &[u8], response: &LoginResponse) -> Result<(), Fault> {
        let wanted = self.params.wanted;
        for pair in TextPairs::new(text) {
            let (name, value) = pair.map_err(|_| Fault::Negotiation)?;
            let agreed =
                keys::find(name).is_none_or(|key| keys::accept(key, value, wanted, &mut self.parameters));
            if !agreed {
                return Err(Fault::Negotiation);
            }
        }
        if response.next_stage != Some(LoginStage::FullFeature) {
            let stage = LoginStage::OperationalNegotiation;
            self.send_login(stage, Some(LoginStage::FullFeature), Vec::new());
            return Ok(());
        }
        self.parameters.receive_segment_bytes = wanted.receive_segment_bytes;
        self.parameters = self.parameters.within_burst();
        let parameters = self.parameters;
        self.phase = Phase::FullFeature;
        self.assembler.header_digest = parameters.header_digest;
        self.assembler.data_digest = parameters.data_digest;
        self.assembler.data_bytes_max = parameters.receive_segment_bytes as usize;
        self.output.header_digest = parameters.header_digest;
        self.output.data_digest = parameters.data_digest;
        self.events.push_back(Event::LoggedIn { tsih: response.tsih, parameters });
        Ok(())
    }
}

fn check_target(keys: &SecurityKeys<'_>, mutual: Option<&Chap>, expected: &[u8]) -> Result<(), Fault> {
    let name = keys.name.zip(mutual).is_some_and(|(name, mutual)| name == mutual.user);
    let response = keys.response.and_then(chap::from_binary_value);
    let proved = response.is_some_and(|response| is_same(&response, expected));
    if name && proved { Ok(()) } else { Err(Fault::TargetNotAuthentic) }
}
