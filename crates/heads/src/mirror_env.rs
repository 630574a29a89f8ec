//! The world as the engine of an owner sees it: writes and flushes of drives that have a twin go to both. Everything else is the world
//! below.
//!
//! ```text
//!   shard 1 ─► MirrorEnv ─ write, flush ─ Mail::Drive ──┐
//!                    └──── read ─► world below          ▼
//!   shard 0 ─► MirrorEnv ─────────────────────────► Center ─► own drives, connection to the partner
//! ```
//!
//! What always holds: the engine's operations end once, with their own tokens; the tokens of this room's own operations have the
//! highest bit; nothing is sent to hosts while the head does not permit it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use base::{Nanos, ShardId};
use env::{Completion, ConnectionHandle, Env, Event, IoError, Operation, Outcome, Token, Wait};
use pair::{CommitRule, StoreOrder, Term, Timing};
use task::Executor;

use crate::center::Center;
use crate::dial::{self, PartnerAddress};
use crate::drive_work::{Mirrored, carry_out, is_for_center};
use crate::forward::{Door, end_late, is_of_forwarder};
use crate::head::{HeadMail, RunningHead};
use crate::permit::Permit;
use crate::shared::ClaimKey;
use crate::wire::Identity;

/// Random values generated in advance: for connections and synchronies.
const RANDOM_RESERVOIR: usize = 64;
const OURS: u64 = 1 << 63;

/// What the shards of an owner say to each other: what the engine's shards say, and what this room adds.
pub enum Mail<M> {
    Engine(M),
    /// A write, a flush, or the opening or closing of a drive: it is for shard 0.
    Drive {
        from: ShardId,
        token: Token,
        operation: Operation,
    },
    Ended(Completion),
    /// A drive has refused this because another host has reserved it: for shard 0.
    Conflict {
        from: ShardId,
        completion: Completion,
    },
    /// The head has decided: for shard 0.
    Order(StoreOrder),
    /// The head wants to know since when the oldest request waits for the partner: for shard 0.
    Wait,
    /// The head wants to know whether the shard takes its turns.
    Answer,
    /// For the head itself, which runs beside the engine's shards: it is the last shard.
    Head(HeadMail),
    /// All pools of the array are there: for shard 0.
    Whole,
    /// To be done on the head's thread.
    Task(HeadTask),
    /// There is something to do that is not in the mail.
    Wake,
}

/// What another thread has the head do.
pub type HeadTask = Box<dyn FnOnce(&Rc<RunningHead>) + Send>;

/// What each shard of an owner needs.
#[derive(Clone)]
pub struct OwnerOptions {
    pub identity: Identity,
    pub term: Term,
    /// Where this head listens for the other one: what that forwards comes beside.
    pub addresses: Vec<SocketAddr>,
    pub timing: Timing,
    /// A host may have so much on its way through the partner; [`crate::WINDOW_BYTES`] unless tests want less.
    pub window_bytes: usize,
}

/// What shard 0 needs.
pub struct MirrorOptions {
    pub partner: PartnerAddress,
    /// How this owner begins.
    pub rule: CommitRule,
    /// Twins that may be out while the partner's copy can still serve.
    pub tolerated: usize,
    /// All that the array has is there from the start. Otherwise [`Mail::Whole`] says when.
    pub is_whole: bool,
}

/// What waits to be sent to other shards, and what has ended for this one: shared with tasks.
type Outbox<M> = Rc<RefCell<VecDeque<(ShardId, Mail<M>)>>>;

/// Whether an operation below is one that the engine has asked for.
pub fn is_of_engine(token: Token) -> bool {
    token.0 & OURS == 0
}

/// How often a shard looks whether it may send what it holds back.
const LOOK: Nanos = Nanos::from_millis(1);

/// See the header of this file.
pub struct MirrorEnv<E, M> {
    below: E,
    mirrored: Mirrored,
    outbox: Outbox<M>,
    executor: Executor,
    door: Rc<Door>,
    /// On shard 0.
    center: Option<Rc<Center>>,
    events: Vec<Event<Mail<M>>>,
    permit: Permit,
    /// What is sent to hosts when that is permitted again, in this order.
    held: VecDeque<(Token, ConnectionHandle, Operation)>,
    /// What was never sent, because its connection was closed.
    dropped: Vec<Token>,
}

