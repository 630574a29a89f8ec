//! Errors of the environment, as facts.

use env::IoError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The names of [`IoError`]'s values.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(remote = "IoError", rename_all = "kebab-case")]
#[schema(as = IoError)]
pub enum IoErrorName {
    NotFound,
    PermissionDenied,
    Busy,
    NotADrive,
    NoSpace,
    Media,
    Gone,
    ReadOnly,
    Reserved,
    Unsupported,
    Closed,
    Refused,
    AddressInUse,
    AddressNotAvailable,
    TimedOut,
    TooMany,
    /// The number of the system's error.
    Other(i32),
}
