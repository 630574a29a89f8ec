//! Logins and sessions as events: who logged in, who was refused and why, whose session ended and why.
//!
//! Every connection that tries to log in leads to exactly one refusal, or to one login and later its end. A connection
//! that closes without sending anything causes no event.

use api::{EventFacts, LoginLimit, LoginRefusal, SessionEnd, Subject};
use iscsi::{CloseReason, LoginFault};
use shard::SessionLimit;

/// Why a connection does not become a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Login(LoginRefusal),
    /// Too many wrong secrets came from its address.
    TooManyFailures,
}

impl From<LoginRefusal> for Refusal {
    fn from(refusal: LoginRefusal) -> Refusal {
        Refusal::Login(refusal)
    }
}

impl From<LoginFault> for Refusal {
    fn from(fault: LoginFault) -> Refusal {
        Refusal::Login(match fault {
            LoginFault::UnknownInitiator => LoginRefusal::UnknownInitiator,
            LoginFault::UnknownTarget => LoginRefusal::UnknownTarget,
            LoginFault::ChapNotOffered => LoginRefusal::ChapNotOffered,
            LoginFault::WrongSecret => LoginRefusal::WrongSecret,
            LoginFault::NoMutualSecret => LoginRefusal::NoMutualSecret,
            LoginFault::Other { class, detail } => LoginRefusal::NotValid { class, detail },
        })
    }
}

impl From<SessionLimit> for Refusal {
    fn from(limit: SessionLimit) -> Refusal {
        Refusal::Login(LoginRefusal::TooManySessions(match limit {
            SessionLimit::Host => LoginLimit::Host,
            SessionLimit::Address => LoginLimit::Address,
            SessionLimit::Shard => LoginLimit::Core,
        }))
    }
}

/// The reason that the protocol gives. `None`: the shard closed the session and knows the exact reason.
pub(crate) fn session_end(reason: CloseReason) -> Option<SessionEnd> {
    match reason {
        CloseReason::LoggedOut => Some(SessionEnd::LoggedOut),
        CloseReason::Unresponsive => Some(SessionEnd::Unresponsive),
        CloseReason::ProtocolError => Some(SessionEnd::ProtocolError),
        CloseReason::HeaderDigestError | CloseReason::DataDigestError => Some(SessionEnd::DigestError),
        CloseReason::LoginRefused { .. } | CloseReason::LoginTimedOut | CloseReason::Requested => None,
    }
}

/// What is known of the two ends of a connection.
pub(crate) struct ConnectionEnds {
    /// Its host, once it is logged in.
    pub(crate) host: Option<String>,
    /// The initiator's name as the peer gave it. Not verified before the login is complete.
    pub(crate) initiator: Option<String>,
    pub(crate) peer: std::net::SocketAddr,
    pub(crate) local: std::net::SocketAddr,
}

impl ConnectionEnds {
    fn subject(&self) -> Subject {
        match (&self.host, &self.initiator) {
            (Some(host), _) => Subject::Host(host.clone()),
            (None, Some(initiator)) => Subject::Initiator(initiator.clone()),
            (None, None) => Subject::Address(self.peer.ip().to_string()),
        }
    }

    pub(crate) fn began(self) -> (Subject, EventFacts) {
        let subject = self.subject();
        let (peer, portal) = (self.peer.to_string(), self.local.to_string());
        let initiator = self.initiator.unwrap_or_default();
        (subject, EventFacts::SessionBegan { initiator, peer, portal })
    }

    pub(crate) fn ended(self, end: SessionEnd) -> (Subject, EventFacts) {
        let subject = self.subject();
        let (peer, portal) = (self.peer.to_string(), self.local.to_string());
        let initiator = self.initiator.unwrap_or_default();
        (subject, EventFacts::SessionEnded { initiator, peer, portal, end })
    }

    pub(crate) fn refused(self, refusal: Refusal) -> (Subject, EventFacts) {
        let portal = self.local.to_string();
        match refusal {
            Refusal::TooManyFailures => {
                (Subject::Address(self.peer.ip().to_string()), EventFacts::AddressBlocked { portal })
            }
            Refusal::Login(refusal) => {
                let (subject, peer) = (self.subject(), self.peer.to_string());
                (subject, EventFacts::LoginRefused { initiator: self.initiator, peer, portal, refusal })
            }
        }
    }
}
