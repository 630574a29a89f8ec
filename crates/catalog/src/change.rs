//! Changes. Each is checked against the current catalog and returns the next one, or the reason for a refusal.

use base::limits::{DELETED_POOLS_MAX, HOSTS_MAX, INITIATORS_PER_HOST_MAX, POOLS_MAX};
use base::{LayerId, PoolId, VolumeId};

use crate::drive::DriveChange;
use crate::error::{CatalogError, check_room};
use crate::mapping::WantedNumber;
use crate::model::{Catalog, DeletedPool, Host, PoolEntry, Volume};
use crate::name::Name;
use crate::schedule::Retention;
use crate::settings::{PoolSettings, ScrubRecord};
use crate::spare::Spares;
use crate::update::HostUpdate;

/// Where a new volume's blocks shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewVolume {
    /// By the pool's name.
    Pool(String),
    Raw {
        path: String,
    },
    Null,
    Memory,
}

/// A change of the catalog. Volumes, hosts and pools are named as people name them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    RenameArray {
        name: Name,
    },
    /// The pool belongs to the array from now on.
    AttachPool {
        id: PoolId,
        name: Name,
    },
    /// Forgets a pool that has no volumes, none in the bin either.
    DetachPool {
        pool: String,
    },
    /// Deletes all volumes in the pool's bin for good, so that the pool can be deleted.
    EmptyBin {
        pool: String,
    },
    RenamePool {
        pool: String,
        name: Name,
    },
    SetPool {
        pool: String,
        settings: PoolSettings,
    },
    /// All of the pool's spares, as they are from now on.
    SetSpares {
        pool: String,
        spares: Spares,
    },
    /// A scrub of the pool has ended. Nothing where the array does not know the pool.
    Scrubbed {
        pool: PoolId,
        record: ScrubRecord,
    },
    CreateVolume {
        name: Name,
        backing: NewVolume,
        size_bytes: u64,
        block_bytes: u32,
        write_back: bool,
        created_ms: u64,
    },
    RenameVolume {
        volume: String,
        name: Name,
    },
    /// A raw volume is as large as its device; only what is in a pool gets smaller.
    ResizeVolume {
        volume: String,
        size_bytes: u64,
    },
    /// The device of a raw volume has got larger, and the volume with it.
    DeviceGrew {
        volume: VolumeId,
        size_bytes: u64,
    },
    /// What volumes that got smaller held beyond their end has been given back.
    Trimmed {
        volume: VolumeId,
    },
    /// For good. Refused while it has snapshots; and while it is mapped, unless `unmap` says to take the mappings with it.
    DeleteVolume {
        volume: String,
        unmap: bool,
    },
    /// Moves a volume into the bin, with its snapshots and, if `unmap` is set, its mappings. Only for volumes of pools.
    BinVolume {
        volume: String,
        unmap: bool,
        deleted_ms: u64,
    },
    /// Restores a volume from the bin, with its snapshots, and with those of its mappings that are still possible.
    UndeleteVolume {
        volume: String,
    },
    /// Deletes a volume in the bin for good.
    EradicateVolume {
        volume: String,
    },
    /// Moves the snapshots below a clone to the clone; its original becomes a clone of it.
    PromoteVolume {
        volume: String,
    },
    /// Takes snapshots of these volumes at one moment; each entry is a volume and its snapshot's name.
    TakeSnapshots {
        snapshots: Vec<(String, Name)>,
        created_ms: u64,
    },
    DeleteSnapshot {
        volume: String,
        snapshot: String,
    },
    /// Gives the volume the content and size of the snapshot. Refused while the volume is mapped.
    RollBack {
        volume: String,
        snapshot: String,
    },
    CloneVolume {
        volume: String,
        snapshot: String,
        name: Name,
        created_ms: u64,
    },
    /// Makes a volume with the current content of another; both get a new layer.
    CopyVolume {
        volume: String,
        name: Name,
        created_ms: u64,
    },
    /// Gives clones of another snapshot, or of all snapshots of a volume, the content of this snapshot. They keep their identities.
    /// Refused while one of them is mapped, unless `remap` is set: then hosts get unit attentions.
    RefreshClones {
        volume: String,
        snapshot: String,
        clones_of: String,
        remap: bool,
    },
    /// Gives a volume a new layer; the old one stays for copies that refer to it.
    FreezeVolume {
        volume: String,
        since_ms: u64,
    },
    /// Keeps a layer below a volume for copies, even if its snapshot is deleted.
    KeepLayer {
        pool: PoolId,
        layer: LayerId,
        volume: VolumeId,
        since_ms: u64,
    },
    /// No copy refers to these any more.
    ForgetLayers {
        pool: PoolId,
        layers: Vec<LayerId>,
    },
    /// Hands out a layer that no volume has yet. A start drops it.
    SetLayerAside,
    /// A layer that was set aside becomes the content of a volume, with nothing below it. Refused while the volume is mapped,
    /// or has another size.
    ReplaceContent {
        volume: String,
        layer: LayerId,
        size_bytes: u64,
    },
    RenameSnapshot {
        volume: String,
        snapshot: String,
        name: Name,
    },
    /// The snapshots that it has taken stay its own.
    RenameSchedule {
        schedule: String,
        name: Name,
    },
    CreateSchedule {
        name: Name,
        volumes: Vec<String>,
        keep: Retention,
    },
    /// The snapshots that it has taken stay.
    DeleteSchedule {
        schedule: String,
    },
    /// Takes snapshots of these of its volumes, at one moment, and deletes those that it keeps no longer.
    RunSchedule {
        schedule: String,
        volumes: Vec<VolumeId>,
        now_ms: u64,
        /// None is deleted this time.
        keep_all: bool,
    },
    /// What the clock on the wall says, where it is believed, and for how long volumes have been in the bin.
    NoteTime {
        clock_ms: Option<u64>,
        held_seconds: Vec<(VolumeId, u64)>,
    },
    /// What is known of drives.
    Drives(DriveChange),
    CreateHost {
        host: Host,
    },
    ModifyHost {
        host: String,
        update: HostUpdate,
    },
    /// Refused while volumes are mapped to it, unless `unmap` says to take the mappings with it.
    DeleteHost {
        host: String,
        unmap: bool,
    },
    Map {
        volume: String,
        host: String,
        number: WantedNumber,
        read_only: bool,
    },
    /// Removes every mapping of the volume to the host.
    Unmap {
        volume: String,
        host: String,
    },
    /// A term of ownership begins. Terms only rise.
    BeginTerm {
        term: u64,
    },
}

