//! Announcements and questions between shards about volumes: reservations, access states, resets, space, copies.

use std::sync::Arc;

use base::{LayerId, PoolId, VolumeId};
use reservation::{AccessState, AccessStates, NexusName, Notice, ReservationRequest, Reservations};

use crate::names::{CommandPlace, SessionPlace};

/// A change of reservations that a nexus asks for, on its way to shard 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationAsk {
    pub volume: VolumeId,
    pub by: NexusName,
    /// The command that asks: the one that is never aborted by it.
    pub command: Option<CommandPlace>,
    pub request: ReservationRequest,
}

/// A volume's reservations as they are from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationNews {
    pub volume: VolumeId,
    pub reservations: Arc<Reservations>,
    pub notices: Vec<(NexusName, Notice)>,
    /// Their commands end.
    pub abort: Vec<NexusName>,
    /// The one command that goes on.
    pub command: Option<CommandPlace>,
}

/// A change of access states, on its way to shard 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessAsk {
    pub volume: VolumeId,
    /// The nexus of the host that asks; none: the administrator does.
    pub by: Option<NexusName>,
    pub changes: Vec<(u16, AccessState)>,
}

/// A volume's access states as they are from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessNews {
    pub volume: VolumeId,
    pub states: Arc<AccessStates>,
    pub told: Told,
}

/// Which hosts are told of new access states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// They are on their way.
    Nobody,
    /// All but the nexus that has asked for them.
    Others(Option<NexusName>),
}

/// A reset of some volumes, for every session of a shard: commands are aborted and what the unit remembers of its
/// initiators is forgotten; all are told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reset {
    pub volumes: Vec<VolumeId>,
    /// These are mapped read-only to the session that asked: they are reset for that session alone.
    pub alone: Vec<VolumeId>,
    /// The session that asked: its protocol forgets the commands by itself.
    pub by: SessionPlace,
}

/// How full a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
}

/// How full all pools are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spaces {
    pub pools: Vec<(PoolId, Space)>,
    /// Pools that have just crossed the threshold: their hosts are told (38h/07h).
    pub crossed: Vec<PoolId>,
}

/// A copy inside a pool that a shard wants to make by reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyAsk {
    pub pool: PoolId,
    pub source: VolumeId,
    pub start_bytes: u64,
    pub length_bytes: u64,
}

/// It may. → [`crate::ManagerCall::EndCopy`], in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyGrant {
    /// The layer that may be referred to, by the pool's name for it.
    pub below: Option<LayerId>,
}
