//! The array as every shard sees it: one immutable value, made by shard 0 and handed to all.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use base::{ArrayId, Epoch, LayerId, PoolId, VolumeId};
use catalog::Catalog;
use env::{DriveHandle, DriveInfo};

use api::{PortalOptions, TransferId};

/// A transfer of the control plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    pub id: TransferId,
    pub pool: PoolId,
    /// By the pool's ids, as `dealt_as`.
    pub layer: LayerId,
    pub dealt_as: LayerId,
    pub size_bytes: u64,
    /// It writes the layer, which exists in this epoch of the pool only. Otherwise it reads.
    pub writes: Option<Epoch>,
}

/// What a shard needs to know to serve hosts.
#[derive(Debug)]
pub struct Replica {
    pub catalog: Catalog,
    /// Addresses of the listeners.
    pub portals: Vec<PortalOptions>,
    /// The groups of these portals, and of portals that could not be opened.
    pub groups: BTreeSet<u16>,
    /// The devices of raw volumes that could be opened.
    pub raw: Vec<(VolumeId, DriveHandle, DriveInfo)>,
    /// Pools in service, with their number of lanes and the epoch in which they were opened.
    pub pools: Vec<(PoolId, u16, Epoch)>,
    pub transfers: Vec<Transfer>,
}

impl Replica {
    /// The state of a shard before shard 0 has described the array: it serves nothing to nobody.
    pub fn empty() -> Replica {
        let name = "starting".parse().expect("a valid name");
        Replica {
            catalog: Catalog::new(ArrayId(0), name),
            portals: Vec::new(),
            groups: BTreeSet::new(),
            raw: Vec::new(),
            pools: Vec::new(),
            transfers: Vec::new(),
        }
    }

    pub fn raw_drive(&self, volume: VolumeId) -> Option<(DriveHandle, &DriveInfo)> {
        let found = self.raw.iter().find(|(id, ..)| *id == volume)?;
        Some((found.1, &found.2))
    }

    /// The groups of portals of the partner, which forwards.
    pub fn forwarded_groups(&self) -> BTreeSet<u16> {
        self.portals.iter().filter(|portal| portal.forwarded).map(|portal| portal.group).collect()
    }

    pub fn portal(&self, address: SocketAddr) -> Option<&PortalOptions> {
        self.portals.iter().find(|portal| portal.address == address)
    }
}
