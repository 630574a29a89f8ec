//! The messages of a shard: calls between shards, and calls of the control plane to shard 0.
//!
//! All of them are values: no call holds a pointer into the shard that sends it. A call names the room that carries it
//! out, so a shard passes it on without inspecting it.

use std::net::SocketAddr;
use std::sync::Arc;

use api::{Caller, Command, PortalOptions, ReplyChannel, SessionStatus};
use base::{LayerId, PoolId, ShardId, VolumeId};
use block::{BlockRequest, BlockResult, Payload};
use catalog::{KeptAccesses, KeptReservations};
use env::IoError;
use pool::{LaneRequest, LaneResult, LaneStats, LayerSpace, Membership, PoolError};
use reservation::Refusal;

use crate::lanes::DriveUse;
use crate::names::{Claim, SessionKey, SessionLimit, SessionPlace};
use crate::news::{
    AccessAsk, AccessNews, CopyAsk, CopyGrant, ReservationAsk, ReservationNews, Reset, Spaces,
};
use crate::replica::Replica;

/// What shards and the control plane say to a shard.
pub enum ShardMessage {
    /// From the control plane, to shard 0 only.
    Control(Command, ReplyChannel, Caller),
    /// From a shard that waits for the answer.
    Call { from: ShardId, id: CallId, call: Call },
    /// To the shard that called.
    Answer { id: CallId, answer: Answer },
}

/// Numbers the calls of one shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallId {
    pub(crate) place: usize,
    pub(crate) generation: u32,
}

/// Work that one shard asks of another, by the room that does it.
#[derive(Debug)]
pub enum Call {
    /// A request to a volume that lives on the asked shard. → [`Answer::Block`]
    Block(VolumeId, BlockRequest),
    /// A request to a lane that lives on the asked shard. → [`Answer::Lane`]
    Lane(PoolId, u16, LaneRequest),
    /// From shard 0, for all rooms: the array as it is now. Answered when access that it takes away has ended.
    /// → [`Answer::Done`]
    Replicate(Arc<Replica>),
    /// From shard 0, for all rooms: how full pools are. → [`Answer::Done`]
    Spaces(Arc<Spaces>),
    /// About volumes and lanes.
    Shard(ShardCall),
    /// About sessions of hosts.
    Front(FrontCall),
    /// To shard 0, about the array.
    Manager(ManagerCall),
}

/// What shard 0 asks of every shard's volumes and lanes.
#[derive(Debug)]
pub enum ShardCall {
    /// Recover and open a lane of a claimed pool. → [`Answer::LaneOpened`]
    OpenLane(Membership, u16),
    /// Write last checkpoints and close the pool's lanes. → [`Answer::Done`]
    CloseLanes(PoolId),
    /// Who belongs to the pool now. → [`Answer::Done`]
    Adopt(Membership),
    /// Begin to scrub the pool's lanes, or stop. → [`Answer::Done`]
    Scrub(PoolId, bool),
    /// → [`Answer::LaneStats`]
    LaneStats,
    /// Whose writes to which volumes found no space lately. → [`Answer::SpaceRefusals`]
    SpaceRefusals,
    /// The layers in the asked shard's lanes of the pool. → [`Answer::Layers`]
    Layers(PoolId),
    /// Blocks that nothing but these layers keeps in the asked shard's lanes of the pool. → [`Answer::Kept`]
    KeptBy(PoolId, Arc<[LayerId]>),
    /// What the asked shard's lanes have on a drive of the pool, and whether it could be done without, or with a drive of
    /// so many chunks in its place. → [`Answer::DriveUse`]
    DriveUse(PoolId, u8, Option<u32>),
    /// Hold back writes to these volumes, or let them go on. Answered when none is under way. → [`Answer::Done`]
    HoldWrites(Arc<[VolumeId]>, bool),
    /// No volume is in this layer any more. Answered when no command is at work that began in it. → [`Answer::Done`]
    LeaveLayer(PoolId, LayerId),
    /// Write checkpoints and stop for good. → [`Answer::Done`]
    Stop,
}

