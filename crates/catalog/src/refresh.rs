//! Refresh: all clones of an image become clones of a newer image, in one change.

use base::{LayerId, PoolId};

use crate::error::CatalogError;
use crate::model::{Catalog, Volume, VolumeKind};
use crate::name::Name;
use crate::snapshot::Snapshot;

/// The image that clones get.
struct Image {
    pool: PoolId,
    dealt_as: LayerId,
    block_bytes: u32,
    name: String,
    snapshot: Snapshot,
}

impl Catalog {
    /// The clones of a snapshot (VOLUME@SNAPSHOT), or of all snapshots of a volume (VOLUME), by the names at the time when the clones were
    /// made. The volume of `image` and whole copies of volumes are not included.
    pub fn clones_of<'a>(&'a self, of: &'a str, image: &'a str) -> impl Iterator<Item = &'a Volume> + 'a {
        let is_of =
            move |label: &str| label.split_once('@').is_some_and(|(volume, _)| label == of || volume == of);
        let chosen = move |volume: &&Volume| {
            volume.clone_of.as_deref().is_some_and(is_of) && volume.name.as_str() != image
        };
        self.volumes().iter().filter(chosen)
    }

    pub(crate) fn refresh_clones(
        &mut self,
        volume: &str,
        snapshot: &str,
        clones_of: &str,
        remap: bool,
    ) -> Result<(), CatalogError> {
        let (index, pool, layer) = self.place_of(volume)?;
        let of = &self.volumes[index];
        let image = Image {
            pool,
            dealt_as: of.dealt_as.unwrap_or(layer),
            block_bytes: of.block_bytes,
            name: format!("{volume}@{snapshot}"),
            snapshot: self.known_snapshot(of.id, snapshot)?,
        };
        let clones: Vec<Name> = self.clones_of(clones_of, volume).map(|clone| clone.name.clone()).collect();
        if clones.is_empty() {
            return Err(CatalogError::NoClones { of: clones_of.to_owned() });
        }
        for clone in &clones {
            let index = self.volume_index(clone.as_str())?;
            self.check_refresh(&self.volumes[index], &image, remap)?;
            let layer = self.hand_out_layer()?;
            let clone = &mut self.volumes[index];
            clone.backing = VolumeKind::Pool { pool, layer };
            clone.stands_on = Some(image.snapshot.layer);
            clone.dealt_as = Some(image.dealt_as);
            clone.clone_of = Some(image.name.clone());
            clone.become_as_large(image.snapshot.size_bytes);
        }
        Ok(())
    }

    fn check_refresh(&self, clone: &Volume, image: &Image, remap: bool) -> Result<(), CatalogError> {
        let hosts: Vec<Name> = self.mappings_of(clone.id).map(|mapping| mapping.host.clone()).collect();
        if !remap && !hosts.is_empty() {
            return Err(CatalogError::RefreshMapped { volume: clone.name.clone(), hosts });
        }
        let unlike = |what| Err(CatalogError::CannotRefresh { volume: clone.name.clone(), what });
        let Some((pool, layer)) = clone.place() else { return unlike("it is not in a pool") };
        if pool != image.pool {
            return unlike("it is in another pool than the snapshot");
        }
        if clone.block_bytes != image.block_bytes {
            return unlike("its blocks have another size than the snapshot's");
        }
        // its own snapshots are dealt to the lanes as it is
        let dealt_as = clone.dealt_as.unwrap_or(layer);
        if dealt_as != image.dealt_as && self.snapshots_of(clone.id).next().is_some() {
            return unlike(
                "it has snapshots, and the new image does not descend from the volume that it was cloned from",
            );
        }
        Ok(())
    }
}