impl Catalog {
    /// The catalog after `change`, one version on.
    pub fn apply(&self, change: &Change) -> Result<Catalog, CatalogError> {
        let mut next = self.clone();
        match change {
            Change::RenameArray { name } => next.name = name.clone(),
            Change::AttachPool { id, name } => next.attach_pool(*id, name)?,
            Change::DetachPool { pool } => next.detach_pool(pool)?,
            Change::EmptyBin { pool } => next.empty_bin(pool)?,
            Change::RenamePool { pool, name } => next.rename_pool(pool, name)?,
            Change::SetPool { pool, settings } => {
                settings.check()?;
                next.pool_mut(pool)?.settings = *settings;
            }
            Change::SetSpares { pool, spares } => {
                spares.check()?;
                next.pool_mut(pool)?.spares.clone_from(spares);
            }
            Change::Scrubbed { pool, record } => {
                let entry = next.pools.iter_mut().find(|entry| entry.id == *pool);
                entry.into_iter().for_each(|entry| entry.last_scrub = Some(*record));
            }
            Change::CreateVolume { .. } => next.create_volume(change)?,
            Change::RenameVolume { volume, name } => next.rename_volume(volume, name)?,
            Change::RenameSnapshot { volume, snapshot, name } => {
                next.rename_snapshot(volume, snapshot, name)?
            }
            Change::RenameSchedule { schedule, name } => next.rename_schedule(schedule, name)?,
            Change::ResizeVolume { volume, size_bytes } => next.resize_volume(volume, *size_bytes)?,
            Change::DeviceGrew { volume, size_bytes } => next.device_grew(*volume, *size_bytes)?,
            Change::Trimmed { volume } => next.trimmed(*volume),
            Change::DeleteVolume { volume, unmap } => next.delete_volume(volume, *unmap)?,
            Change::BinVolume { volume, unmap, deleted_ms } => {
                next.bin_volume(volume, *unmap, *deleted_ms)?
            }
            Change::UndeleteVolume { volume } => next.undelete_volume(volume)?,
            Change::EradicateVolume { volume } => next.eradicate_volume(volume)?,
            Change::PromoteVolume { volume } => next.promote_volume(volume)?,
            Change::TakeSnapshots { snapshots, created_ms } => next.take_snapshots(snapshots, *created_ms)?,
            Change::DeleteSnapshot { volume, snapshot } => next.delete_snapshot(volume, snapshot)?,
            Change::RollBack { volume, snapshot } => next.roll_back(volume, snapshot)?,
            Change::CloneVolume { volume, snapshot, name, created_ms } => {
                next.clone_volume(volume, snapshot, name, *created_ms)?
            }
            Change::CopyVolume { volume, name, created_ms } => next.copy_volume(volume, name, *created_ms)?,
            Change::RefreshClones { volume, snapshot, clones_of, remap } => {
                next.refresh_clones(volume, snapshot, clones_of, *remap)?
            }
            Change::FreezeVolume { volume, since_ms } => next.freeze_volume(volume, *since_ms)?,
            Change::KeepLayer { pool, layer, volume, since_ms } => {
                next.keep_layer(*pool, *layer, *volume, *since_ms)?
            }
            Change::ForgetLayers { pool, layers } => next.forget_layers(*pool, layers),
            Change::SetLayerAside | Change::ReplaceContent { .. } => next.set_content(change)?,
            Change::CreateSchedule { name, volumes, keep } => next.create_schedule(name, volumes, *keep)?,
            Change::DeleteSchedule { schedule } => next.delete_schedule(schedule)?,
            Change::RunSchedule { schedule, volumes, now_ms, keep_all } => {
                next.run_schedule(schedule, volumes, *now_ms, *keep_all)?
            }
            Change::Drives(change) => next.change_drives(change),
            Change::NoteTime { clock_ms, held_seconds } => next.note_time(*clock_ms, held_seconds),
            Change::CreateHost { host } => next.create_host(host)?,
            Change::ModifyHost { host, update } => next.modify_host(host, update)?,
            Change::DeleteHost { host, unmap } => next.delete_host(host, *unmap)?,
            Change::Map { volume, host, number, read_only } => next.map(volume, host, *number, *read_only)?,
            Change::Unmap { volume, host } => next.unmap(volume, host)?,
            Change::BeginTerm { term } => next.begin_term(*term)?,
        }
        next.note_freed(&self.mappings);
        next.version += 1;
        Ok(next)
    }

