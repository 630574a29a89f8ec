//! What the tasks of one shard share, and how they call other shards or another room of their own shard.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use base::{PoolId, ShardId};
use block::{Budget, Payload};
use pool::{Departure, LaneHost};
use reservation::Refusal;
use task::{Io, OneshotReceiver, join_all};

use crate::bulk_credit::BulkCredit;
use crate::lanes::Lanes;
use crate::limiter::Reports;
use crate::mail::Mail;
use crate::memory::Memory;
use crate::message::{Answer, Call, CallId, ManagerCall, ShardCall};
use crate::refusals::SpaceRefusals;
use crate::replica::Replica;
use crate::runners::Runners;
use crate::units::Units;

/// The shard that manages the array and keeps the register of sessions.
pub const MANAGER: ShardId = ShardId(0);

/// The phase of a shard from its start to its end; it only advances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    Serving,
    /// No new session is accepted, and the existing ones end soon.
    Quiescing,
    /// Nothing is left to do.
    Stopped,
}

/// Carries out the calls of a shard: all of its rooms together.
pub trait Handler {
    fn handle(self: Rc<Self>, call: Call) -> Pin<Box<dyn Future<Output = Answer>>>;
}

/// The state of one shard that all rooms need.
pub struct Context {
    pub io: Io,
    pub shard: ShardId,
    pub shards: u16,
    pub mail: Rc<Mail>,
    pub stage: Cell<Stage>,
    pub replica: RefCell<Arc<Replica>>,
    pub units: Units,
    pub lanes: Rc<Lanes>,
    /// Limits the data that the commands of all sessions may hold.
    pub budget: Rc<Budget>,
    /// Requests of transfers.
    pub(crate) bulk: BulkCredit,
    /// Recent writes that found no space.
    pub space_refusals: SpaceRefusals,
    /// Events that were reported lately.
    pub reports: Reports,
    /// Requests of other shards to volumes and lanes whose home is this shard.
    serving: Rc<Runners<Served>>,
    handler: OnceCell<Weak<dyn Handler>>,
}

/// Another shard's call for blocks, and where to send the answer.
type Served = (Rc<Context>, ShardId, CallId, Call);

async fn serve((context, from, id, call): Served) {
    let answer = context.handle_blocks(call).await;
    context.mail.answer(from, id, answer);
}

impl Context {
    pub fn new(io: &Io, shard: ShardId, shards: u16, memory: Memory) -> Rc<Context> {
        let mail = Rc::new(Mail::new(io, shard, shards));
        let lanes = Rc::new(Lanes::new(memory.map_bytes));
        Rc::new(Context {
            io: io.clone(),
            shard,
            shards,
            units: Units::new(io, &mail, &lanes, shard, shards),
            lanes,
            mail,
            stage: Cell::new(Stage::Serving),
            replica: RefCell::new(Arc::new(Replica::empty())),
            bulk: BulkCredit::default(),
            budget: Budget::new(memory.data_bytes),
            space_refusals: SpaceRefusals::default(),
            reports: Reports::default(),
            serving: Rc::default(),
            handler: OnceCell::new(),
        })
    }

    /// From now on the shard's own calls to itself are carried out by `handler`.
    pub fn set_handler(&self, handler: Weak<dyn Handler>) {
        assert!(self.handler.set(handler).is_ok(), "a shard has one handler");
    }

    /// Serves another shard's request for blocks. These are most of the calls under load: they need no task, or no new
    /// memory for one.
    pub fn serve_blocks(self: &Rc<Context>, from: ShardId, id: CallId, call: Call) {
        match call {
            Call::Block(volume, request) => match self.units.answer_at_once(volume, &request) {
                Some(result) => self.mail.answer(from, id, Answer::Block(result, request.into_data())),
                None => self.serve(from, id, Call::Block(volume, request)),
            },
            call => self.serve(from, id, call),
        }
    }

    fn serve(self: &Rc<Context>, from: ShardId, id: CallId, call: Call) {
        self.serving.run(&self.io, (self.clone(), from, id, call), serve);
    }

