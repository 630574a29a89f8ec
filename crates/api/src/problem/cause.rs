//! Why the array could not start, and why a schedule could not take its snapshots: values, and the words of each.

use std::fmt;

use catalog::CatalogError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::PoolOffline;
use crate::{CommandError, CommandErrorKind, CommandRefusal};

/// Why the array could not start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartFailure {
    /// A stored catalog cannot be read.
    CatalogUnreadable { place: CatalogPlace, fault: CatalogFault },
    /// No catalog was found. This pool may hold it, and is offline.
    CatalogOffline { pool: String, why: PoolOffline },
    /// The catalog refuses the name of the array or of a pool.
    Refused(CommandRefusal),
}

/// Where a catalog is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CatalogPlace {
    /// The head's state directory.
    StateDirectory,
    /// The pool of this name.
    Pool(String),
}

/// Why a stored catalog cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CatalogFault {
    /// A newer program has written it.
    FutureSchema { found: u64, known: u32 },
    /// `detail` is what the parser found, for people.
    Damaged { detail: String },
}

/// What to do with a pool of two heads, of which this one is none.
pub(super) const OF_TWO_HEADS: &str = "make this head one of them (`tangelo pair replace` on the other one); if that one is gone for good, `tangelo pair disband`";

impl StartFailure {
    /// What to do about it; may be empty.
    pub(super) fn action(&self) -> String {
        match self {
            StartFailure::CatalogUnreadable { fault: CatalogFault::Damaged { .. }, .. } => {
                "nothing was changed; restore it, or move it away".to_owned()
            }
            StartFailure::CatalogUnreadable { fault, .. } => fault.error().hint().unwrap_or_default(),
            StartFailure::CatalogOffline { why, .. } if why.is_of_two_heads() => OF_TWO_HEADS.to_owned(),
            StartFailure::CatalogOffline { .. } => "bring its drives back, and restart".to_owned(),
            StartFailure::Refused(_) => String::new(),
        }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFailure::CatalogUnreadable { place, fault } => write!(f, "{place}: {}", fault.error()),
            StartFailure::CatalogOffline { pool, why } => {
                write!(f, "what describes the array is in pool {pool}, which is offline: {why}")
            }
            StartFailure::Refused(refusal) => f.write_str(&refusal.detail),
        }
    }
}

impl fmt::Display for CatalogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogPlace::StateDirectory => f.write_str("the head's state directory"),
            CatalogPlace::Pool(name) => write!(f, "pool {name}"),
        }
    }
}

impl CatalogFault {
    /// The catalog's error that it stands for, which has the words.
    fn error(&self) -> CatalogError {
        match self {
            CatalogFault::FutureSchema { found, known } => {
                CatalogError::FutureSchema { found: *found, known: *known }
            }
            CatalogFault::Damaged { detail } => CatalogError::Damaged { what: detail.clone() },
        }
    }
}

impl From<CatalogError> for CatalogFault {
    fn from(error: CatalogError) -> CatalogFault {
        match error {
            CatalogError::FutureSchema { found, known } => CatalogFault::FutureSchema { found, known },
            CatalogError::Damaged { what } => CatalogFault::Damaged { detail: what },
            other => CatalogFault::Damaged { detail: other.to_string() },
        }
    }
}

impl From<CatalogError> for StartFailure {
    fn from(error: CatalogError) -> StartFailure {
        StartFailure::Refused((&CommandError::from(error)).into())
    }
}

impl From<catalog::NameError> for StartFailure {
    fn from(error: catalog::NameError) -> StartFailure {
        CatalogError::from(error).into()
    }
}

/// Commands to an array that could not start are refused with it.
impl From<StartFailure> for CommandError {
    fn from(failure: StartFailure) -> CommandError {
        let kind = match &failure {
            StartFailure::Refused(refusal) => refusal.code,
            _ => CommandErrorKind::Unavailable,
        };
        CommandError::new(kind, failure.to_string(), failure.action())
    }
}

/// Why a schedule could not take its snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleFailure {
    /// None of its volumes is in a pool that is online; this is the first of them.
    PoolOffline { volume: String },
    /// The snapshots were refused.
    Refused(CommandRefusal),
}

impl ScheduleFailure {
    /// What to do about it; may be empty.
    pub(super) fn action(&self) -> &'static str {
        match self {
            ScheduleFailure::Refused(refusal) if refusal.code == CommandErrorKind::Full => {
                "delete snapshots that are not needed any more; it is tried again every minute"
            }
            _ => "",
        }
    }
}

impl fmt::Display for ScheduleFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleFailure::PoolOffline { volume } => write!(f, "the pool of volume {volume} is offline"),
            ScheduleFailure::Refused(refusal) => f.write_str(&refusal.detail),
        }
    }
}

impl From<CommandError> for ScheduleFailure {
    fn from(error: CommandError) -> ScheduleFailure {
        ScheduleFailure::Refused((&error).into())
    }
}
