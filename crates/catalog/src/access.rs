//! Asymmetric access states that survive a restart. They are stored with their volume.

use std::collections::BTreeMap;

use base::VolumeId;
use base::limits::PORTAL_GROUPS_MAX;
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::model::Catalog;

/// The state that a target port group was given (SPC-4 §5.16.2.4); active/optimized is not written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptAccess {
    ActiveNonOptimized,
    Standby,
    Unavailable,
}

/// By target port group, 1 to [`PORTAL_GROUPS_MAX`].
pub type KeptAccesses = BTreeMap<u16, KeptAccess>;

impl Catalog {
    /// The catalog with these access states of the volume.
    ///
    /// [`CatalogError::NotFound`] where there is no such volume.
    pub fn keep_access(&self, volume: VolumeId, access: KeptAccesses) -> Result<Catalog, CatalogError> {
        let mut next = self.clone();
        let found = next.volumes.iter_mut().find(|other| other.id == volume);
        let Some(found) = found else {
            return Err(CatalogError::NotFound { kind: "volume", name: volume.to_string() });
        };
        found.access = access;
        next.version += 1;
        Ok(next)
    }

    pub(crate) fn check_access(&self) -> Result<(), String> {
        let bad = |volume: &&crate::model::Volume| {
            volume.access.keys().any(|group| !(1..=PORTAL_GROUPS_MAX).contains(group))
        };
        match self.volumes.iter().find(bad) {
            Some(volume) => Err(format!("volume {} has states of impossible port groups", volume.id)),
            None => Ok(()),
        }
    }
}
