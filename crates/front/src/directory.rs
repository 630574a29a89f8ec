//! The array as an iSCSI target shows it: which hosts it admits, and the portals where hosts reach it.

use std::net::SocketAddr;

use api::PortalOptions;
use iscsi::{Chap, Directory, HostAccess, Secret};
use shard::Replica;

/// The view of the array for logins and discovery.
pub(crate) struct HostDirectory<'a>(pub(crate) &'a Replica);

impl Directory for HostDirectory<'_> {
    fn target_name(&self) -> &str {
        self.0.catalog.target()
    }

    fn target_alias(&self) -> &str {
        self.0.catalog.name().as_str()
    }

    fn find_host(&self, initiator_name: &str) -> Option<HostAccess> {
        let host = self.0.catalog.host_of_initiator(initiator_name)?;
        Some(HostAccess { chap: host.chap.as_ref().map(chap), mutual: host.mutual.as_ref().map(chap) })
    }

    fn portals(&self, initiator_name: &str) -> Vec<(SocketAddr, u16)> {
        let Some(host) = self.0.catalog.host_of_initiator(initiator_name) else { return Vec::new() };
        let admits = |portal: &&PortalOptions| portal.admits(host.name.as_str());
        self.0.portals.iter().filter(admits).map(|portal| (portal.address, portal.group)).collect()
    }
}

fn chap(chap: &catalog::Chap) -> Chap {
    Chap { user: chap.user.clone(), secret: Secret(chap.secret.expose().as_bytes().to_vec()) }
}

/// The target device that all logical units belong to.
pub(crate) fn target_device(replica: &Replica) -> scsi::Target {
    let name = replica.catalog.target().to_owned();
    // a portal group is a target port, and the only one in its target port group
    let port = |&group: &u16| {
        let name = format!("{name},t,0x{group:04x}");
        scsi::TargetPort { relative_id: group, group, name }
    };
    let ports = replica.groups.iter().map(port).collect();
    scsi::Target { name, ports }
}