    pub(crate) fn volume_index(&self, name: &str) -> Result<usize, CatalogError> {
        let found = self.volumes.iter().position(|volume| volume.name.as_str() == name);
        found.ok_or_else(|| CatalogError::NotFound { kind: "volume", name: name.to_owned() })
    }

    pub(crate) fn host_index(&self, name: &str) -> Result<usize, CatalogError> {
        let found = self.hosts.binary_search_by_key(&name, |host| host.name.as_str());
        found.map_err(|_| CatalogError::NotFound { kind: "host", name: name.to_owned() })
    }

    fn attach_pool(&mut self, id: PoolId, name: &Name) -> Result<(), CatalogError> {
        if self.pool(id).is_some() || self.find_pool(name.as_str()).is_some() {
            return Err(CatalogError::Exists { kind: "pool", name: name.clone() });
        }
        check_room("pool", self.pools.len(), POOLS_MAX)?;
        self.deleted_pools.retain(|deleted| deleted.id != id);
        let place = self.pools.partition_point(|pool| pool.id < id);
        let (name, settings) = (name.clone(), PoolSettings::default());
        self.pools.insert(
            place,
            PoolEntry {
                id,
                name,
                settings,
                last_scrub: None,
                spares: Spares::default(),
                members: Vec::new(),
            },
        );
        Ok(())
    }

    pub(crate) fn pool_mut(&mut self, name: &str) -> Result<&mut PoolEntry, CatalogError> {
        let found = self.pools.iter_mut().find(|pool| pool.name.as_str() == name);
        found.ok_or_else(|| CatalogError::NotFound { kind: "pool", name: name.to_owned() })
    }

