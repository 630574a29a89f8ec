//! The array as every shard sees it: one immutable value, made by shard 0 and handed to all.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use base::{ArrayId, Epoch, PoolId, VolumeId};
use catalog::Catalog;
use env::{DriveHandle, DriveInfo};
use iscsi::{Chap, Directory, HostAccess, Secret};

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
    pub(crate) fn empty() -> Replica {
        let name = "starting".parse().expect("a valid name");
        Replica {
            catalog: Catalog::new(ArrayId(0), name),
            portals: Vec::new(),
            groups: BTreeSet::new(),
            raw: Vec::new(),
            pools: Vec::new(),
        }
    }

    pub(crate) fn raw_drive(&self, volume: VolumeId) -> Option<(DriveHandle, &DriveInfo)> {
        let found = self.raw.iter().find(|(id, ..)| *id == volume)?;
        Some((found.1, &found.2))
    }

    /// The target device that all logical units belong to.
    pub(crate) fn target(&self) -> scsi::Target {
        let name = self.catalog.target().to_owned();
        // a portal group is a target port, and alone in its target port group
        let port = |&group: &u16| {
            let name = format!("{name},t,0x{group:04x}");
            scsi::TargetPort { relative_id: group, group, name }
        };
        let ports = self.groups.iter().map(port).collect();
        scsi::Target { name, ports }
    }

    pub(crate) fn portal(&self, address: SocketAddr) -> Option<&PortalOptions> {
        self.portals.iter().find(|portal| portal.address == address)
    }
}

impl Directory for Replica {
    fn target_name(&self) -> &str {
        self.catalog.target()
    }

    fn target_alias(&self) -> &str {
        self.catalog.name().as_str()
    }

    fn find_host(&self, initiator_name: &str) -> Option<HostAccess> {
        let host = self.catalog.host_of_initiator(initiator_name)?;
        Some(HostAccess { chap: host.chap.as_ref().map(chap), mutual: host.mutual.as_ref().map(chap) })
    }

    fn portals(&self, initiator_name: &str) -> Vec<(SocketAddr, u16)> {
        let Some(host) = self.catalog.host_of_initiator(initiator_name) else { return Vec::new() };
        let admits = |portal: &&PortalOptions| portal.admits(host.name.as_str());
        self.portals.iter().filter(admits).map(|portal| (portal.address, portal.group)).collect()
    }
}

fn chap(chap: &catalog::Chap) -> Chap {
    Chap { user: chap.user.clone(), secret: Secret(chap.secret.expose().as_bytes().to_vec()) }
}
