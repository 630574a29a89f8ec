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
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, RwLock};

use base::{BLOCK_BYTES, Nanos, ShardId};
use bytes::Bytes;
use env::{Completion, ConnectionHandle, DriveHandle, Env, Event, IoError, Operation, Outcome, Token, Wait};
use mirror::RECORD_BYTES;
use pair::{CommitRule, StoreOrder, Term, Timing};
use task::Executor;

use crate::center::Center;
use crate::dial::{self, PartnerAddress};
use crate::forward::{Door, end_late, is_of_forwarder};
use crate::head::{HeadMail, RunningHead};
use crate::permit::Permit;
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

/// Which drives are mirrored, and where that ends; of all shards. A drive that is longer than its twin looks as long as that.
pub type Mirrored = Arc<RwLock<BTreeMap<DriveHandle, u64>>>;

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
            let report = Box::new(move |report| tell(HeadMail::Report(report)));
            let center = Center::new(executor.io(), options.tolerated, options.is_whole, report);
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

    /// Whether this operation is for the mirror.
    fn is_ours(&self, operation: &Operation) -> bool {
        let is_mirrored = |drive: &DriveHandle| is_mirrored(&self.mirrored, *drive);
        match operation {
            // whether the drive is mirrored is found when it is opened
            Operation::DriveOpen { writable, .. } => *writable,
            // the partner lacks what is written to others
            Operation::DriveWrite { .. } | Operation::DriveClose { .. } => true,
            Operation::DriveFlush { drive } | Operation::DriveMeasure { drive } => is_mirrored(drive),
            Operation::DriveRead { drive, offset_bytes, .. } => {
                *offset_bytes < RECORD_BYTES as u64 && is_mirrored(drive)
            }
            _ => false,
        }
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

    fn on_mail(&mut self, mail: Mail<M>, events: &mut Vec<Event<M>>) {
        let center = || self.center.as_ref().expect("it is for shard 0");
        match mail {
            Mail::Ended(completion) => events.push(Event::Completion(completion)),
            Mail::Engine(message) => events.push(Event::Message(message)),
            Mail::Drive { from, token, operation } => self.begin(from, token, operation),
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

fn is_mirrored(mirrored: &Mirrored, drive: DriveHandle) -> bool {
    mirrored.read().expect("no one panics while holding it").contains_key(&drive)
}

/// Carries out an operation on a drive that is, or may be, mirrored.
async fn carry_out(center: &Rc<Center>, mirrored: &Mirrored, operation: Operation) -> Outcome {
    let done = |result: Result<(), env::IoError>| result.map_or_else(Outcome::Failed, |()| Outcome::Done);
    match operation {
        Operation::DriveOpen { path, writable } => match center.io().drive_open(&path, writable).await {
            Err(error) => Outcome::Failed(error),
            Ok((handle, mut info)) => match center.add(handle, &info).await {
                Ok(end_bytes) => {
                    if let Some(end_bytes) = end_bytes {
                        mirrored.write().expect("no one panics while holding it").insert(handle, end_bytes);
                        (info.size_bytes, info.end_bytes) = (end_bytes, end_bytes);
                    }
                    Outcome::DriveOpened(handle, info)
                }
                Err(error) => {
                    let _gone_already = center.io().drive_close(handle).await;
                    Outcome::Failed(error)
                }
            },
        },
        Operation::DriveClose { drive } => {
            let was_mirrored = mirrored.write().expect("no one panics while holding it").remove(&drive);
            match was_mirrored {
                Some(_) => center.remove(drive).await,
                None => center.remove_alone(drive),
            }
            done(center.io().drive_close(drive).await)
        }
        Operation::DriveWrite { drive, offset_bytes, data, durable } if !is_mirrored(mirrored, drive) => {
            center.stores_alone(drive).await;
            done(center.io().drive_write(drive, offset_bytes, data, durable).await)
        }
        Operation::DriveWrite { drive, offset_bytes, data, durable } => {
            let touches = offset_bytes < RECORD_BYTES as u64;
            if touches && !is_erasure(offset_bytes, &data) {
                return Outcome::Failed(IoError::ReadOnly);
            }
            center.on_write(drive, touches);
            let (offset_bytes, data) = behind_the_record(offset_bytes, data);
            match data.is_empty() {
                true => Outcome::Done,
                false => done(center.write(drive, offset_bytes, data, durable).await),
            }
        }
        // the record is the mirror's: for a pool there is nothing
        Operation::DriveRead { drive, offset_bytes, buffer } => {
            let (mut buffer, result) = center.io().drive_read(drive, offset_bytes, buffer).await;
            let hidden = (RECORD_BYTES as u64 - offset_bytes).div_ceil(BLOCK_BYTES as u64) as usize;
            (0..buffer.blocks().min(hidden)).for_each(|block| buffer.block_mut(block).fill(0));
            Outcome::DriveRead(buffer, result)
        }
        Operation::DriveFlush { drive } => done(center.flush(drive).await),
        Operation::DriveMeasure { drive } => {
            let end_bytes = mirrored.read().expect("no one panics while holding it").get(&drive).copied();
            match center.io().drive_measure(drive).await {
                Ok(size_bytes) => Outcome::DriveMeasured(size_bytes.min(end_bytes.unwrap_or(u64::MAX))),
                Err(error) => Outcome::Failed(error),
            }
        }
        operation => unreachable!("{operation:?} goes to the world below"),
    }
}

/// Whether this is what a pool does that makes a drive forget it: zeros, from the first byte to behind the record. Everything else that
/// is written there is refused, because it would not be kept.
fn is_erasure(offset_bytes: u64, data: &[Bytes]) -> bool {
    let length: usize = data.iter().map(Bytes::len).sum();
    offset_bytes == 0 && length > RECORD_BYTES && data.iter().all(|piece| piece.iter().all(|&byte| byte == 0))
}

/// What of a write is behind the record. The record is the mirror's: who erases the drive of a pool does not erase that.
fn behind_the_record(offset_bytes: u64, mut data: Vec<Bytes>) -> (u64, Vec<Bytes>) {
    let mut before = (RECORD_BYTES as u64).saturating_sub(offset_bytes) as usize;
    for piece in &mut data {
        let cut = before.min(piece.len());
        *piece = piece.slice(cut..);
        before -= cut;
    }
    data.retain(|piece| !piece.is_empty());
    (offset_bytes.max(RECORD_BYTES as u64), data)
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
        } else if !self.is_ours(&operation) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_be_kept_is_refused() {
        let zeros = |length| vec![Bytes::from(vec![0; length])];
        assert!(is_erasure(0, &zeros(1 << 20)));
        assert!(!is_erasure(0, &zeros(16 << 10)) && !is_erasure(4096, &zeros(1 << 20)));
        assert!(!is_erasure(0, &[zeros(1 << 20), vec![Bytes::from(vec![1; 4096])]].concat()));
    }

    #[test]
    fn whoever_erases_a_drive_does_not_erase_the_record() {
        let data = || vec![Bytes::from(vec![1; 8 << 10]), Bytes::from(vec![2; 24 << 10])];
        let lengths = |offset| {
            let (offset, data) = behind_the_record(offset, data());
            (offset, data.iter().map(Bytes::len).collect::<Vec<_>>())
        };
        assert_eq!(lengths(0), (16 << 10, vec![16 << 10]));
        assert_eq!(lengths(12 << 10), (16 << 10, vec![4 << 10, 24 << 10]));
        assert_eq!(lengths(16 << 10), (16 << 10, vec![8 << 10, 24 << 10]));
        assert_eq!(behind_the_record(0, vec![Bytes::from(vec![1; 4096])]), (16 << 10, vec![]));
    }
}
