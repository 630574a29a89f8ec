//! Layers that stay because copies inside a pool refer to them: the state of a volume when something was copied from
//! it.
//!
//! What always holds: such a layer is never the top layer of a volume; it may also be the layer of a snapshot.

use base::limits::{COPIED_FROM_MAX, COPIED_FROM_PER_VOLUME_MAX};
use base::{HashSet, LayerId, PoolId, VolumeId};
use serde::{Deserialize, Serialize};

use crate::error::{CatalogError, check_room};
use crate::model::{Catalog, VolumeKind};

/// A layer to which something may refer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopiedFrom {
    #[serde(with = "crate::fields::hexadecimal")]
    pub pool: PoolId,
    #[serde(with = "crate::fields::layer")]
    pub layer: LayerId,
    /// The volume that was copied from; it may be gone.
    #[serde(with = "crate::fields::volume")]
    pub volume: VolumeId,
    /// Wall clock, milliseconds since 1970.
    pub since_ms: u64,
}

impl Catalog {
    /// In the order in which they were copied from first.
    pub fn copied_from(&self) -> &[CopiedFrom] {
        &self.copied_from
    }

    pub fn is_copied_from(&self, pool: PoolId, layer: LayerId) -> bool {
        self.copied_from.iter().any(|kept| (kept.pool, kept.layer) == (pool, layer))
    }

    /// The volume goes on in a new layer; the old one stays for copies.
    pub(crate) fn freeze_volume(&mut self, name: &str, since_ms: u64) -> Result<(), CatalogError> {
        let (index, pool, layer) = self.place_of(name)?;
        let volume = self.volumes[index].id;
        let top = self.hand_out_layer()?;
        self.keep_layer(pool, layer, volume, since_ms)?;
        let volume = &mut self.volumes[index];
        volume.dealt_as.get_or_insert(layer);
        volume.backing = VolumeKind::Pool { pool, layer: top };
        Ok(())
    }

    /// Nothing happens where it is kept already.
    pub(crate) fn keep_layer(
        &mut self,
        pool: PoolId,
        layer: LayerId,
        volume: VolumeId,
        since_ms: u64,
    ) -> Result<(), CatalogError> {
        if self.is_copied_from(pool, layer) {
            return Ok(());
        }
        check_room("layer of a copy", self.copied_from.len(), COPIED_FROM_MAX)?;
        let of_volume = self.copied_from.iter().filter(|kept| kept.volume == volume).count();
        check_room("layer of a copy of one volume", of_volume, COPIED_FROM_PER_VOLUME_MAX)?;
        self.copied_from.push(CopiedFrom { pool, layer, volume, since_ms });
        Ok(())
    }

    pub(crate) fn forget_layers(&mut self, pool: PoolId, layers: &[LayerId]) {
        self.copied_from.retain(|kept| kept.pool != pool || !layers.contains(&kept.layer));
    }

    /// Of a decoded catalog: what is wrong with them. `tops` are the layers that volumes are in.
    pub(crate) fn check_copied_from(&self, tops: &HashSet<LayerId>) -> Result<(), String> {
        let mut seen = HashSet::default();
        for CopiedFrom { pool, layer, .. } in &self.copied_from {
            if self.pool(*pool).is_none() {
                return Err(format!("layer {layer} of a copy is in an unknown pool"));
            }
            if layer.0 >= self.next_layer_id || tops.contains(layer) || !seen.insert(*layer) {
                return Err(format!(
                    "layer {layer} of a copy is a volume's, known twice, or was not handed out"
                ));
            }
        }
        let max = COPIED_FROM_MAX;
        if self.copied_from.len() > max { Err(format!("more than {max} layers of copies")) } else { Ok(()) }
    }
}
