//! Why a command was not carried out, for administrators and programs.

use std::fmt;

use catalog::CatalogError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not carried out. Nothing was changed, except as `unfinished` says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CommandError {
    #[serde(rename = "code")]
    pub kind: CommandErrorKind,
    /// What is wrong, naming what it is about.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default)]
    pub hint: String,
}

/// A word for programs; each has one HTTP status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandErrorKind {
    /// 400: the request makes no sense.
    Invalid,
    /// 401: no token, or a wrong one.
    Unauthorized,
    /// 403: who asks may not do that, or it did not come from a page of this head.
    Forbidden,
    /// 404: no thing of that name, or no such resource.
    NotFound,
    /// 405: not with this method.
    MethodNotAllowed,
    /// 408: the request's body took too long.
    TooSlow,
    /// 429: too many attempts; after a while again.
    TooMany,
    /// 409: that name, LUN or initiator is taken.
    AlreadyExists,
    /// 409: still mapped, or holding data that somebody may want.
    InUse,
    /// 413: the request is too large.
    TooLarge,
    /// 507: a limit of the array is reached.
    Full,
    /// 500: a drive or file could not be opened, read or written.
    Io,
    /// 503: not now.
    Unavailable,
    /// 503: the array is stopping.
    Stopping,
    /// 504: not carried out in time, and given up: nothing was changed.
    TimedOut,
    /// 504: accepted, and not done in time. It goes on by itself.
    Unfinished,
}

impl CommandError {
    pub fn new(kind: CommandErrorKind, message: impl Into<String>, hint: impl Into<String>) -> CommandError {
        CommandError { kind, message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for CommandError {}

/// A refused command as a fact of a problem or an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CommandRefusal {
    pub code: CommandErrorKind,
    /// The message of the refusal, for people. Nothing compares or parses it.
    pub detail: String,
}

impl From<&CommandError> for CommandRefusal {
    fn from(error: &CommandError) -> CommandRefusal {
        CommandRefusal { code: error.kind, detail: error.message.clone() }
    }
}

impl From<CatalogError> for CommandError {
    fn from(error: CatalogError) -> CommandError {
        use CatalogError::*;
        let kind = match &error {
            NotFound { .. }
            | NotMapped { .. }
            | NotInBin { .. }
            | NoClones { .. }
            | NoSuchInitiator { .. } => CommandErrorKind::NotFound,
            Exists { .. }
            | InBin { .. }
            | PromoteTwice { .. }
            | InitiatorInUse { .. }
            | LunInUse { .. }
            | AlreadyMapped { .. } => CommandErrorKind::AlreadyExists,
            RawInUse { .. }
            | VolumeMapped { .. }
            | VolumeHasSnapshots { .. }
            | RollbackMapped { .. }
            | ReplaceMapped { .. }
            | ReplaceResized { .. }
            | RefreshMapped { .. }
            | HostMapped { .. }
            | OriginInBin { .. }
            | PoolInUse { .. }
            | PoolBinInUse { .. } => CommandErrorKind::InUse,
            TooMany { .. } | IdsExhausted { .. } | NoRoomToGrow { .. } => CommandErrorKind::Full,
            FutureSchema { .. } | Damaged { .. } => CommandErrorKind::Unavailable,
            _ => CommandErrorKind::Invalid,
        };
        let hint = error.hint().unwrap_or_default();
        CommandError::new(kind, error.to_string(), hint)
    }
}

impl From<catalog::NameError> for CommandError {
    fn from(error: catalog::NameError) -> CommandError {
        CatalogError::from(error).into()
    }
}
