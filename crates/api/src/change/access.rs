//! Steps about who gets in: users, their sessions, tokens.

use base::calendar::moment;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{InWords, Role};

/// A step about users and tokens. Moments are in milliseconds since 1970; null is no end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum AccessStep {
    AddUser {
        user: String,
        role: Role,
        expires_ms: Option<u64>,
    },
    SetRole {
        user: String,
        before: Role,
        after: Role,
    },
    SetPassword {
        user: String,
    },
    SetUserEnd {
        user: String,
        expires_ms: Option<u64>,
    },
    DisableUser {
        user: String,
    },
    EnableUser {
        user: String,
    },
    DeleteUser {
        user: String,
    },
    EndSessions {
        user: String,
        sessions: u64,
    },
    /// From now on, only the Unix socket and tokens change who gets in.
    LoseLastAdministrator {},
    AddToken {
        token: String,
        role: Role,
        expires_ms: Option<u64>,
    },
    RevokeToken {
        token: String,
    },
}

impl InWords for AccessStep {
    fn text(&self) -> String {
        use AccessStep::*;
        match self {
            AddUser { user, role, expires_ms } => {
                format!("add user {user}, who may {role}{}", until(*expires_ms))
            }
            SetRole { user, before, after } => format!("user {user} may {after}, and no longer {before}"),
            SetPassword { user } => format!("another password for user {user}"),
            SetUserEnd { user, expires_ms: None } => format!("user {user} has no end date"),
            SetUserEnd { user, expires_ms: Some(ms) } => format!("user {user} ends at {}", moment(*ms)),
            DisableUser { user } => format!("disable user {user}"),
            EnableUser { user } => format!("enable user {user}"),
            DeleteUser { user } => format!("delete user {user}"),
            EndSessions { user, sessions: 1 } => format!("end 1 session of user {user}"),
            EndSessions { user, sessions } => format!("end {sessions} sessions of user {user}"),
            LoseLastAdministrator {} => {
                "no user is left who may administer: only this machine's Unix socket and tokens can"
                    .to_owned()
            }
            AddToken { token, role, expires_ms } => {
                format!("add token {token}, which may {role}{}", until(*expires_ms))
            }
            RevokeToken { token } => format!("revoke token {token}"),
        }
    }
}

fn until(expires_ms: Option<u64>) -> String {
    expires_ms.map_or(String::new(), |ms| format!(", until {}", moment(ms)))
}