    /// Calls one shard, which may be this one. The call begins now.
    pub fn ask<C: Into<Call>>(&self, to: ShardId, call: C) -> impl Future<Output = Answer> + use<C> {
        let call = call.into();
        let answer = if to == self.shard {
            let handler =
                self.handler.get().and_then(Weak::upgrade).expect("a shard that runs has its rooms");
            self.io.spawn_join(handler.handle(call))
        } else {
            self.mail.call(to, call)
        };
        async move { answer.await.expect("every call is answered") }
    }

    /// Asks shard 0 for a change of reservations or access states, which it may refuse.
    pub async fn request<C: Into<Call>>(&self, call: C) -> Result<(), Refusal> {
        match self.ask(MANAGER, call).await {
            Answer::Reserved(result) => result,
            other => unreachable!("the answer to a request that may be refused, not {other:?}"),
        }
    }

    /// Calls every shard, including this one. The calls begin now; answers are in the order of shards.
    pub fn ask_all<C: Into<Call>>(&self, call: impl Fn() -> C) -> impl Future<Output = Vec<Answer>> {
        join_all((0..self.shards).map(|shard| self.ask(ShardId(shard), call())).collect::<Vec<_>>())
    }

    /// Calls every other shard. The calls begin now.
    pub fn ask_others<C: Into<Call>>(&self, call: impl Fn() -> C) -> impl Future<Output = Vec<Answer>> {
        let others = (0..self.shards).map(ShardId).filter(|&shard| shard != self.shard);
        join_all(others.map(|shard| self.ask(shard, call())).collect::<Vec<_>>())
    }

    /// Applies the new state of the array.
    pub fn take_over(&self, replica: &Arc<Replica>) {
        self.units.apply(replica);
        self.lanes.tune(&replica.catalog);
        *self.replica.borrow_mut() = replica.clone();
    }

    /// Carries out calls about blocks.
    pub async fn handle_blocks(&self, call: Call) -> Answer {
        match call {
            Call::Block(volume, request) => {
                Answer::Block(self.units.execute(volume, request).await, Payload::new())
            }
            Call::Lane(pool, lane, request) => Answer::Lane(self.lanes.execute(pool, lane, request).await),
            other => unreachable!("{other:?} is not about blocks"),
        }
    }

    /// Carries out calls about this shard's volumes and lanes.
    pub async fn handle(self: &Rc<Context>, call: ShardCall) -> Answer {
        match call {
            ShardCall::OpenLane(membership, lane) => {
                let (context, io) = (Rc::downgrade(self), self.io.clone());
                let host = Rc::new(Host { context, io, pool: membership.pool });
                return Answer::LaneOpened(self.lanes.open(&self.io, membership, lane, host).await);
            }
            ShardCall::LaneStats => return Answer::LaneStats(self.lanes.stats()),
            ShardCall::SpaceRefusals => {
                return Answer::SpaceRefusals(self.space_refusals.recent(self.io.now()));
            }
            ShardCall::Layers(pool) => return Answer::Layers(self.lanes.layers(pool)),
            ShardCall::KeptBy(pool, layers) => return Answer::Kept(self.lanes.kept_by(pool, &layers)),
            ShardCall::DriveUse(pool, drive, instead) => {
                return Answer::DriveUse(self.lanes.drive_use(pool, drive, instead));
            }
            ShardCall::CloseLanes(pool) => self.lanes.close(pool).await,
            ShardCall::Adopt(membership) => self.lanes.adopt(&membership),
            ShardCall::Scrub(pool, begin) => self.lanes.scrub(pool, begin),
            ShardCall::HoldWrites(volumes, hold) => self.units.hold_writes(&volumes, hold).await,
            ShardCall::LeaveLayer(pool, layer) => self.units.leave_layer(pool, layer).await,
            ShardCall::Stop => self.stage.set(Stage::Stopped),
        }
        Answer::Done
    }
}

/// Receives a lane's reports about its drives.
struct Host {
    context: Weak<Context>,
    io: Io,
    pool: PoolId,
}

impl LaneHost for Host {
    fn drive_failed(&self, drive: u8, departure: Departure) -> OneshotReceiver<bool> {
        let context = self.context.upgrade();
        let pool = self.pool;
        self.io.spawn_join(async move {
            let Some(context) = context else { return false };
            let answer = context.ask(MANAGER, ManagerCall::DriveFailed(pool, drive, departure)).await;
            matches!(answer, Answer::Recorded(true))
        })
    }
}
