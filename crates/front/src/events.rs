//! What happens at the front door, told as values to whoever embeds the engine: who logged in, who was refused and why, whose
//! session ended and why.
//!
//! Every connection that tries to log in ends with exactly one of these: a refusal, or a login and later its end. One that
//! comes and goes without a word is not told.

use std::net::SocketAddr;
use std::sync::Arc;

use iscsi::{CloseReason, LoginFault, SessionKind};
use shard::SessionLimit;

use crate::session::Session;

/// Something that happened to a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionEvent {
    pub peer: SocketAddr,
    /// Our end.
    pub local: SocketAddr,
    /// As the peer calls itself, where it has said so. Not proved before it is logged in.
    pub initiator: Option<String>,
    /// The host that the initiator belongs to, once it is logged in.
    pub host: Option<String>,
    pub discovery: bool,
    pub change: SessionChange,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionChange {
    LoggedIn,
    Refused(LoginRefusal),
    Ended(SessionEnd),
}

/// Why somebody could not log in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefusal {
    /// What the protocol found wrong.
    Fault(LoginFault),
    /// The portal is not for this host.
    OtherPortal,
    /// The host was removed meanwhile.
    HostRemoved,
    /// It took too long.
    TimedOut,
    /// The protocol was broken.
    ProtocolError,
    /// There are as many sessions as there may be.
    TooManySessions(SessionLimit),
    /// Too many secrets were wrong from there.
    Guesses,
    /// It had not finished while many others wanted to log in.
    GaveWay,
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEnd {
    LoggedOut,
    /// The same initiator logged in anew.
    Reinstated,
    /// A NOP-In went unanswered.
    Unresponsive,
    /// The connection broke off or was closed.
    ConnectionLost,
    ProtocolError,
    /// A header or data digest was wrong.
    DigestError,
    /// The host, its initiator or its portal was taken away.
    AccessTakenAway,
    /// The host asked for a cold reset of the target.
    TargetReset,
    /// A discovery session made room for others.
    GaveWay,
    /// The array stops.
    Stopping,
}

/// Told of every event, on the thread of the shard where it happened; must not block.
pub type SessionListener = Arc<dyn Fn(SessionEvent) + Send + Sync>;

impl SessionEnd {
    /// `None`: the engine asked for it, and knows better why.
    fn of(reason: CloseReason) -> Option<SessionEnd> {
        match reason {
            CloseReason::LoggedOut => Some(SessionEnd::LoggedOut),
            CloseReason::Unresponsive => Some(SessionEnd::Unresponsive),
            CloseReason::ProtocolError => Some(SessionEnd::ProtocolError),
            CloseReason::HeaderDigestError | CloseReason::DataDigestError => Some(SessionEnd::DigestError),
            CloseReason::LoginRefused { .. } | CloseReason::LoginTimedOut | CloseReason::Requested => None,
        }
    }
}

impl Session {
    fn is_logged_in(&self) -> bool {
        self.login.borrow().is_some()
    }

    /// The protocol ends the session.
    pub(crate) fn note_close(&self, reason: CloseReason) {
        if !self.is_logged_in() {
            self.note_refusal(match reason {
                CloseReason::LoginTimedOut => LoginRefusal::TimedOut,
                CloseReason::LoginRefused { .. } => match self.protocol.borrow().login_fault() {
                    Some(fault) => LoginRefusal::Fault(fault),
                    None => return, // the engine refused it, and has noted why
                },
                _ => LoginRefusal::ProtocolError,
            });
        } else if let Some(end) = SessionEnd::of(reason) {
            self.note_end(end);
        }
    }

    /// Why the session ends; the first reason counts.
    pub(crate) fn note_end(&self, end: SessionEnd) {
        let first = self.end_noted.get().unwrap_or(end);
        self.end_noted.set(Some(first));
    }

    /// Why the login is refused; the first reason counts.
    pub(crate) fn note_refusal(&self, refusal: LoginRefusal) {
        let first = self.refusal_noted.get().unwrap_or(refusal);
        self.refusal_noted.set(Some(first));
    }

    pub(crate) fn tell_login(&self) {
        self.tell(SessionChange::LoggedIn);
    }

    /// The session is over.
    pub(crate) fn tell_end(&self) {
        let initiator_known = self.protocol.borrow().claimed_initiator().is_some();
        if self.is_logged_in() {
            self.tell(SessionChange::Ended(self.end_noted.get().unwrap_or(SessionEnd::ConnectionLost)));
        } else if let Some(refusal) = self.refusal_noted.get()
            && (initiator_known || refusal != LoginRefusal::TimedOut)
        {
            self.tell(SessionChange::Refused(refusal));
        }
    }

    fn tell(&self, change: SessionChange) {
        let Some(listener) = &self.listener else { return };
        let login = self.login.borrow();
        let protocol = self.protocol.borrow();
        listener(SessionEvent {
            peer: self.peer(),
            local: self.local(),
            initiator: protocol.claimed_initiator().map(str::to_owned),
            host: login.as_ref().map(|login| login.host.clone()).filter(|host| !host.is_empty()),
            discovery: login.as_ref().is_some_and(|login| login.identity.kind == SessionKind::Discovery),
            change,
        });
    }
}
