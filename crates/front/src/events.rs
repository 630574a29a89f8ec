//! Events of logins and sessions, sent as values to the program that embeds the engine: who logged in, who was refused
//! and why, whose session ended and why.
//!
//! Every connection that tries to log in leads to exactly one refusal, or to one login and later its end. A connection
//! that closes without sending anything causes no event.

use std::net::SocketAddr;
use std::sync::Arc;

use iscsi::{CloseReason, LoginFault};
use shard::SessionLimit;

/// An event of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionEvent {
    pub peer: SocketAddr,
    /// The local address.
    pub local: SocketAddr,
    /// The initiator's name as the peer gave it, if it has. Not verified before the login is complete.
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

/// Why a login was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefusal {
    /// The protocol's reason.
    Fault(LoginFault),
    /// The portal is not for this host.
    OtherPortal,
    /// The host was removed during the login.
    HostRemoved,
    /// The login took too long.
    TimedOut,
    /// The peer violated the protocol.
    ProtocolError,
    /// A limit of sessions was reached.
    TooManySessions(SessionLimit),
    /// Too many wrong secrets came from that address.
    Guesses,
    /// The connection was closed because many others tried to log in and it had not finished.
    GaveWay,
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEnd {
    LoggedOut,
    /// The same initiator logged in anew.
    Reinstated,
    /// The initiator did not answer a NOP-In.
    Unresponsive,
    /// The connection was lost or closed.
    ConnectionLost,
    ProtocolError,
    /// A header or data digest was wrong.
    DigestError,
    /// The host, its initiator or its portal was removed.
    AccessTakenAway,
    /// The host asked for a cold reset of the target.
    TargetReset,
    /// A discovery session was closed to make room for others.
    GaveWay,
    /// The array is shutting down.
    Stopping,
}

/// Called for every event, on the thread of the shard where it happened; must not block.
pub type SessionListener = Arc<dyn Fn(SessionEvent) + Send + Sync>;

impl SessionEnd {
    /// `None`: the engine closed the session and knows the exact reason.
    pub(crate) fn of(reason: CloseReason) -> Option<SessionEnd> {
        match reason {
            CloseReason::LoggedOut => Some(SessionEnd::LoggedOut),
            CloseReason::Unresponsive => Some(SessionEnd::Unresponsive),
            CloseReason::ProtocolError => Some(SessionEnd::ProtocolError),
            CloseReason::HeaderDigestError | CloseReason::DataDigestError => Some(SessionEnd::DigestError),
            CloseReason::LoginRefused { .. } | CloseReason::LoginTimedOut | CloseReason::Requested => None,
        }
    }
}
