//! What the sessions of one shard have done, as shard 0 asks for it. Every counter only grows from the start of the shard.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use api::{Load, SessionsLoad, ShardMetrics};
use base::VolumeId;

/// The figures of a shard's sessions, by volume, host and portal. Each command counts in all three.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FrontFigures {
    /// Volumes that have had a command here.
    pub volumes: BTreeMap<VolumeId, Load>,
    /// Volumes that are gone.
    pub other_volumes: Load,
    pub hosts: BTreeMap<String, SessionsLoad>,
    /// Hosts that are gone, or have another name now.
    pub other_hosts: SessionsLoad,
    /// By the address of the portal as it is configured.
    pub portals: BTreeMap<SocketAddr, SessionsLoad>,
    /// Portals that are gone.
    pub other_portals: SessionsLoad,
    /// The sum over all sessions.
    pub shard: ShardMetrics,
}
