//! What the tasks of one shard share, and what becomes of the messages that reach it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use base::{ShardId, VolumeId};
use block::Payload;
use env::ListenerHandle;
use iscsi::Budget;
use reservation::{AccessStates, Refusal, Reservations};
use task::{Io, Semaphore, join_all};

use crate::admission::Guesses;
use crate::array::Array;
use crate::connection::Sessions;
use crate::events::{SessionEnd, SessionListener};
use crate::lanes::Lanes;
use crate::mail::Mail;
use crate::memory::Memory;
use crate::message::{Answer, Call, CallId, ShardMessage};
use crate::refusals::SpaceRefusals;
use crate::reinstatement::Register;
use crate::replica::Replica;
use crate::runners::Runners;
use crate::scsi_command::Begun;
use crate::unit::Units;
use crate::{StartParameters, access, listener, reservations, task_management};
use api::{CommandError, CommandErrorKind, PortalOptions};

/// The shard that manages the array and keeps the register of sessions.
pub(crate) const MANAGER: ShardId = ShardId(0);

/// How far a shard is in its life; it only moves on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    Serving,
    /// No new session, and none left soon.
    Quiescing,
    /// Nothing left to do.
    Stopped,
}

/// One shard's state.
pub(crate) struct Context {
    pub(crate) io: Io,
    pub(crate) shard: ShardId,
    pub(crate) shards: u16,
    pub(crate) mail: Rc<Mail>,
    pub(crate) stage: Cell<Stage>,
    pub(crate) replica: RefCell<Arc<Replica>>,
    pub(crate) units: Units,
    pub(crate) lanes: Rc<Lanes>,
    pub(crate) sessions: Sessions,
    /// What the commands of all sessions may hold.
    pub(crate) budget: Rc<Budget>,
    pub(crate) runners: Rc<Runners<Begun>>,
    /// Other shards' requests to volumes and lanes that are at home here.
    serving: Rc<Runners<Served>>,
    /// What is listened on, by the address that was had.
    pub(crate) listeners: RefCell<Vec<(PortalOptions, ListenerHandle)>>,
    /// Where wrong secrets came from.
    pub(crate) guesses: Guesses,
    /// Writes that found no space.
    pub(crate) space_refusals: SpaceRefusals,
    /// Who is logged in where; shard 0's counts.
    pub(crate) register: Register,
    /// Changes of reservations take turns, on shard 0.
    pub(crate) reservation_turn: Semaphore,
    /// Volumes whose access states are changing, on shard 0.
    pub(crate) changing_access: RefCell<BTreeSet<VolumeId>>,
    /// Told of what happens at the front door.
    pub(crate) listener: RefCell<Option<SessionListener>>,
    /// The array's management; on shard 0 only.
    array: OnceCell<Rc<Array>>,
}

/// Another shard's call for blocks, and who is answered.
type Served = (Rc<Context>, ShardId, CallId, Call);

async fn serve((context, from, id, call): Served) {
    let answer = context.handle_blocks(call).await;
    context.mail.answer(from, id, answer);
}

