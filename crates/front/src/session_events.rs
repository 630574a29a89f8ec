//! How a session reports events.

use std::rc::Rc;

use api::{LoginRefusal, SessionEnd};
use iscsi::{CloseReason, SessionKind};
use shard::Context;

use crate::events::{ConnectionEnds, Refusal, session_end};
use crate::session::Session;

impl Session {
    fn is_logged_in(&self) -> bool {
        self.login.borrow().is_some()
    }

    fn is_discovery(&self) -> bool {
        self.login.borrow().as_ref().is_some_and(|login| login.identity.kind == SessionKind::Discovery)
    }

    /// The protocol ends the session.
    pub(crate) fn note_close(&self, reason: CloseReason) {
        if !self.is_logged_in() {
            match reason {
                CloseReason::LoginTimedOut => self.note_refusal(LoginRefusal::TimedOut),
                CloseReason::LoginRefused { .. } => {
                    let fault = self.protocol.borrow().login_fault();
                    // without one, the shard refused it, and has noted why
                    fault.into_iter().for_each(|fault| self.note_refusal(fault));
                }
                _ => self.note_refusal(LoginRefusal::ProtocolError),
            }
        } else if let Some(end) = session_end(reason) {
            self.note_end(end);
        }
    }

    /// Records why the session ends; the first reason counts.
    pub(crate) fn note_end(&self, end: SessionEnd) {
        let first = self.end_noted.get().unwrap_or(end);
        self.end_noted.set(Some(first));
    }

    /// Records why the login is refused; the first reason counts.
    pub(crate) fn note_refusal(&self, refusal: impl Into<Refusal>) {
        let first = self.refusal_noted.get().unwrap_or(refusal.into());
        self.refusal_noted.set(Some(first));
    }

    /// Discovery that goes well is not reported: some hosts look for targets every few seconds.
    pub(crate) fn report_login(&self, context: &Rc<Context>) {
        if !self.is_discovery() {
            let (subject, facts) = self.ends().began();
            context.report(subject, facts);
        }
    }

    /// The session is over.
    pub(crate) fn report_end(&self, context: &Rc<Context>) {
        let ends = self.ends();
        let timed_out = Refusal::Login(LoginRefusal::TimedOut);
        let event = if self.is_logged_in() {
            let end = self.end_noted.get().unwrap_or(SessionEnd::ConnectionLost);
            (!self.is_discovery()).then(|| ends.ended(end))
        } else {
            let refusal = self.refusal_noted.get();
            let reported = refusal.filter(|refusal| ends.initiator.is_some() || *refusal != timed_out);
            reported.map(|refusal| ends.refused(refusal))
        };
        if let Some((subject, facts)) = event {
            context.report(subject, facts);
        }
    }

    fn ends(&self) -> ConnectionEnds {
        let login = self.login.borrow();
        ConnectionEnds {
            host: login.as_ref().map(|login| login.host.clone()).filter(|host| !host.is_empty()),
            initiator: self.protocol.borrow().claimed_initiator().map(str::to_owned),
            peer: self.peer(),
            local: self.local(),
        }
    }
}
