//! Announcements and questions between shards about volumes: reservations, access states, resets, space, copies; and
//! reports of events.

use std::sync::Arc;

use api::{EventFacts, Subject};
use base::{LayerId, PoolId, VolumeId};
use reservation::{AccessState, AccessStates, Notice, Registrant, ReservationRequest, Reservations};

use crate::names::{CommandPlace, SessionPlace};

/// A change of reservations that a nexus requests, sent to shard 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationAsk {
    pub volume: VolumeId,
    pub by: Registrant,
    /// The requesting command, which the change never aborts.
    pub command: Option<CommandPlace>,
    pub request: ReservationRequest,
}

/// A volume's new reservations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationNews {
    pub volume: VolumeId,
    pub reservations: Arc<Reservations>,
    pub notices: Vec<(Registrant, Notice)>,
    /// Those whose commands are aborted.
    pub abort: Vec<Registrant>,
    /// The one command that continues.
    pub command: Option<CommandPlace>,
}

/// A change of access states, sent to shard 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessAsk {
    pub volume: VolumeId,
    /// The nexus of the requesting host; `None`: the administrator requests it.
    pub by: Option<Registrant>,
    pub changes: Vec<(u16, AccessState)>,
}

/// A volume's new access states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessNews {
    pub volume: VolumeId,
    pub states: Arc<AccessStates>,
    pub told: NotifiedHosts,
}

/// Which hosts are notified of new access states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotifiedHosts {
    /// The states are still transitioning.
    Nobody,
    /// All except the requesting nexus.
    Others(Option<Registrant>),
}

/// A reset of some volumes, for every session of a shard. Commands are aborted, the unit forgets what it remembers of
/// its initiators, and all initiators are notified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reset {
    pub volumes: Vec<VolumeId>,
    /// Volumes that are mapped read-only to the requesting session: they are reset for that session alone.
    pub alone: Vec<VolumeId>,
    /// The requesting session. Its protocol forgets the commands itself.
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
    /// Pools that have just crossed the threshold: their hosts are notified (38h/07h).
    pub crossed: Vec<PoolId>,
}

/// An event that has happened on a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub subject: Subject,
    pub facts: EventFacts,
    /// How many occurrences it stands for.
    pub count: u64,
}

/// A copy inside a pool that a shard requests to make by reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyAsk {
    pub pool: PoolId,
    pub source: VolumeId,
    pub start_bytes: u64,
    pub length_bytes: u64,
}

/// The copy may begin. → [`crate::ManagerCall::EndCopy`] always follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyGrant {
    /// The layer that may be referred to, by the pool's id.
    pub below: Option<LayerId>,
}

/// How a lane uses a drive.
#[derive(Clone, Copy, Debug)]
pub struct DriveUse {
    /// Segments that have a column on the drive.
    pub segments: usize,
    /// Blocks that the lane stores, and how many it could store without the drive, or with its replacement.
    pub stored_blocks: u64,
    pub possible_blocks: u64,
    /// Columns that the most exposed block of the lane has lost.
    pub worst_exposed: usize,
    /// Some data of the lane may be readable only as long as the drive is there.
    pub needed: bool,
}