impl<M: Send + 'static, E: Env<Message = Mail<M>>> MirrorEnv<E, M> {
    /// For one shard. `mirrored` is the same for all; shard 0 has the mirror. `mail` has come already.
    pub fn new(
        (mut below, mail): (E, Vec<Mail<M>>),
        mirrored: Mirrored,
        permit: Permit,
        owner: &OwnerOptions,
        options: Option<MirrorOptions>,
    ) -> MirrorEnv<E, M> {
        assert_eq!(options.is_some(), below.shard().0 == 0, "shard 0 has the mirror");
        let outbox = Outbox::default();
        let mut executor = Executor::new();
        executor.set_now(below.now());
        executor.io().refill_random(RANDOM_RESERVOIR, || below.random_u64());
        let (own, head) = (below.shard(), ShardId(below.shards() - 1));
        let to_head = |outbox: &Outbox<M>| {
            let outbox = outbox.clone();
            move |mail| outbox.borrow_mut().push_back((head, Mail::Head(mail)))
        };
        let center = options.map(|options| {
            let tell = to_head(&outbox);
            let report = Rc::new(move |report| tell(HeadMail::Report(report)));
            let key = ClaimKey::new(&owner.identity, owner.term);
            let center = Center::new(executor.io(), options.tolerated, options.is_whole, key, report);
            center.on_order(StoreOrder::Commit(options.rule));
            let dialing =
                dial::keep_open(center.clone(), owner.identity.clone(), options.partner, owner.term);
            executor.io().spawn(dialing);
            center
        });
        let (ended, tell) = (outbox.clone(), to_head(&outbox));
        let ended = move |completion| ended.borrow_mut().push_back((own, Mail::Ended(completion)));
        let told = move |portals| tell(HeadMail::Portals(portals));
        let door = Door::open(executor.io(), owner.clone(), Box::new(ended), Box::new(told));
        let events = mail.into_iter().map(Event::Message).collect();
        let (held, dropped) = (VecDeque::new(), Vec::new());
        MirrorEnv { below, mirrored, outbox, executor, door, center, events, permit, held, dropped }
    }

    /// When this shard needs a turn although nothing arrives.
    pub fn next_deadline(&self) -> Option<Nanos> {
        if !self.outbox.borrow().is_empty() || !self.dropped.is_empty() {
            return Some(Nanos::default());
        }
        let look = (!self.held.is_empty()).then(|| self.below.now() + LOOK);
        // at first its tasks have not begun
        let own = match self.executor.has_ready() || self.executor.live() == 0 {
            true => Some(Nanos::default()),
            false => self.executor.next_deadline(),
        };
        [look, own].into_iter().flatten().min()
    }

    /// What answers hosts is sent while that is permitted, and held back otherwise.
    fn send_or_hold(&mut self, token: Token, connection: ConnectionHandle, operation: Operation) {
        self.held.push_back((token, connection, operation));
        self.send_held();
    }

    fn send_held(&mut self) {
        while self.permit.allows(self.below.uptime())
            && let Some((token, _, operation)) = self.held.pop_front()
        {
            self.hand_down(token, operation);
        }
    }

    /// What is held back for a connection is never sent.
    fn drop_held(&mut self, closed: ConnectionHandle) {
        let (gone, kept) =
            std::mem::take(&mut self.held).into_iter().partition(|&(_, connection, _)| connection == closed);
        self.held = kept;
        let gone: VecDeque<(Token, ConnectionHandle, Operation)> = gone;
        self.dropped.extend(gone.into_iter().map(|(token, _, _)| token));
    }

    /// What does not concern drives.
    fn hand_down(&mut self, token: Token, operation: Operation) {
        if Door::takes(&operation) {
            self.door.begin(token, operation);
            self.run();
        } else {
            self.below.submit(token, operation);
        }
    }

    pub fn below(&mut self) -> &mut E {
        &mut self.below
    }

    /// Bytes that the partner may lack; on shard 0.
    pub fn lacking_bytes(&self) -> Option<u64> {
        self.center.as_ref().map(|center| center.lacking_bytes())
    }

    /// Carries out an operation for a shard; on shard 0.
    fn begin(&mut self, from: ShardId, token: Token, operation: Operation) {
        let center = self.center.clone().expect("shard 0 has the mirror");
        let (outbox, mirrored) = (self.outbox.clone(), self.mirrored.clone());
        self.executor.io().spawn(async move {
            let outcome = carry_out(&center, &mirrored, operation).await;
            outbox.borrow_mut().push_back((from, Mail::Ended(Completion { token, outcome })));
        });
        self.run();
    }

    /// Only if no other head has become the owner is this a failure of the drive; on shard 0.
    fn on_conflict(&mut self, from: ShardId, completion: Completion) {
        let (center, outbox) = (self.center.clone().expect("shard 0 has it"), self.outbox.clone());
        self.executor.io().spawn(async move {
            center.shared().hold_all().await;
            outbox.borrow_mut().push_back((from, Mail::Ended(completion)));
        });
        self.run();
    }

    fn on_mail(&mut self, mail: Mail<M>, events: &mut Vec<Event<M>>) {
        let center = || self.center.as_ref().expect("it is for shard 0");
        match mail {
            Mail::Ended(completion) => events.push(Event::Completion(completion)),
            Mail::Engine(message) => events.push(Event::Message(message)),
            Mail::Drive { from, token, operation } => self.begin(from, token, operation),
            Mail::Conflict { from, completion } => self.on_conflict(from, completion),
            Mail::Order(order) => center().on_order(order),
            Mail::Wait => center().tell_oldest_wait(),
            Mail::Whole => center().on_whole(),
            Mail::Answer => {
                let answer = Mail::Head(HeadMail::Answered(self.below.shard()));
                self.outbox.borrow_mut().push_back((ShardId(self.below.shards() - 1), answer));
            }
            Mail::Wake => {}
            Mail::Head(_) | Mail::Task(_) => unreachable!("it is for the head"),
        }
    }

    /// Runs what is ready here.
    fn run(&mut self) {
        let (below, executor) = (&mut self.below, &mut self.executor);
        executor.set_now(below.now());
        executor.io().set_clocks(below.wall_clock_ms(), below.uptime());
        executor.io().refill_random(RANDOM_RESERVOIR, || below.random_u64());
        executor.run_ready();
        for (token, operation) in executor.take_operations() {
            assert!(token.0 & OURS == 0, "tokens are small");
            below.submit(Token(token.0 | OURS), operation);
        }
    }

    /// Hands on what waits; gives out what has ended for this shard.
    fn hand_on<'a>(&mut self, ended: impl Into<Option<&'a mut Vec<Event<M>>>>)
    where
        M: 'a,
    {
        let (own, mut ended) = (self.below.shard(), ended.into());
        let waiting = std::mem::take(&mut *self.outbox.borrow_mut());
        let mut kept = VecDeque::new();
        for (to, mail) in waiting {
            match (mail, &mut ended) {
                (Mail::Ended(completion), Some(ended)) if to == own => {
                    ended.push(Event::Completion(completion))
                }
                (mail, _) if to == own => kept.push_back((to, mail)),
                (mail, _) => {
                    if let Err(mail) = self.below.send(to, mail) {
                        kept.push_back((to, mail));
                    }
                }
            }
        }
        kept.append(&mut self.outbox.borrow_mut());
        *self.outbox.borrow_mut() = kept;
    }
}

fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(IoError::Reserved) | Outcome::DriveRead(_, Err(IoError::Reserved)))
}

impl<M: Send + 'static, E: Env<Message = Mail<M>>> Env for MirrorEnv<E, M> {
    type Message = M;

    fn shard(&self) -> ShardId {
        self.below.shard()
    }

    /// Those of the engine: the last one is the head's.
    fn shards(&self) -> u16 {
        self.below.shards() - 1
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn wall_clock_ms(&self) -> u64 {
        self.below.wall_clock_ms()
    }

    fn uptime(&self) -> Nanos {
        self.below.uptime()
    }

    fn random_u64(&mut self) -> u64 {
        self.below.random_u64()
    }

    fn submit(&mut self, token: Token, operation: Operation) {
        assert!(token.0 & OURS == 0, "tokens are small");
        if let Operation::CloseConnection { connection } = operation {
            self.drop_held(connection);
        }
        if let Operation::Send { connection, .. } = operation {
            self.send_or_hold(token, connection, operation);
        } else if !is_for_center(&self.mirrored, &operation) {
            self.hand_down(token, operation);
        } else if self.center.is_some() {
            self.begin(self.below.shard(), token, operation);
        } else {
            let from = self.below.shard();
            self.outbox.borrow_mut().push_back((ShardId(0), Mail::Drive { from, token, operation }));
            self.hand_on(None);
        }
    }

    fn poll(&mut self, events: &mut Vec<Event<M>>, wait: Wait) {
        self.hand_on(&mut *events);
        self.send_held();
        let closed = |token| Completion { token, outcome: Outcome::Failed(IoError::Closed) };
        events.extend(self.dropped.drain(..).map(closed).map(Event::Completion));
        let mut below = std::mem::take(&mut self.events);
        let deadline = self.next_deadline();
        let wait = match (wait, deadline) {
            _ if !events.is_empty() || !below.is_empty() || deadline == Some(Nanos::default()) => Wait::No,
            (Wait::Until(until), Some(deadline)) => Wait::Until(until.min(deadline)),
            (Wait::Forever, Some(deadline)) => Wait::Until(deadline),
            (wait, _) => wait,
        };
        self.below.poll(&mut below, wait);
        self.executor.set_now(self.below.now());
        for event in below.drain(..) {
            match event {
                Event::Completion(Completion { token, outcome }) if token.0 & OURS != 0 => {
                    self.executor.on_completion(Completion { token: Token(token.0 & !OURS), outcome });
                }
                Event::Completion(Completion { token, outcome }) if is_of_forwarder(token) => {
                    if let Some(closing) = end_late(&outcome) {
                        self.below.submit(token, closing);
                    }
                }
                Event::Completion(completion) if is_conflict(&completion.outcome) => {
                    let from = self.below.shard();
                    match self.center.is_some() {
                        true => self.on_conflict(from, completion),
                        false => {
                            let mail = Mail::Conflict { from, completion };
                            self.outbox.borrow_mut().push_back((ShardId(0), mail));
                        }
                    }
                }
                Event::Completion(completion) => events.push(Event::Completion(completion)),
                Event::Message(mail) => self.on_mail(mail, events),
            }
        }
        self.events = below;
        self.run();
        self.hand_on(events);
    }

    fn send(&mut self, to: ShardId, message: M) -> Result<(), M> {
        self.below.send(to, Mail::Engine(message)).map_err(|mail| match mail {
            Mail::Engine(message) => message,
            _ => unreachable!("what was not sent comes back"),
        })
    }
}
