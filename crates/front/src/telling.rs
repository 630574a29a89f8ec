//! How a session reports events.

use iscsi::{CloseReason, SessionKind};

use crate::events::{LoginRefusal, SessionChange, SessionEnd, SessionEvent};
use crate::session::Session;

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

    /// Records why the session ends; the first reason counts.
    pub(crate) fn note_end(&self, end: SessionEnd) {
        let first = self.end_noted.get().unwrap_or(end);
        self.end_noted.set(Some(first));
    }

    /// Records why the login is refused; the first reason counts.
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
