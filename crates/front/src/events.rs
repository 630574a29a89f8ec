//! Events of logins and sessions, sent as values to the program that embeds the engine: who logged in, who was refused
//! and why, whose session ended and why.
//!
//! Every connection that tries to log in leads to exactly one refusal, or to one login and later its end. A connection
//! that closes without sending anything causes no event.

use std::net::SocketAddr;
use std::sync::Arc;

use iscsi::{CloseReason, LoginFault};
use shard::SessionLimit;

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
