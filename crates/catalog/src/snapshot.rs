//! Snapshots, which keep the state of a volume at one moment under a name; clones of snapshots; and rollback.
//!
//! What always holds: a snapshot belongs to an existing volume of a pool, and is in the same pool; it has a layer of
//! its own. Clones of a snapshot do not depend on it.

use base::limits::{SNAPSHOTS_AT_ONCE_MAX, SNAPSHOTS_MAX, VOLUMES_MAX};
use base::{LayerId, PoolId, VolumeId};
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::error::{CatalogError, check_room};
use crate::identity::{Naa, serial};
use crate::model::{Catalog, Volume, VolumeKind};
use crate::name::Name;

/// A snapshot of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    #[serde(with = "crate::fields::volume")]
    pub volume: VolumeId,
    /// Unique among those of the volume.
    pub name: Name,
    #[serde(with = "crate::fields::layer")]
    pub layer: LayerId,
    /// The layer of the snapshot that the volume stood on when it was taken, or of the nearest one below that is left.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::fields::some_layer")]
    pub stands_on: Option<LayerId>,
    /// The volume's then.
    pub size_bytes: u64,
    /// Wall clock, milliseconds since 1970.
    pub created_ms: u64,
    /// The name of the schedule that has taken it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Name>,
}

impl Catalog {
    /// Every snapshot, in the order in which they were taken.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    pub fn snapshots_of(&self, volume: VolumeId) -> impl Iterator<Item = &Snapshot> + '_ {
        self.snapshots.iter().filter(move |snapshot| snapshot.volume == volume)
    }

    pub fn find_snapshot(&self, volume: VolumeId, name: &str) -> Option<&Snapshot> {
        self.snapshots_of(volume).find(|snapshot| snapshot.name.as_str() == name)
    }

    /// The pool and the layer that a volume is in.
    pub(crate) fn place_of(&self, volume: &str) -> Result<(usize, PoolId, LayerId), CatalogError> {
        let index = self.volume_index(volume)?;
        match self.volumes[index].place() {
            Some((pool, layer)) => Ok((index, pool, layer)),
            None => Err(CatalogError::NotInPool { volume: self.volumes[index].name.clone() }),
        }
    }

    pub(crate) fn known_snapshot(&self, volume: VolumeId, name: &str) -> Result<Snapshot, CatalogError> {
        let missing = || CatalogError::NotFound { kind: "snapshot", name: name.to_owned() };
        self.find_snapshot(volume, name).cloned().ok_or_else(missing)
    }

    pub(crate) fn hand_out_layer(&mut self) -> Result<LayerId, CatalogError> {
        let layer = LayerId(self.next_layer_id);
        // the last one means something else to pools
        if layer.0 >= u32::MAX - 1 {
            return Err(CatalogError::IdsExhausted { kind: "layer" });
        }
        self.next_layer_id += 1;
        Ok(layer)
    }

    pub(crate) fn take_snapshots(
        &mut self,
        snapshots: &[(String, Name)],
        created_ms: u64,
    ) -> Result<(), CatalogError> {
        if !(1..=SNAPSHOTS_AT_ONCE_MAX).contains(&snapshots.len()) {
            return Err(CatalogError::SnapshotCount { count: snapshots.len() });
        }
        for (n, (volume, name)) in snapshots.iter().enumerate() {
            if snapshots[..n].iter().any(|(before, _)| before == volume) {
                return Err(CatalogError::SnapshotTwice { volume: volume.clone() });
            }
            self.take_snapshot(volume, name, created_ms)?;
        }
        Ok(())
    }

    /// The volume gets a new layer; the old one becomes the snapshot.
    fn take_snapshot(&mut self, volume: &str, name: &Name, created_ms: u64) -> Result<(), CatalogError> {
        let (index, pool, layer) = self.place_of(volume)?;
        let id = self.volumes[index].id;
        if self.find_snapshot(id, name.as_str()).is_some() {
            return Err(CatalogError::Exists { kind: "snapshot", name: name.clone() });
        }
        check_room("snapshot", self.all_snapshots().count(), SNAPSHOTS_MAX)?;
        let top = self.hand_out_layer()?;
        let volume = &mut self.volumes[index];
        volume.dealt_as.get_or_insert(layer);
        let (size_bytes, stands_on) = (volume.size_bytes, volume.stands_on.replace(layer));
        volume.backing = VolumeKind::Pool { pool, layer: top };
        let name = name.clone();
        let schedule = None;
        self.snapshots.push(Snapshot {
            volume: id,
            name,
            layer,
            stands_on,
            size_bytes,
            created_ms,
            schedule,
        });
        Ok(())
    }

    pub(crate) fn delete_snapshot(&mut self, volume: &str, name: &str) -> Result<(), CatalogError> {
        let id = self.volumes[self.volume_index(volume)?].id;
        let snapshot = self.known_snapshot(id, name)?;
        self.snapshots.retain(|other| other.layer != snapshot.layer);
        self.stand_lower(&snapshot);
        Ok(())
    }

    /// Everything that stood on a deleted snapshot now stands on the layer below it.
    pub(crate) fn stand_lower(&mut self, gone: &Snapshot) {
        let binned = self.bin.iter_mut();
        let (volumes, snapshots): (Vec<_>, Vec<_>) =
            binned.map(|binned| (&mut binned.volume, &mut binned.snapshots)).unzip();
        let volumes = self.volumes.iter_mut().chain(volumes).map(|volume| &mut volume.stands_on);
        let snapshots = self.snapshots.iter_mut().chain(snapshots.into_iter().flatten());
        for below in volumes.chain(snapshots.map(|snapshot| &mut snapshot.stands_on)) {
            if *below == Some(gone.layer) {
                *below = gone.stands_on;
            }
        }
    }

    /// The volume gets a new layer over the snapshot, and the size of the snapshot.
    pub(crate) fn roll_back(&mut self, volume: &str, name: &str) -> Result<(), CatalogError> {
        let (index, pool, _) = self.place_of(volume)?;
        let id = self.volumes[index].id;
        let Snapshot { layer: below, size_bytes, .. } = self.known_snapshot(id, name)?;
        let hosts: Vec<Name> = self.mappings_of(id).map(|mapping| mapping.host.clone()).collect();
        if !hosts.is_empty() {
            return Err(CatalogError::RollbackMapped { volume: self.volumes[index].name.clone(), hosts });
        }
        let layer = self.hand_out_layer()?;
        self.volumes[index].backing = VolumeKind::Pool { pool, layer };
        self.volumes[index].stands_on = Some(below);
        self.volumes[index].become_as_large(size_bytes);
        Ok(())
    }

    /// Sets a layer aside, or makes one that was set aside the content of a volume.
    pub(crate) fn set_content(&mut self, change: &Change) -> Result<(), CatalogError> {
        match change {
            Change::SetLayerAside => self.hand_out_layer().map(drop),
            Change::ReplaceContent { volume, layer, size_bytes } => {
                self.replace_content(volume, *layer, *size_bytes)
            }
            other => unreachable!("{other:?} is no change of a volume's content"),
        }
    }

    /// A layer that was set aside becomes the volume's content. Its blocks are dealt to lanes as those of the volume were.
    fn replace_content(&mut self, volume: &str, layer: LayerId, size_bytes: u64) -> Result<(), CatalogError> {
        let (index, pool, before) = self.place_of(volume)?;
        let hosts: Vec<Name> =
            self.mappings_of(self.volumes[index].id).map(|mapping| mapping.host.clone()).collect();
        let of = &mut self.volumes[index];
        if !hosts.is_empty() {
            return Err(CatalogError::ReplaceMapped { volume: of.name.clone(), hosts });
        }
        if of.size_bytes != size_bytes {
            return Err(CatalogError::ReplaceResized { volume: of.name.clone() });
        }
        assert!(layer.0 < self.next_layer_id, "the layer was set aside");
        of.dealt_as.get_or_insert(before);
        of.backing = VolumeKind::Pool { pool, layer };
        (of.first_size_bytes, of.untrimmed) = (None, false);
        (of.stands_on, of.clone_of) = (None, None);
        Ok(())
    }

    /// A volume with an identity of its own and the content of the snapshot.
    pub(crate) fn clone_volume(
        &mut self,
        volume: &str,
        snapshot: &str,
        name: &Name,
        created_ms: u64,
    ) -> Result<(), CatalogError> {
        let (index, ..) = self.place_of(volume)?;
        let snapshot = self.known_snapshot(self.volumes[index].id, snapshot)?;
        let copy = self.new_copy(index, name, created_ms)?;
        copy.size_bytes = snapshot.size_bytes;
        copy.clone_of = Some(format!("{volume}@{}", snapshot.name));
        copy.stands_on = Some(snapshot.layer);
        Ok(())
    }

    /// A volume with an identity of its own and the current content of another.
    pub(crate) fn copy_volume(
        &mut self,
        volume: &str,
        name: &Name,
        created_ms: u64,
    ) -> Result<(), CatalogError> {
        let (index, pool, dealt_as) = self.place_of(volume)?;
        let layer = self.hand_out_layer()?;
        let of = &mut self.volumes[index];
        of.dealt_as.get_or_insert(dealt_as);
        of.backing = VolumeKind::Pool { pool, layer };
        let (size_bytes, stands_on, untrimmed) = (of.size_bytes, of.stands_on, of.untrimmed);
        let copy = self.new_copy(index, name, created_ms)?;
        copy.size_bytes = size_bytes;
        copy.clone_of = Some(volume.to_owned());
        // what the other still has behind its end, the copy has, too
        (copy.stands_on, copy.untrimmed) = (stands_on, untrimmed);
        Ok(())
    }

    /// A new volume beside this one, in a layer of its own.
    fn new_copy(&mut self, of: usize, name: &Name, created_ms: u64) -> Result<&mut Volume, CatalogError> {
        self.check_volume_name(name)?;
        check_room("volume", self.all_volumes().count(), VOLUMES_MAX)?;
        if self.next_volume_id == u32::MAX {
            return Err(CatalogError::IdsExhausted { kind: "volume" });
        }
        let (id, layer) = (VolumeId(self.next_volume_id), self.hand_out_layer()?);
        self.next_volume_id += 1;
        let of = &self.volumes[of];
        let (pool, dealt_as) = of.place().expect("in a pool");
        self.volumes.push(Volume {
            id,
            name: name.clone(),
            backing: VolumeKind::Pool { pool, layer },
            size_bytes: of.size_bytes,
            block_bytes: of.block_bytes,
            write_back: of.write_back,
            naa: Naa::derive(self.array, id),
            serial: serial(self.array, id),
            created_ms,
            reservations: None,
            first_size_bytes: None,
            untrimmed: false,
            access: crate::access::KeptAccesses::new(),
            dealt_as: of.dealt_as.or(Some(dealt_as)),
            clone_of: None,
            stands_on: None,
        });
        Ok(self.volumes.last_mut().expect("just added"))
    }

    /// A clone takes over the snapshots below it that belong to its origin; the origin is a clone from then on.
    pub(crate) fn promote_volume(&mut self, name: &str) -> Result<(), CatalogError> {
        let index = self.volume_index(name)?;
        let (id, volume_name) = (self.volumes[index].id, self.volumes[index].name.clone());
        let at =
            |layer: Option<LayerId>| self.snapshots.iter().position(|snapshot| Some(snapshot.layer) == layer);
        let mut below = self.volumes[index].stands_on;
        // its own first
        while let Some(own) = at(below).filter(|&own| self.snapshots[own].volume == id) {
            below = self.snapshots[own].stands_on;
        }
        let Some(origin) = at(below).map(|first| self.snapshots[first].volume) else {
            let in_bin = self
                .bin
                .iter()
                .find(|binned| binned.snapshots.iter().any(|snapshot| Some(snapshot.layer) == below));
            return Err(match in_bin {
                Some(binned) => CatalogError::OriginInBin { origin: binned.volume.name.clone() },
                None => CatalogError::NotAClone { volume: volume_name },
            });
        };
        let first = at(below).expect("just found");
        let mut taken = Vec::new();
        while let Some(next) = at(below).filter(|&next| self.snapshots[next].volume == origin) {
            if self.find_snapshot(id, self.snapshots[next].name.as_str()).is_some() {
                let (volume, snapshot) = (volume_name, self.snapshots[next].name.clone());
                return Err(CatalogError::PromoteTwice { volume, snapshot });
            }
            taken.push(next);
            below = self.snapshots[next].stands_on;
        }
        taken.into_iter().for_each(|taken| self.snapshots[taken].volume = id);
        let origin = self.volumes.binary_search_by_key(&origin, |volume| volume.id).expect("it has one");
        self.volumes[index].clone_of = self.volumes[origin].clone_of.take();
        self.volumes[origin].clone_of = Some(format!("{volume_name}@{}", self.snapshots[first].name));
        Ok(())
    }

    /// Of a decoded catalog: what is wrong with its snapshots. `layers` are the volumes' own.
    pub(crate) fn check_snapshots(&self, mut layers: base::HashSet<LayerId>) -> Result<(), String> {
        let mut names = base::HashSet::default();
        let of = |snapshot: &Snapshot| {
            let binned = self.bin.iter().find(|binned| binned.volume.id == snapshot.volume);
            self.volume(snapshot.volume).or(binned.map(|binned| &binned.volume))
        };
        for snapshot in self.all_snapshots() {
            let Snapshot { volume, name, layer, .. } = snapshot;
            let in_pool = of(snapshot).is_some_and(|of| of.place().is_some());
            if !in_pool {
                return Err(format!("a snapshot of volume {volume}, which is not in a pool"));
            }
            if !layers.insert(*layer) || layer.0 >= self.next_layer_id {
                return Err(format!("layer {layer} of a snapshot is another's, or was not handed out"));
            }
            if snapshot.stands_on.is_some_and(|below| below >= *layer) {
                return Err(format!("layer {layer} of a snapshot stands on a newer one"));
            }
            if !names.insert((*volume, name)) {
                return Err(format!("two snapshots of volume {volume} called {name}"));
            }
        }
        Ok(())
    }
}
