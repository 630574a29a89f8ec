//! Volumes: creating, resizing, deleting for good.

use base::limits::{VOLUME_BYTES_MAX, VOLUME_GROWTH_MAX, VOLUMES_MAX};
use base::{BLOCK_BYTES, LayerId, PoolId, VolumeId};

use crate::access::KeptAccesses;
use crate::change::{Change, NewVolume};
use crate::error::{CatalogError, check_room};
use crate::identity::{Naa, serial};
use crate::model::{Catalog, Volume, VolumeKind};
use crate::name::Name;

impl Catalog {
    /// `new` is a [`Change::CreateVolume`].
    pub(crate) fn create_volume(&mut self, new: &Change) -> Result<(), CatalogError> {
        let Change::CreateVolume { name, backing, size_bytes, block_bytes, write_back, created_ms } = new
        else {
            unreachable!("it is a new volume");
        };
        let backing = self.place_volume(name, backing)?;
        let id = VolumeId(self.next_volume_id);
        let volume = Volume {
            id,
            name: name.clone(),
            backing,
            size_bytes: *size_bytes,
            block_bytes: *block_bytes,
            write_back: *write_back,
            naa: Naa::derive(self.array, id),
            serial: serial(self.array, id),
            created_ms: *created_ms,
            reservations: None,
            access: KeptAccesses::new(),
            first_size_bytes: None,
            untrimmed: false,
            dealt_as: None,
            clone_of: None,
            stands_on: None,
        };
        volume.check()?;
        self.next_volume_id += 1;
        self.volumes.push(volume);
        Ok(())
    }

    pub(crate) fn check_volume_name(&self, name: &Name) -> Result<(), CatalogError> {
        if self.find_binned(name.as_str()).is_some() {
            return Err(CatalogError::InBin { volume: name.clone() });
        }
        match self.find_volume(name.as_str()) {
            Some(_) => Err(CatalogError::Exists { kind: "volume", name: name.clone() }),
            None => Ok(()),
        }
    }

    fn place_volume(&mut self, name: &Name, backing: &NewVolume) -> Result<VolumeKind, CatalogError> {
        self.check_volume_name(name)?;
        check_room("volume", self.all_volumes().count(), VOLUMES_MAX)?;
        for (kind, next) in [("volume", self.next_volume_id), ("layer", self.next_layer_id)] {
            if next == u32::MAX {
                return Err(CatalogError::IdsExhausted { kind });
            }
        }
        match backing {
            NewVolume::Pool(pool) => {
                let Some(entry) = self.find_pool(pool) else {
                    return Err(CatalogError::NotFound { kind: "pool", name: pool.clone() });
                };
                let kind = VolumeKind::Pool { pool: entry.id, layer: LayerId(self.next_layer_id) };
                self.next_layer_id += 1;
                Ok(kind)
            }
            NewVolume::Raw { path } => {
                let same =
                    |volume: &&Volume| matches!(&volume.backing, VolumeKind::Raw { path: p } if p == path);
                if let Some(other) = self.volumes.iter().find(same) {
                    return Err(CatalogError::RawInUse { path: path.clone(), volume: other.name.clone() });
                }
                Ok(VolumeKind::Raw { path: path.clone() })
            }
            NewVolume::Null => Ok(VolumeKind::Null {}),
            NewVolume::Memory => Ok(VolumeKind::Memory {}),
        }
    }

    pub(crate) fn resize_volume(&mut self, name: &str, size_bytes: u64) -> Result<(), CatalogError> {
        let index = self.volume_index(name)?;
        let volume = &mut self.volumes[index];
        let name = volume.name.clone();
        if matches!(volume.backing, VolumeKind::Raw { .. }) {
            return Err(CatalogError::RawResize { volume: name });
        }
        let in_pool = volume.place().is_some();
        let smaller = size_bytes < volume.size_bytes;
        if size_bytes == volume.size_bytes {
            return Err(CatalogError::SameSize { volume: name, size_bytes });
        }
        if smaller && !in_pool {
            return Err(CatalogError::NotLarger { volume: name, size_bytes: volume.size_bytes });
        }
        if volume.untrimmed && !smaller {
            return Err(CatalogError::Untrimmed { volume: name });
        }
        if in_pool {
            volume.first_size_bytes.get_or_insert(volume.size_bytes);
        }
        volume.untrimmed |= smaller;
        volume.size_bytes = size_bytes;
        volume.check()
    }

