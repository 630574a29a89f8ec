//! Why a command is not carried out, and what the catalog refuses, as the administrator is told it.

use std::fmt;

use catalog::CatalogError;

/// Why a command was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandError {
    pub kind: CommandErrorKind,
    /// What is wrong, naming what it is about.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// The kinds of refusal, for exit codes and HTTP statuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandErrorKind {
    /// No thing of that name.
    NotFound,
    /// That name, LUN or initiator is taken.
    AlreadyExists,
    /// The command itself makes no sense: a bad name, size or combination.
    Invalid,
    /// Still in use: mapped, or holding data somebody may want.
    InUse,
    /// Not now: the array is starting or stopping, or a pool is offline.
    Unavailable,
    /// A limit of the array is reached.
    Full,
    /// A drive or file could not be opened, read or written.
    Io,
    /// Given up before it had changed anything: it could not go on in time, or whoever asked has gone.
    TimedOut,
    /// Accepted, and not done in time. It goes on by itself.
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
