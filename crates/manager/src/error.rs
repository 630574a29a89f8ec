//! Translates the environment's errors of a drive into what the administrator reads.

use api::{CommandError, CommandErrorKind};
use env::IoError;

/// The error for a drive or file that could not be used.
pub(crate) fn drive_error(path: &str, error: IoError) -> CommandError {
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

/// Why a drive is refused.
pub(crate) struct DriveRefusal {
    pub(crate) error: CommandError,
    /// It is refused only for its content: `--force` accepts it.
    pub(crate) holds_contents: bool,
}

impl From<CommandError> for DriveRefusal {
    fn from(error: CommandError) -> DriveRefusal {
        DriveRefusal { error, holds_contents: false }
    }
}

impl From<DriveRefusal> for CommandError {
    fn from(refusal: DriveRefusal) -> CommandError {
        refusal.error
    }
}
