//! The target's side of authentication: AuthMethod None and CHAP, one-way and mutual (RFC 7143 §12.1).
//!
//! ```text
//!   Start ──AuthMethod──► (None) Done
//!     └────AuthMethod──► (CHAP) NeedAlgorithm ──CHAP_A──► Challenged ──CHAP_N, CHAP_R [, CHAP_I, CHAP_C]──► Done
//! ```
//! The target authenticates itself only to an initiator that has authenticated first.

use base::secret::is_same;
use wire::iscsi::{LoginStatus, emit_pair};

use crate::api::{Chap, HostAccess, LoginFault};
use crate::chap::{self, Algorithm};

/// The keys of one login text that concern authentication.
#[derive(Clone, Copy, Default)]
pub(crate) struct SecurityKeys<'a> {
    pub auth_method: Option<&'a str>,
    pub algorithms: Option<&'a str>,
    pub identifier: Option<&'a str>,
    pub challenge: Option<&'a str>,
    pub name: Option<&'a str>,
    pub response: Option<&'a str>,
}

impl<'a> SecurityKeys<'a> {
    /// Keeps the value where the key is one of ours.
    pub fn take(&mut self, key: &str, value: &'a str) -> bool {
        let place = match key {
            "AuthMethod" => &mut self.auth_method,
            "CHAP_A" => &mut self.algorithms,
            "CHAP_I" => &mut self.identifier,
            "CHAP_C" => &mut self.challenge,
            "CHAP_N" => &mut self.name,
            "CHAP_R" => &mut self.response,
            _ => return false,
        };
        *place = Some(value);
        true
    }

    fn any_of_chap(&self) -> bool {
        [self.algorithms, self.identifier, self.challenge, self.name, self.response]
            .iter()
            .any(Option::is_some)
    }
}

enum State {
    Start,
    NeedAlgorithm,
    Challenged { algorithm: Algorithm, identifier: u8, challenge: Vec<u8> },
    Done,
}

pub(crate) struct Security {
    state: State,
    access: HostAccess,
    /// The initiator is who it says, and wants us to prove ourselves, which we cannot.
    no_mutual_secret: bool,
}

impl Security {
    pub fn new(access: HostAccess) -> Security {
        Security { state: State::Start, access, no_mutual_secret: false }
    }

    /// Whether the initiator may go on to the next stage.
    pub fn is_satisfied(&self) -> bool {
        match self.state {
            State::Done => true,
            State::Start => self.access.chap.is_none(),
            State::NeedAlgorithm | State::Challenged { .. } => false,
        }
    }

    /// Whether an exchange is under way.
    pub fn has_begun(&self) -> bool {
        !matches!(self.state, State::Start)
    }

    /// Why the initiator is not authenticated.
    pub fn fault(&self) -> LoginFault {
        match self.state {
            _ if self.no_mutual_secret => LoginFault::NoMutualSecret,
            State::Challenged { .. } => LoginFault::WrongSecret,
            State::Start | State::NeedAlgorithm | State::Done => LoginFault::ChapNotOffered,
        }
    }

    /// One step; answers are appended to `out`.
    pub fn on_keys(
        &mut self,
        keys: &SecurityKeys<'_>,
        out: &mut Vec<u8>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), LoginStatus> {
        match &self.state {
            State::Start => self.choose_method(keys, out),
            State::NeedAlgorithm => self.challenge(keys, out, random),
            State::Challenged { .. } => self.verify(keys, out),
            State::Done if keys.any_of_chap() => Err(LoginStatus::InitiatorError),
            State::Done => Ok(()),
        }
    }

    fn choose_method(&mut self, keys: &SecurityKeys<'_>, out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        if keys.any_of_chap() {
            return Err(LoginStatus::InitiatorError);
        }
        let Some(offered) = keys.auth_method else { return Ok(()) };
        let (method, next) = match self.access.chap {
            Some(_) => ("CHAP", State::NeedAlgorithm),
            None => ("None", State::Done),
        };
        if !offered.split(',').any(|word| word == method) {
            return Err(LoginStatus::AuthenticationFailed);
        }
        emit_pair(out, "AuthMethod", method);
        self.state = next;
        Ok(())
    }

    fn challenge(
        &mut self,
        keys: &SecurityKeys<'_>,
        out: &mut Vec<u8>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), LoginStatus> {
        let Some(offered) = keys.algorithms else {
            return if keys.any_of_chap() { Err(LoginStatus::InitiatorError) } else { Ok(()) };
        };
        let algorithm = Algorithm::choose(offered).ok_or(LoginStatus::AuthenticationFailed)?;
        let identifier = random() as u8;
        let challenge = chap::challenge(algorithm, random);
        emit_pair(out, "CHAP_A", algorithm.number());
        emit_pair(out, "CHAP_I", &identifier.to_string());
        emit_pair(out, "CHAP_C", &chap::to_hex(&challenge));
        self.state = State::Challenged { algorithm, identifier, challenge };
        Ok(())
    }

    fn verify(&mut self, keys: &SecurityKeys<'_>, out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        let State::Challenged { algorithm, identifier, challenge } = &self.state else { return Ok(()) };
        let (Some(name), Some(response)) = (keys.name, keys.response) else {
            return Err(LoginStatus::MissingParameter);
        };
        let Some(Chap { user, secret }) = &self.access.chap else {
            return Err(LoginStatus::AuthenticationFailed);
        };
        let expected = algorithm.respond(*identifier, &secret.0, challenge);
        let response = chap::from_binary_value(response).ok_or(LoginStatus::AuthenticationFailed)?;
        let name_matches = is_same(name.as_bytes(), user.as_bytes());
        if !(is_same(&response, &expected) & name_matches) {
            return Err(LoginStatus::AuthenticationFailed);
        }
        if let Some((their_identifier, their_challenge)) = mutual_challenge(keys)? {
            if their_challenge == *challenge {
                return Err(LoginStatus::AuthenticationFailed); // our own challenge, reflected
            }
            let Some(Chap { user, secret }) = &self.access.mutual else {
                self.no_mutual_secret = true;
                return Err(LoginStatus::AuthenticationFailed);
            };
            let response = algorithm.respond(their_identifier, &secret.0, &their_challenge);
            emit_pair(out, "CHAP_N", user);
            emit_pair(out, "CHAP_R", &chap::to_hex(&response));
        }
        self.state = State::Done;
        Ok(())
    }
}

/// What the initiator wants us to prove; None: nothing.
fn mutual_challenge(keys: &SecurityKeys<'_>) -> Result<Option<(u8, Vec<u8>)>, LoginStatus> {
    match (keys.identifier, keys.challenge) {
        (None, None) => Ok(None),
        (Some(identifier), Some(challenge)) => {
            let identifier =
                crate::keys::parse_number(identifier).and_then(|number| u8::try_from(number).ok());
            let challenge = chap::from_binary_value(challenge);
            identifier.zip(challenge).map(Some).ok_or(LoginStatus::AuthenticationFailed)
        }
        _ => Err(LoginStatus::MissingParameter),
    }
}
