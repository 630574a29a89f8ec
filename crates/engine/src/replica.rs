//! The array as every shard sees it: one immutable value, made by shard 0 and handed to all.

use std::net::SocketAddr;

use base::{ArrayId, Epoch, PoolId, VolumeId};
use catalog::Catalog;
use env::{DriveHandle, DriveInfo};
use iscsi::{Chap, Directory, HostAccess, Secret};

/// The one portal group of a head: all its portals reach the same sessions.
pub(crate) const PORTAL_GROUP_TAG: u16 = 1;

/// What a shard needs to know to serve hosts.
#[derive(Debug)]
pub struct Replica {
    pub catalog: Catalog,
    /// Addresses that are listened on.
    pub portals: Vec<SocketAddr>,
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
        let port =
            scsi::TargetPort { relative_id: 1, group: 1, name: format!("{name},t,0x{PORTAL_GROUP_TAG:04x}") };
        let state = scsi::AluaState::ActiveOptimized;
        let group = scsi::PortGroup { id: 1, state, preferred: true };
        scsi::Target { name, ports: vec![port], groups: vec![group] }
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

    fn portals(&self) -> Vec<(SocketAddr, u16)> {
        self.portals.iter().map(|&address| (address, PORTAL_GROUP_TAG)).collect()
    }
}

fn chap(chap: &catalog::Chap) -> Chap {
    Chap { user: chap.user.clone(), secret: Secret(chap.secret.expose().as_bytes().to_vec()) }
}
