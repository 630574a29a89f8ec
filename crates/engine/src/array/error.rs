//! From what the rooms below say to what the administrator is told.

use catalog::CatalogError;
use env::IoError;

use crate::command::{CommandError, CommandErrorKind};

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

/// A drive or file that could not be used.
pub(super) fn drive_error(path: &str, error: IoError) -> CommandError {
    use CommandErrorKind::*;
    let (kind, hint) = match error {
        IoError::NotFound => (NotFound, "check the path"),
        IoError::PermissionDenied => (Invalid, "run as a user that may open it for writing"),
        IoError::Busy => (InUse, "unmount it, or stop the program that uses it"),
        IoError::NotADrive => (Invalid, "name a block device, or a file of at least 4 KiB"),
        IoError::ReadOnly => (Invalid, "name a drive that can be written to"),
        IoError::NoSpace => (Full, "make room below it"),
        _ => (Io, ""),
    };
    CommandError::new(kind, format!("{path}: {error}"), hint)
}
