//! How a shard reaches the blocks of a volume, and everything that this depends on.

use base::{Epoch, LayerId, PoolId, ShardId, VolumeId};
use block::Geometry;
use catalog::VolumeKind;
use env::DriveHandle;

use crate::lanes::pool_layer;
use crate::replica::Replica;

/// Everything that a target depends on: as long as it is equal, the target is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TargetPlan {
    pub(crate) geometry: Geometry,
    pub(crate) backing: Backing,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Backing {
    Null,
    Memory,
    /// With the end of the device.
    Raw {
        drive: DriveHandle,
        end_bytes: u64,
    },
    Remote(ShardId),
    Pool {
        pool: PoolId,
        lanes: u16,
        epoch: Epoch,
        layer: LayerId,
        dealt_as: LayerId,
    },
    Offline,
}

impl Backing {
    pub(crate) fn is_same_drive(&self, other: &Backing) -> bool {
        let drive = |backing: &Backing| match backing {
            Backing::Raw { drive, .. } => Some(*drive),
            _ => None,
        };
        drive(self) == drive(other)
    }

    /// Whether both are the same lanes of a pool, opened in the same epoch.
    pub(crate) fn is_where(&self, other: &Backing) -> bool {
        let place = |backing: &Backing| match backing {
            Backing::Pool { pool, lanes, epoch, .. } => Some((*pool, *lanes, *epoch)),
            _ => None,
        };
        place(self).is_some() && place(self) == place(other)
    }
}

impl TargetPlan {
    /// What the target of a volume on `shard` of `shards` depends on.
    pub(crate) fn of(volume: &catalog::Volume, replica: &Replica, shard: ShardId, shards: u16) -> TargetPlan {
        let geometry = Geometry {
            block_bytes: volume.block_bytes,
            blocks: volume.size_bytes / u64::from(volume.block_bytes),
            thin: matches!(volume.backing, VolumeKind::Pool { .. } | VolumeKind::Memory {}),
            write_back: volume.write_back,
        };
        let home = home(volume.id, shards);
        let backing = match &volume.backing {
            VolumeKind::Null {} => Backing::Null,
            VolumeKind::Memory {} if home == shard => Backing::Memory,
            VolumeKind::Memory {} => Backing::Remote(home),
            VolumeKind::Raw { .. } => match replica.raw_drive(volume.id) {
                Some((drive, info)) if home == shard => Backing::Raw { drive, end_bytes: info.end_bytes },
                Some(_) => Backing::Remote(home),
                None => Backing::Offline,
            },
            VolumeKind::Pool { pool, layer } => match replica.pools.iter().find(|(id, ..)| id == pool) {
                Some(&(pool, lanes, epoch)) => {
                    let (layer, dealt_as) =
                        (pool_layer(*layer), pool_layer(volume.dealt_as.unwrap_or(*layer)));
                    Backing::Pool { pool, lanes, epoch, layer, dealt_as }
                }
                None => Backing::Offline,
            },
        };
        TargetPlan { geometry, backing }
    }
}

/// The shard on which a memory or raw volume lives.
fn home(volume: VolumeId, shards: u16) -> ShardId {
    ShardId((volume.0 % u32::from(shards)) as u16)
}
