//! The messages of a shard: calls between shards, and calls of the control plane to shard 0.
//!
//! All of them are values: no call holds a pointer into the shard that sends it. A call names the room that carries it
//! out, so a shard passes it on without inspecting it.

use std::net::SocketAddr;
use std::sync::Arc;

use api::{Bulk, BulkReply, Caller, Command, PortalOptions, ReplyChannel, SessionStatus};
use base::{LayerId, PoolId, ShardId, VolumeId};
use block::{BlockRequest, BlockResult, Payload};
use catalog::{KeptAccesses, KeptReservations};
use env::IoError;
use pool::{Departure, LaneRequest, LaneResult, LaneStats, LayerSpace, Membership, PoolError};
use reservation::Refusal;

use crate::figures::FrontFigures;
use crate::names::{SessionKey, SessionLimit, SessionPlace, SessionRequest};
use crate::news::{
    AccessAsk, AccessNews, CopyAsk, CopyGrant, DriveUse, Report, ReservationAsk, ReservationNews, Reset,
    Spaces,
};
use crate::replica::Replica;

/// A message to a shard, from another shard or the control plane.
pub enum ShardMessage {
    /// From the control plane, to shard 0 only.
    Control(Command, ReplyChannel, Caller),
    /// From the control plane, to the shard that a transfer was given.
    Bulk(Bulk, BulkReply),
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

/// Work that one shard requests from another, by the room that does it.
#[derive(Debug)]
pub enum Call {
    /// A request to a volume that lives on the asked shard. → [`Answer::Block`]
    Block(VolumeId, BlockRequest),
    /// A request to a lane that lives on the asked shard. → [`Answer::Lane`]
    Lane(PoolId, u16, LaneRequest),
    /// From shard 0, for all rooms: the new state of the array. Answered when commands have ended whose access it
    /// removes. → [`Answer::Done`]
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

/// Calls of shard 0 to every shard's volumes and lanes.
#[derive(Debug)]
pub enum ShardCall {
    /// Recover and open a lane of a claimed pool. → [`Answer::LaneOpened`]
    OpenLane(Membership, u16),
    /// Write last checkpoints and close the pool's lanes. → [`Answer::Done`]
    CloseLanes(PoolId),
    /// The new membership of the pool. → [`Answer::Done`]
    Adopt(Membership),
    /// Begin to scrub the pool's lanes, or stop. → [`Answer::Done`]
    Scrub(PoolId, bool),
    /// → [`Answer::LaneStats`]
    LaneStats,
    /// Which hosts' writes to which volumes recently found no space. → [`Answer::SpaceRefusals`]
    SpaceRefusals,
    /// The layers in the asked shard's lanes of the pool. → [`Answer::Layers`]
    Layers(PoolId),
    /// Blocks that only these layers keep in the called shard's lanes of the pool. → [`Answer::Kept`]
    KeptBy(PoolId, Arc<[LayerId]>),
    /// How the called shard's lanes use a drive of the pool, and whether the pool could do without it, or with a
    /// replacement of this many chunks. → [`Answer::DriveUse`]
    DriveUse(PoolId, u8, Option<u32>),
    /// Hold back writes to these volumes, or let them continue. Answered when no write is in flight. → [`Answer::Done`]
    HoldWrites(Arc<[VolumeId]>, bool),
    /// No volume uses this layer any more. Answered when no command that began in it is running. → [`Answer::Done`]
    LeaveLayer(PoolId, LayerId),
    /// Write checkpoints and stop permanently. → [`Answer::Done`]
    Stop,
}

/// Calls about a shard's sessions with hosts.
#[derive(Debug)]
pub enum FrontCall {
    /// From shard 0: listen on these addresses. → [`Answer::Listening`]
    Listen(Vec<PortalOptions>),
    /// From shard 0: stop listening on these addresses. Connections stay. → [`Answer::Done`]
    Unlisten(Vec<SocketAddr>),
    /// To shard 0: a session wants to begin. Answered when the older session of its name has ended. →
    /// [`Answer::Registered`]
    Register(SessionKey, SessionPlace, SessionRequest),
    /// To shard 0: a session has ended. → [`Answer::Done`]
    Unregister(SessionKey, SessionPlace),
    /// To shard 0: which initiators recently met a limit of sessions, and how often. → [`Answer::RefusedLogins`]
    RefusedLogins,
    /// From shard 0: end this session. Answered when its commands have ended. → [`Answer::Done`]
    EndSession(SessionPlace),
    /// End every session of this host. → [`Answer::Done`]
    EndSessionsOf(String),
    /// To shard 0: change a volume's reservations. Answered when every shard has adopted the change. →
    /// [`Answer::Reserved`]
    Reserve(ReservationAsk),
    /// From shard 0: a volume's new reservations. Answered when no command that this aborts is running. →
    /// [`Answer::Done`]
    Reservations(Arc<ReservationNews>),
    /// To shard 0: set other access states of port groups for a volume. Answered when every shard has adopted the
    /// change. → [`Answer::Reserved`]
    SetAccess(AccessAsk),
    /// From shard 0: a volume's new access states. Answered when no command by a transitioning group is running. →
    /// [`Answer::Done`]
    Access(Arc<AccessNews>),
    /// Reset volumes for every session of the called shard. Answered when no aborted command is running. →
    /// [`Answer::Done`]
    Reset(Reset),
    /// → [`Answer::Sessions`]
    Sessions,
    /// What the sessions have done, for monitoring. → [`Answer::Figures`]
    Figures,
    /// From shard 0: stop serving hosts. Answered when no session is left. → [`Answer::Done`]
    Quiesce,
}

/// All calls of a shard to the manager of the array.
#[derive(Debug)]
pub enum ManagerCall {
    /// A drive of the pool does not answer or refuses writes. Answered when this is recorded and every lane knows it. →
    /// [`Answer::Recorded`]
    DriveFailed(PoolId, u8, Departure),
    /// A copy inside a pool wants to begin. → [`Answer::CopyBegun`]
    BeginCopy(CopyAsk),
    /// A copy in this pool has ended. → [`Answer::Done`]
    EndCopy(PoolId),
    /// Make a volume's reservations survive a restart. → [`Answer::Reserved`]
    KeepReservations(VolumeId, Option<KeptReservations>),
    /// Make a volume's access states survive a restart. → [`Answer::Reserved`]
    KeepAccess(VolumeId, KeptAccesses),
    /// Something has happened. → [`Answer::Done`]
    Report(Report),
}

/// The answer to a call.
#[derive(Debug)]
pub enum Answer {
    Done,
    /// The data of a write returns with the answer, so that the shard that allocated the memory frees it. Reference
    /// counts are most expensive when two processors change them in turn.
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
    /// `false` if service cannot continue.
    Recorded(bool),
    /// The bound addresses, in the order asked for.
    Listening(Vec<Result<SocketAddr, IoError>>),
    /// The session's TSIH, or why the host gets no further session.
    Registered(Result<u16, SessionLimit>),
    /// The limit, the initiator, and how many logins were refused.
    RefusedLogins(Vec<(SessionLimit, String, u64)>),
    Sessions(Vec<SessionStatus>),
    Figures(Box<FrontFigures>),
    Reserved(Result<(), Refusal>),
    /// `None`: the data has to be copied.
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
