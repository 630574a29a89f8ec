//! The health of the array or of a part of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How well something is; later is worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// All is well.
    Healthy,
    /// Served, with less protection or less space than there should be.
    Degraded,
    /// Not served.
    Offline,
}
