//! Renaming. Ids, identities and everything that hosts see stay the same.
//!
//! What always holds: a name is unique within its kind, including the bin; all references by name are updated (mappings
//! and the bin refer to hosts, snapshots to the schedule that took them).

use crate::error::CatalogError;
use crate::model::Catalog;
use crate::name::Name;
use crate::schedule::check_schedule_name;

impl Catalog {
    pub(crate) fn rename_volume(&mut self, volume: &str, name: &Name) -> Result<(), CatalogError> {
        let index = self.volume_index(volume)?;
        self.check_volume_name(name)?;
        self.volumes[index].name = name.clone();
        Ok(())
    }

    pub(crate) fn rename_pool(&mut self, pool: &str, name: &Name) -> Result<(), CatalogError> {
        self.pool_mut(pool)?;
        if self.find_pool(name.as_str()).is_some() {
            return Err(CatalogError::Exists { kind: "pool", name: name.clone() });
        }
        self.pool_mut(pool)?.name = name.clone();
        Ok(())
    }

    pub(crate) fn rename_snapshot(
        &mut self,
        volume: &str,
        snapshot: &str,
        name: &Name,
    ) -> Result<(), CatalogError> {
        let id = self.volumes[self.volume_index(volume)?].id;
        let layer = self.known_snapshot(id, snapshot)?.layer;
        if self.find_snapshot(id, name.as_str()).is_some() {
            return Err(CatalogError::Exists { kind: "snapshot", name: name.clone() });
        }
        let renamed = self.snapshots.iter_mut().find(|other| other.layer == layer);
        renamed.into_iter().for_each(|snapshot| snapshot.name = name.clone());
        Ok(())
    }

    pub(crate) fn rename_schedule(&mut self, schedule: &str, name: &Name) -> Result<(), CatalogError> {
        let index = self.schedule_index(schedule)?;
        check_schedule_name(name)?;
        if self.find_schedule(name.as_str()).is_some() {
            return Err(CatalogError::Exists { kind: "schedule", name: name.clone() });
        }
        self.schedules[index].name = name.clone();
        self.schedules.sort_by(|a, b| a.name.cmp(&b.name));
        let in_bin = self.bin.iter_mut().flat_map(|binned| &mut binned.snapshots);
        for taken_by in self.snapshots.iter_mut().chain(in_bin).map(|snapshot| &mut snapshot.schedule) {
            if taken_by.as_ref().is_some_and(|by| by.as_str() == schedule) {
                *taken_by = Some(name.clone());
            }
        }
        Ok(())
    }
}
