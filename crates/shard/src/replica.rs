//! The array as every shard sees it: one immutable value, made by shard 0 and handed to all.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use base::{ArrayId, Epoch, PoolId, VolumeId};
use catalog::Catalog;
use env::{DriveHandle, DriveInfo};

use api::PortalOptions;

/// What a shard needs to know to serve hosts.
#[derive(Debug)]
pub struct Replica {
    pub catalog: Catalog,
    /// Addresses that are listened on.
    pub portals: Vec<PortalOptions>,
    /// Their groups, and those of addresses that could not be had.
    pub groups: BTreeSet<u16>,
    /// The devices of raw volumes that could be opened.
    pub raw: Vec<(VolumeId, DriveHandle, DriveInfo)>,
    /// Pools that are served, with their number of lanes and the epoch in which they were opened.
    pub pools: Vec<(PoolId, u16, Epoch)>,
}

impl Replica {
    /// What a shard serves before it is told what there is: nothing, to nobody.
    pub fn empty() -> Replica {
        let name = "starting".parse().expect("a valid name");
        Replica {
            catalog: Catalog::new(ArrayId(0), name),
            portals: Vec::new(),
            groups: BTreeSet::new(),
            raw: Vec::new(),
            pools: Vec::new(),
        }
    }

    pub fn raw_drive(&self, volume: VolumeId) -> Option<(DriveHandle, &DriveInfo)> {
        let found = self.raw.iter().find(|(id, ..)| *id == volume)?;
        Some((found.1, &found.2))
    }

    pub fn portal(&self, address: SocketAddr) -> Option<&PortalOptions> {
        self.portals.iter().find(|portal| portal.address == address)
    }
}
