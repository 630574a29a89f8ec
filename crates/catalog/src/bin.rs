//! The bin: deleted volumes with their snapshots and mappings. They can be restored for some time.
//!
//! What always holds: the bin contains only volumes of pools; names, layers and identities of its volumes stay
//! reserved.

use base::VolumeId;
use base::limits::MAPPINGS_MAX;
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::mapping::Mapping;
use crate::model::{Catalog, Volume};
use crate::name::Name;
use crate::snapshot::Snapshot;

/// A volume in the bin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binned {
    pub volume: Volume,
    /// Wall clock, milliseconds since 1970.
    pub deleted_ms: u64,
    /// How long it has been in the bin while the array ran, as last recorded.
    #[serde(default)]
    pub held_seconds: u64,
    /// Its own, in the order in which they were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
    /// Those that it had, of hosts that there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// Hosts that it was mapped to and that were deleted since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts_gone: Vec<Name>,
}

impl Binned {
    pub(crate) fn rename_host(&mut self, from: &str, to: &Name) {
        for mapping in self.mappings.iter_mut().filter(|mapping| mapping.host.as_str() == from) {
            mapping.host = to.clone();
        }
    }

    /// Another host of the name is not to get the volume.
    pub(crate) fn forget_host(&mut self, host: &str) {
        let gone = self.mappings.iter().filter(|mapping| mapping.host.as_str() == host);
        self.hosts_gone.extend(gone.map(|mapping| mapping.host.clone()));
        self.mappings.retain(|mapping| mapping.host.as_str() != host);
    }
}

impl Catalog {
    /// Deleted volumes that are still in the bin, the oldest first.
    pub fn bin(&self) -> &[Binned] {
        &self.bin
    }

    pub fn find_binned(&self, name: &str) -> Option<&Binned> {
        self.bin.iter().find(|binned| binned.volume.name.as_str() == name)
    }

    /// Those in the bin, too.
    pub fn all_volumes(&self) -> impl Iterator<Item = &Volume> + '_ {
        self.volumes.iter().chain(self.bin.iter().map(|binned| &binned.volume))
    }

    /// Those in the bin, too.
    pub fn all_snapshots(&self) -> impl Iterator<Item = &Snapshot> + '_ {
        self.snapshots.iter().chain(self.bin.iter().flat_map(|binned| &binned.snapshots))
    }

    pub(crate) fn bin_volume(
        &mut self,
        name: &str,
        unmap: bool,
        deleted_ms: u64,
    ) -> Result<(), CatalogError> {
        let index = self.volume_index(name)?;
        if self.volumes[index].place().is_none() {
            return Err(CatalogError::NotInPool { volume: self.volumes[index].name.clone() });
        }
        self.check_unmapped(index, unmap)?;
        // a registration is of a host that has it as a LUN
        let volume = Volume { reservations: None, ..self.volumes.remove(index) };
        let (mappings, others) = self.mappings.drain(..).partition(|mapping| mapping.volume == volume.id);
        self.mappings = others;
        let (snapshots, others) = self.snapshots.drain(..).partition(|one| one.volume == volume.id);
        self.snapshots = others;
        let hosts_gone = Vec::new();
        let held_seconds = 0;
        self.bin.push(Binned { volume, deleted_ms, held_seconds, snapshots, mappings, hosts_gone });
        Ok(())
    }

    /// The wall clock when it was last trusted: milliseconds since 1970.
    pub fn clock_ms(&self) -> Option<u64> {
        self.clock_ms
    }

    pub(crate) fn note_time(&mut self, clock_ms: Option<u64>, held_seconds: &[(VolumeId, u64)]) {
        self.clock_ms = clock_ms.or(self.clock_ms);
        for &(volume, seconds) in held_seconds {
            let binned = self.bin.iter_mut().find(|binned| binned.volume.id == volume);
            binned.into_iter().for_each(|binned| binned.held_seconds = binned.held_seconds.max(seconds));
        }
    }

    fn binned_index(&self, name: &str) -> Result<usize, CatalogError> {
        let found = self.bin.iter().position(|binned| binned.volume.name.as_str() == name);
        found.ok_or_else(|| CatalogError::NotInBin { name: name.to_owned() })
    }

    pub(crate) fn undelete_volume(&mut self, name: &str) -> Result<(), CatalogError> {
        let Binned { volume, snapshots, mappings, .. } = self.bin.remove(self.binned_index(name)?);
        let place = self.volumes.partition_point(|other| other.id < volume.id);
        self.volumes.insert(place, volume);
        self.snapshots.extend(snapshots);
        // in the order in which layers were handed out, which is that in which snapshots were taken
        self.snapshots.sort_by_key(|snapshot| snapshot.layer);
        for mapping in mappings {
            self.map_again(mapping);
        }
        Ok(())
    }

    /// If its number belongs to another volume by now, the mapping is not restored: a host must not find another volume at a number that it knows.
    fn map_again(&mut self, mapping: Mapping) {
        let known = self.find_host(mapping.host.as_str()).is_some();
        let taken = self.mapping_at(mapping.host.as_str(), mapping.number).is_some();
        if known && !taken && self.mappings.len() < MAPPINGS_MAX {
            self.insert_mapping(mapping);
        }
    }

    pub(crate) fn eradicate_volume(&mut self, name: &str) -> Result<(), CatalogError> {
        let gone = self.bin.remove(self.binned_index(name)?);
        // the last first: whatever stood on it stands on the one before, which goes next
        gone.snapshots.iter().rev().for_each(|snapshot| self.stand_lower(snapshot));
        self.unschedule(gone.volume.id);
        Ok(())
    }

    pub(crate) fn empty_bin(&mut self, pool: &str) -> Result<(), CatalogError> {
        let id = self.pool_mut(pool)?.id;
        let inside = |binned: &&Binned| binned.volume.place().is_some_and(|(pool, _)| pool == id);
        let names: Vec<Name> =
            self.bin.iter().filter(inside).map(|binned| binned.volume.name.clone()).collect();
        names.iter().try_for_each(|name| self.eradicate_volume(name.as_str()))
    }

    /// Of a decoded catalog: what is wrong with its bin, beside its volumes and snapshots.
    pub(crate) fn check_bin(&self) -> Result<(), String> {
        for binned in &self.bin {
            let id: VolumeId = binned.volume.id;
            if binned.volume.place().is_none() || self.volume(id).is_some() {
                return Err(format!("volume {id} cannot be in the bin"));
            }
            let foreign = binned.snapshots.iter().any(|snapshot| snapshot.volume != id);
            let strange =
                |mapping: &Mapping| mapping.volume != id || self.find_host(mapping.host.as_str()).is_none();
            if foreign || binned.mappings.iter().any(strange) {
                return Err(format!("what is in the bin with volume {id} is another's"));
            }
        }
        Ok(())
    }
}