/// What is asked of a shard's sessions with hosts.
#[derive(Debug)]
pub enum FrontCall {
    /// From shard 0: listen on these addresses. → [`Answer::Listening`]
    Listen(Vec<PortalOptions>),
    /// From shard 0: stop listening on these addresses. Connections stay. → [`Answer::Done`]
    Unlisten(Vec<SocketAddr>),
    /// To shard 0: a session wants to begin. Answered when the older session that it replaces has ended.
    /// → [`Answer::Registered`]
    Register(SessionKey, SessionPlace, Claim),
    /// To shard 0: a session has ended. → [`Answer::Done`]
    Unregister(SessionKey, SessionPlace),
    /// To shard 0: which initiators met a limit of sessions lately, and how often. → [`Answer::RefusedLogins`]
    RefusedLogins,
    /// From shard 0: end this session. Answered when its commands have ended. → [`Answer::Done`]
    EndSession(SessionPlace),
    /// End every session of this host. → [`Answer::Done`]
    EndSessionsOf(String),
    /// To shard 0: change a volume's reservations. Answered when every shard has taken the change over.
    /// → [`Answer::Reserved`]
    Reserve(ReservationAsk),
    /// From shard 0: a volume's reservations from now on. Answered when no command that this aborts is at work.
    /// → [`Answer::Done`]
    Reservations(Arc<ReservationNews>),
    /// To shard 0: give port groups other access states for a volume. Answered when every shard has taken the
    /// change over. → [`Answer::Reserved`]
    SetAccess(AccessAsk),
    /// From shard 0: a volume's access states from now on. Answered when nothing is at work by a group that is
    /// transitioning. → [`Answer::Done`]
    Access(Arc<AccessNews>),
    /// Carry out a reset on every session of the asked shard. Answered when no aborted command is at work.
    /// → [`Answer::Done`]
    Reset(Reset),
    /// → [`Answer::Sessions`]
    Sessions,
    /// From shard 0: stop serving hosts. Answered when no session is left. → [`Answer::Done`]
    Quiesce,
}

/// All that a shard wants of the manager of the array.
#[derive(Debug)]
pub enum ManagerCall {
    /// A drive of the pool does not answer or refuses writes. Answered when that is on record and every lane knows.
    /// → [`Answer::Recorded`]
    DriveFailed(PoolId, u8, IoError),
    /// A copy inside a pool wants to begin. → [`Answer::CopyBegun`]
    BeginCopy(CopyAsk),
    /// One that has begun in this pool has ended. → [`Answer::Done`]
    EndCopy(PoolId),
    /// Make a volume's reservations survive a restart. → [`Answer::Reserved`]
    KeepReservations(VolumeId, Option<KeptReservations>),
    /// Make a volume's access states survive a restart. → [`Answer::Reserved`]
    KeepAccess(VolumeId, KeptAccesses),
}

/// What came of a call.
#[derive(Debug)]
pub enum Answer {
    Done,
    /// What a write carried goes back with it, so that memory is given back by the shard that took it: counting who holds a
    /// buffer costs most where two processors do it in turn.
    Block(BlockResult, Payload),
    Lane(LaneResult),
    LaneOpened(Result<(), PoolError>),
    /// One for each open lane.
    LaneStats(Vec<(PoolId, LaneStats)>),
    /// Volumes, and names of hosts.
    SpaceRefusals(Vec<(VolumeId, String)>),
    /// For each lane, each of its layers and how many blocks are mapped in it.
    Layers(Vec<(LayerId, LayerSpace)>),
    /// Blocks, in all lanes of the shard.
    Kept(u64),
    /// One for each open lane of the pool.
    DriveUse(Vec<DriveUse>),
    /// `false` where service cannot go on.
    Recorded(bool),
    /// The bound addresses, in the order asked for.
    Listening(Vec<Result<SocketAddr, IoError>>),
    /// The session's TSIH, or why the host gets no further session.
    Registered(Result<u16, SessionLimit>),
    /// The limit, the initiator, and how many logins were refused.
    RefusedLogins(Vec<(SessionLimit, String, u64)>),
    Sessions(Vec<SessionStatus>),
    Reserved(Result<(), Refusal>),
    /// `None`: its data is to be copied.
    CopyBegun(Option<CopyGrant>),
}

impl From<ShardCall> for Call {
    fn from(call: ShardCall) -> Call {
        Call::Shard(call)
    }
}

impl From<FrontCall> for Call {
    fn from(call: FrontCall) -> Call {
        Call::Front(call)
    }
}

impl From<ManagerCall> for Call {
    fn from(call: ManagerCall) -> Call {
        Call::Manager(call)
    }
}
