//! What the catalog refuses, as the administrator is told it.

use catalog::CatalogError;

use crate::{CommandError, CommandErrorKind};

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
