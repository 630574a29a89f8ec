//! The drives below which there is no space.

use base::Nanos;

/// How often a write is retried while there is no space below a drive.
pub(crate) const NO_SPACE_RETRY: Nanos = Nanos::from_millis(500);