impl Context {
    pub(crate) fn new(io: &Io, shard: ShardId, shards: u16, memory: Memory) -> Rc<Context> {
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
            sessions: Sessions::default(),
            budget: Budget::new(memory.data_bytes),
            runners: Rc::default(),
            serving: Rc::default(),
            listeners: RefCell::new(Vec::new()),
            guesses: Guesses::default(),
            space_refusals: SpaceRefusals::default(),
            register: Register::new(io),
            reservation_turn: Semaphore::new(io, 1),
            changing_access: RefCell::default(),
            listener: RefCell::default(),
            array: OnceCell::new(),
        })
    }

    /// Begins the array's life, on shard 0.
    pub(crate) fn start_array(self: Rc<Context>, parameters: StartParameters) {
        let array = Rc::new(Array::new(&self, parameters));
        assert!(self.array.set(array.clone()).is_ok(), "an array starts once");
        self.io.clone().spawn(array.start());
    }

    pub(crate) fn on_message(self: &Rc<Context>, message: ShardMessage) {
        match message {
            ShardMessage::Answer { id, answer } => self.mail.on_answer(id, answer),
            // most calls under load: they need no task, or no memory for one
            ShardMessage::Call { from, id, call: Call::Block(volume, request) } => {
                match self.units.answer_at_once(volume, &request) {
                    Some(result) => self.mail.answer(from, id, Answer::Block(result, request.into_data())),
                    None => self.serve(from, id, Call::Block(volume, request)),
                }
            }
            ShardMessage::Call { from, id, call: call @ Call::Lane(..) } => self.serve(from, id, call),
            ShardMessage::Call { from, id, call } => {
                let context = self.clone();
                self.io.spawn(async move {
                    let answer = context.clone().handle(call).await;
                    context.mail.answer(from, id, answer);
                });
            }
            ShardMessage::Control(command, reply, caller) => match self.array.get() {
                Some(array) => array.clone().on_command(command, reply, caller),
                None => reply(Err(CommandError::new(
                    CommandErrorKind::Unavailable,
                    "the command reached a shard that does not manage the array",
                    "send it to shard 0",
                ))),
            },
        }
    }

    fn serve(self: &Rc<Context>, from: ShardId, id: CallId, call: Call) {
        self.serving.run(&self.io, (self.clone(), from, id, call), serve);
    }

    /// Asks one shard, which may be this one. The call begins now.
    pub(crate) fn ask(self: &Rc<Context>, to: ShardId, call: Call) -> impl Future<Output = Answer> + use<> {
        let answer = if to == self.shard {
            self.io.spawn_join(self.clone().handle(call))
        } else {
            self.mail.call(to, call)
        };
        async move { answer.await.expect("every call is answered") }
    }

    /// Asks every shard, this one too. The calls begin now; answers in the order of shards.
    pub(crate) fn ask_all(self: &Rc<Context>, call: impl Fn() -> Call) -> impl Future<Output = Vec<Answer>> {
        join_all((0..self.shards).map(|shard| self.ask(ShardId(shard), call())).collect::<Vec<_>>())
    }

    /// Asks every other shard. The calls begin now.
    pub(crate) fn ask_others(
        self: &Rc<Context>,
        call: impl Fn() -> Call,
    ) -> impl Future<Output = Vec<Answer>> {
        let others = (0..self.shards).map(ShardId).filter(|&shard| shard != self.shard);
        join_all(others.map(|shard| self.ask(shard, call())).collect::<Vec<_>>())
    }

    /// Does the work of a call.
    async fn handle(self: Rc<Context>, call: Call) -> Answer {
        match call {
            Call::Block(..) | Call::Lane(..) => self.handle_blocks(call).await,
            Call::OpenLane(membership, lane) => {
                Answer::LaneOpened(self.lanes.open(&self, membership, lane).await)
            }
            Call::CloseLanes(pool) => {
                self.lanes.close(pool).await;
                Answer::Done
            }
            Call::LaneStats => Answer::LaneStats(self.lanes.stats()),
            Call::SpaceRefusals => Answer::SpaceRefusals(self.space_refusals.recent(self.io.now())),
            Call::Layers(pool) => Answer::Layers(self.lanes.layers(pool)),
            Call::KeptBy(pool, layers) => Answer::Kept(self.lanes.kept_by(pool, &layers)),
            Call::Adopt(membership) => {
                self.lanes.adopt(&membership);
                Answer::Done
            }
            Call::DriveUse(pool, drive, instead) => {
                Answer::DriveUse(self.lanes.drive_use(pool, drive, instead))
            }
            Call::Scrub(pool, begin) => {
                self.lanes.scrub(pool, begin);
                Answer::Done
            }
            Call::DriveFailed(pool, drive, error) => match self.array.get() {
                Some(array) => Answer::Recorded(array.drive_failed(pool, drive, error).await),
                None => unreachable!("drives are reported to the shard that manages the array"),
            },
            Call::BeginCopy(ask) => Answer::CopyBegun(self.manager().begin_copy(ask).await),
            Call::EndCopy(pool) => {
                self.manager().end_copy(pool);
                Answer::Done
            }
            Call::Replicate(replica) => {
                self.replicate(replica).await;
                Answer::Done
            }
            Call::Listen(portals) => Answer::Listening(listener::listen(&self, portals).await),
            Call::Unlisten(addresses) => {
                listener::stop(&self, |address| addresses.contains(&address)).await;
                Answer::Done
            }
            Call::Register(key, place, claim) => {
                Answer::Registered(self.register.register(&self, key, place, claim).await)
            }
            Call::Unregister(key, place) => {
                self.register.unregister(&key, place);
                Answer::Done
            }
            Call::Quiesce => {
                self.quiesce().await;
                Answer::Done
            }
            Call::Stop => {
                self.stage.set(Stage::Stopped);
                Answer::Done
            }
            call => self.handle_for_sessions(call).await,
        }
    }

    /// Those calls that are about blocks.
    async fn handle_blocks(&self, call: Call) -> Answer {
        match call {
            Call::Block(volume, request) => {
                Answer::Block(self.units.execute(volume, request).await, Payload::new())
            }
            Call::Lane(pool, lane, request) => Answer::Lane(self.lanes.execute(pool, lane, request).await),
            other => unreachable!("{other:?} is not about blocks"),
        }
    }

    /// Those calls that are about this shard's sessions.
    async fn handle_for_sessions(self: &Rc<Context>, call: Call) -> Answer {
        match call {
            Call::EndSession(place) => {
                if let Some(session) = self.sessions.get(place) {
                    session.drop_now(SessionEnd::Reinstated);
                    session.wait_for_all().await;
                }
                Answer::Done
            }
            Call::EndSessionsOf(host) => {
                task_management::end_sessions_of(self, &host);
                Answer::Done
            }
            Call::Reserve(ask) => Answer::Reserved(reservations::carry_out(self, ask).await),
            Call::Reservations(announcement) => {
                let aborted = reservations::adopt(self, &announcement);
                task_management::wait_for(&aborted).await;
                Answer::Done
            }
            Call::SetAccess(ask) => Answer::Reserved(access::carry_out(self, ask).await),
            Call::Access(announcement) => {
                let at_work = access::adopt(self, &announcement);
                task_management::wait_for(&at_work).await;
                Answer::Done
            }
            Call::HoldWrites(volumes, hold) => {
                self.units.hold_writes(&volumes, hold).await;
                Answer::Done
            }
            Call::LeaveLayer(pool, layer) => {
                self.units.leave_layer(pool, layer).await;
                Answer::Done
            }
            Call::Spaces(spaces) => {
                self.units.set_spaces(&spaces.pools);
                for session in self.sessions.all() {
                    session.tell_threshold(&spaces.crossed);
                }
                Answer::Done
            }
            Call::Reset(reset) => {
                let aborted = task_management::apply(self, &reset);
                task_management::wait_for(&aborted).await;
                Answer::Done
            }
            Call::Sessions => {
                let sessions = self.sessions.all();
                Answer::Sessions(sessions.iter().filter_map(|session| session.status(self.shard)).collect())
            }
            other => unreachable!("{other:?} is not about sessions"),
        }
    }

    fn manager(&self) -> &Rc<Array> {
        self.array.get().expect("shard 0 manages the array")
    }

    /// Makes a volume's reservations survive a restart, on shard 0.
    pub(crate) async fn keep_reservations(
        &self,
        volume: VolumeId,
        reservations: &Reservations,
    ) -> Result<(), Refusal> {
        self.manager().keep_reservations(volume, reservations::to_keep(reservations)).await
    }

    /// Makes a volume's access states survive a restart, on shard 0.
    pub(crate) async fn keep_access(&self, volume: VolumeId, states: &AccessStates) -> Result<(), Refusal> {
        self.manager().keep_access(volume, access::to_keep(states)).await
    }

    /// Takes over the array as it is now, and waits for commands that have lost their LUN by it.
    async fn replicate(&self, replica: Arc<Replica>) {
        self.units.apply(&replica);
        self.lanes.tune(&replica.catalog);
        *self.replica.borrow_mut() = replica.clone();
        for (portal, _) in self.listeners.borrow_mut().iter_mut() {
            if let Some(now) = replica.portal(portal.address) {
                *portal = now.clone();
            }
        }
        let mut lost = Vec::new();
        for session in self.sessions.all() {
            let commands = session.refresh(&replica, &self.units);
            lost.push((session, commands));
        }
        task_management::wait_for(&lost).await;
    }

    /// Stops serving hosts: no listener, no session, no command at work.
    async fn quiesce(&self) {
        self.stage.set(Stage::Quiescing);
        listener::stop(self, |_| true).await;
        let sessions = self.sessions.all();
        sessions.iter().for_each(|session| session.close(SessionEnd::Stopping));
        for session in sessions {
            session.gone.pass().await;
        }
    }
}
