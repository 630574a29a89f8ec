//! The values in the facts of events, and the words of each.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Event, EventSeverity};
use crate::LoginLimit;

/// Events in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Events before the first of these that are not kept any more.
    pub dropped: u64,
    /// The number of the newest event that there is.
    pub newest: u64,
}

/// Who asked for a change, and from where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Origin {
    /// A user of the head, over the Unix socket.
    Local {
        /// The number of the user.
        user: u32,
        /// Null where the head has no name for the user.
        name: Option<String>,
        process: Option<i32>,
    },
    /// A client over TCP that knew the token of the head's file.
    Remote { address: String },
    /// A user who has signed in.
    User { user: String, address: String },
    /// A program that knew a token.
    Token { token: String, address: String },
    /// The daemon itself.
    Daemon,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Local { user, name, process } => {
                match name {
                    Some(name) => write!(f, "{name}")?,
                    None => write!(f, "user {user}")?,
                }
                process.map_or(Ok(()), |process| write!(f, " (process {process})"))
            }
            Origin::Remote { address } => f.write_str(address),
            Origin::User { user, address } => write!(f, "{user} ({address})"),
            Origin::Token { token, address } => write!(f, "token {token} ({address})"),
            Origin::Daemon => f.write_str("the daemon"),
        }
    }
}

/// Why nobody was let in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignInRefusal {
    /// There is no such user, or the password is wrong.
    NameOrPassword,
    /// The password is right, but the user is disabled.
    Disabled,
    /// The password is right, but the user's end date is over.
    Expired,
    /// Too many attempts have come from this address: it has to wait.
    TooMany,
}

impl SignInRefusal {
    pub(super) fn words(self) -> &'static str {
        match self {
            SignInRefusal::NameOrPassword => "no such user, or a wrong password",
            SignInRefusal::Disabled => "the user is disabled",
            SignInRefusal::Expired => "the user's end date is over",
            SignInRefusal::TooMany => "too many attempts",
        }
    }
}

/// Why a login was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoginRefusal {
    /// No host has this initiator.
    UnknownInitiator,
    /// It asked for a target that is not this array's.
    UnknownTarget,
    /// It does not offer CHAP, and must prove who it is.
    ChapNotOffered,
    /// The CHAP user or secret is wrong.
    WrongSecret,
    /// It wants the array to prove who it is, and the host has no mutual CHAP secret.
    NoMutualSecret,
    /// The login is not valid: the iSCSI status that it was answered with.
    NotValid { class: u8, detail: u8 },
    /// The portal is not for this host.
    OtherPortal,
    /// The host was removed during the login.
    HostRemoved,
    /// The login took too long.
    TimedOut,
    /// The peer violated the protocol.
    ProtocolError,
    /// A limit of sessions was reached.
    TooManySessions(LoginLimit),
    /// The connection was closed because many others tried to log in and it had not finished.
    GaveWay,
}

impl fmt::Display for LoginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoginRefusal::UnknownInitiator => {
                "no host has this initiator (`tangelo host create`, `tangelo host set --add-iqn`)"
            }
            LoginRefusal::UnknownTarget => {
                "it asked for a target that is not this array's (`tangelo status` names ours)"
            }
            LoginRefusal::ChapNotOffered => "it must prove itself by CHAP, and does not offer to",
            LoginRefusal::WrongSecret => "wrong CHAP user or secret",
            LoginRefusal::NoMutualSecret => {
                "it wants the array to prove itself, and this host has no mutual CHAP secret (`tangelo host set --mutual-chap-user`)"
            }
            LoginRefusal::NotValid { class, detail } => {
                return write!(f, "its login was not valid (iSCSI status {class:02x}/{detail:02x})");
            }
            LoginRefusal::OtherPortal => "this portal is not for this host ([listen] iscsi)",
            LoginRefusal::HostRemoved => "its host was removed meanwhile",
            LoginRefusal::TimedOut => "it took too long",
            LoginRefusal::ProtocolError => "it broke the protocol",
            LoginRefusal::TooManySessions(LoginLimit::Host) => {
                "its host has as many sessions as one may have"
            }
            LoginRefusal::TooManySessions(LoginLimit::Address) => {
                "there are as many sessions from its address as there may be"
            }
            LoginRefusal::TooManySessions(LoginLimit::Core) => {
                "the sessions that are left are kept for hosts that have none"
            }
            LoginRefusal::GaveWay => {
                "it had not finished while too many others wanted to log in, most of them from there"
            }
        })
    }
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
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

impl SessionEnd {
    pub(super) fn severity(self) -> EventSeverity {
        match self {
            SessionEnd::LoggedOut
            | SessionEnd::AccessTakenAway
            | SessionEnd::TargetReset
            | SessionEnd::GaveWay
            | SessionEnd::Stopping => EventSeverity::Info,
            SessionEnd::Reinstated
            | SessionEnd::Unresponsive
            | SessionEnd::ConnectionLost
            | SessionEnd::ProtocolError
            | SessionEnd::DigestError => EventSeverity::Warning,
        }
    }
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionEnd::LoggedOut => "it logged out",
            SessionEnd::Reinstated => "the same initiator has logged in anew",
            SessionEnd::Unresponsive => "it did not answer (NOP-In)",
            SessionEnd::ConnectionLost => "the connection was lost",
            SessionEnd::ProtocolError => "it broke the protocol",
            SessionEnd::DigestError => "a digest was wrong: the network changes data",
            SessionEnd::AccessTakenAway => "its access was taken away",
            SessionEnd::TargetReset => "it asked for a cold reset",
            SessionEnd::GaveWay => "it made room for others",
            SessionEnd::Stopping => "the array stops",
        })
    }
}

/// Why data of a pool is written anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepairKind {
    /// It lacks redundancy.
    Rebuilding,
    /// Its drive is to leave the pool.
    Emptying,
    /// Something in it is damaged.
    Repairing,
}

impl RepairKind {
    pub fn word(self) -> &'static str {
        match self {
            RepairKind::Rebuilding => "rebuilding",
            RepairKind::Emptying => "emptying",
            RepairKind::Repairing => "repairing",
        }
    }
}

/// Why a volume has left the bin for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expiry {
    /// Its time was over.
    Overdue,
    /// The pool was nearly full.
    PoolFull,
}