    fn detach_pool(&mut self, name: &str) -> Result<(), CatalogError> {
        let Some(entry) = self.find_pool(name).cloned() else {
            return Err(CatalogError::NotFound { kind: "pool", name: name.to_owned() });
        };
        let inside = |volume: &&Volume| volume.place().is_some_and(|(pool, _)| pool == entry.id);
        let names = |volumes: &mut dyn Iterator<Item = &Volume>| -> Vec<Name> {
            volumes.filter(inside).map(|volume| volume.name.clone()).collect()
        };
        let volumes = names(&mut self.volumes.iter());
        if !volumes.is_empty() {
            return Err(CatalogError::PoolInUse { pool: entry.name, volumes });
        }
        let binned = names(&mut self.bin.iter().map(|binned| &binned.volume));
        if !binned.is_empty() {
            return Err(CatalogError::PoolBinInUse { pool: entry.name, volumes: binned });
        }
        self.pools.retain(|pool| pool.id != entry.id);
        self.deleted_pools.push(DeletedPool { id: entry.id, name: entry.name });
        let excess = self.deleted_pools.len().saturating_sub(DELETED_POOLS_MAX);
        self.deleted_pools.drain(..excess);
        // nothing is left that could refer to them
        self.copied_from.retain(|kept| kept.pool != entry.id);
        Ok(())
    }

    fn create_host(&mut self, host: &Host) -> Result<(), CatalogError> {
        check_room("host", self.hosts.len(), HOSTS_MAX)?;
        self.insert_host(host.clone())
    }

    fn insert_host(&mut self, host: Host) -> Result<(), CatalogError> {
        host.check()?;
        let place = match self.hosts.binary_search_by_key(&&host.name, |host| &host.name) {
            Ok(_) => return Err(CatalogError::Exists { kind: "host", name: host.name }),
            Err(place) => place,
        };
        for initiator in &host.initiators {
            if let Some(other) = self.hosts.iter().find(|other| other.initiators.contains(initiator)) {
                let (initiator, host) = (initiator.to_string(), other.name.clone());
                return Err(CatalogError::InitiatorInUse { initiator, host });
            }
        }
        self.hosts.insert(place, host);
        Ok(())
    }

    fn modify_host(&mut self, name: &str, update: &HostUpdate) -> Result<(), CatalogError> {
        let mut host = self.hosts.remove(self.host_index(name)?);
        host.name = update.name.clone().unwrap_or(host.name);
        host.initiators = update.initiators.clone().unwrap_or(host.initiators);
        update.chap.apply_to(&mut host.chap);
        update.mutual.apply_to(&mut host.mutual);
        let all = self.mappings.iter_mut().chain(&mut self.freed_luns);
        for mapping in all.filter(|mapping| mapping.host.as_str() == name) {
            mapping.host = host.name.clone();
        }
        self.bin.iter_mut().for_each(|binned| binned.rename_host(name, &host.name));
        self.mappings.sort_by(|a, b| (&a.host, a.number).cmp(&(&b.host, b.number)));
        self.insert_host(host)
    }

    fn delete_host(&mut self, name: &str, unmap: bool) -> Result<(), CatalogError> {
        let index = self.host_index(name)?;
        let volumes: Vec<Name> = self
            .mappings_of_host(name)
            .filter_map(|mapping| self.volume(mapping.volume))
            .map(|volume| volume.name.clone())
            .collect();
        if !volumes.is_empty() && !unmap {
            return Err(CatalogError::HostMapped { host: self.hosts[index].name.clone(), volumes });
        }
        self.mappings.retain(|mapping| mapping.host.as_str() != name);
        self.freed_luns.retain(|freed| freed.host.as_str() != name);
        self.bin.iter_mut().for_each(|binned| binned.forget_host(name));
        self.hosts.remove(index);
        Ok(())
    }
}

impl Host {
    /// What a host must be by itself.
    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        let count = self.initiators.len();
        if count == 0 {
            return Err(CatalogError::NoInitiator);
        }
        if count > INITIATORS_PER_HOST_MAX {
            return Err(CatalogError::TooManyInitiators { count, max: INITIATORS_PER_HOST_MAX });
        }
        for (index, initiator) in self.initiators.iter().enumerate() {
            if self.initiators[..index].contains(initiator) {
                return Err(CatalogError::InitiatorTwice { initiator: initiator.to_string() });
            }
        }
        for chap in self.chap.iter().chain(&self.mutual) {
            chap.check()?;
        }
        match (&self.chap, &self.mutual) {
            (None, Some(_)) => Err(CatalogError::MutualAlone),
            (Some(one), Some(other)) if one.secret == other.secret => Err(CatalogError::MutualSameSecret),
            _ => Ok(()),
        }
    }
}