    pub(crate) fn trimmed(&mut self, id: VolumeId) {
        let found = self.volumes.iter_mut().find(|volume| volume.id == id);
        found.into_iter().for_each(|volume| volume.untrimmed = false);
    }

    /// A raw volume gets larger with its device, never smaller: what hosts were told of stays an error, not another size.
    pub(crate) fn device_grew(&mut self, id: VolumeId, size_bytes: u64) -> Result<(), CatalogError> {
        let found = self.volumes.iter_mut().find(|volume| volume.id == id);
        let raw = found.filter(|volume| matches!(volume.backing, VolumeKind::Raw { .. }));
        let Some(volume) = raw else {
            return Err(CatalogError::NotFound { kind: "raw volume", name: id.to_string() });
        };
        if size_bytes <= volume.size_bytes {
            return Err(CatalogError::NotLarger {
                volume: volume.name.clone(),
                size_bytes: volume.size_bytes,
            });
        }
        volume.size_bytes = size_bytes;
        volume.check()
    }

    /// `unmap`: mappings do not matter.
    pub(crate) fn check_unmapped(&self, index: usize, unmap: bool) -> Result<(), CatalogError> {
        let Volume { id, name, .. } = &self.volumes[index];
        let hosts: Vec<Name> = self.mappings_of(*id).map(|mapping| mapping.host.clone()).collect();
        match hosts.is_empty() || unmap {
            true => Ok(()),
            false => Err(CatalogError::VolumeMapped { volume: name.clone(), hosts }),
        }
    }

    pub(crate) fn delete_volume(&mut self, name: &str, unmap: bool) -> Result<(), CatalogError> {
        let index = self.volume_index(name)?;
        let id = self.volumes[index].id;
        let snapshots = self.snapshots_of(id).count();
        if snapshots > 0 {
            return Err(CatalogError::VolumeHasSnapshots {
                volume: self.volumes[index].name.clone(),
                snapshots,
            });
        }
        self.check_unmapped(index, unmap)?;
        self.mappings.retain(|mapping| mapping.volume != id);
        self.volumes.remove(index);
        self.unschedule(id);
        Ok(())
    }
}

impl Volume {
    /// The pool and the layer that it is in, if it is in one.
    pub fn place(&self) -> Option<(PoolId, LayerId)> {
        match self.backing {
            VolumeKind::Pool { pool, layer } => Some((pool, layer)),
            VolumeKind::Raw { .. } | VolumeKind::Memory {} | VolumeKind::Null {} => None,
        }
    }

    /// The volume gets a new layer over one of this size, which determines the size of the new layer.
    pub(crate) fn become_as_large(&mut self, size_bytes: u64) {
        self.first_size_bytes = None;
        if self.size_bytes != size_bytes {
            (self.size_bytes, self.untrimmed) = (size_bytes, false);
        }
    }

    /// What a volume must be by itself.
    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        if !matches!(self.block_bytes, 512 | 4096) {
            return Err(CatalogError::BlockSize { block_bytes: self.block_bytes });
        }
        // a device may end with any sector
        let unit = match self.backing {
            VolumeKind::Raw { .. } => u64::from(self.block_bytes),
            _ => BLOCK_BYTES as u64,
        };
        let whole = self.size_bytes.is_multiple_of(unit);
        if !whole || self.size_bytes == 0 || self.size_bytes > VOLUME_BYTES_MAX {
            return Err(CatalogError::Size { size_bytes: self.size_bytes });
        }
        if let Some(first) = self.first_size_bytes {
            let max_bytes = first.saturating_mul(VOLUME_GROWTH_MAX).min(VOLUME_BYTES_MAX);
            if self.size_bytes > max_bytes {
                return Err(CatalogError::NoRoomToGrow { volume: self.name.clone(), max_bytes });
            }
        }
        match &self.backing {
            VolumeKind::Raw { path } if !path.starts_with('/') || path.contains('\0') => {
                Err(CatalogError::RawPath { path: path.clone() })
            }
            _ => Ok(()),
        }
    }
}
