//! The connections between the lanes of a simulated pool: each lane's host, and the coordinator on shard 0.
//!
//! A lane that loses a drive asks the coordinator. The coordinator records the loss on the remaining drives,
//! tells every lane, and answers when all lanes know. It handles one loss at a time.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use base::ShardId;
use pool::{Departure, DriveState, Lane, LaneHost, Membership};
use task::{Io, Notify, OneshotReceiver, OneshotSender, oneshot};

use crate::process::Outbox;

/// What the shards of a simulated pool say to each other.
pub enum PoolMessage {
    /// To shard 0: a drive does not answer.
    Failed { request: u64, from: u16, drive: u8, departure: Departure },
    /// The answer to it.
    Recorded { request: u64, recorded: bool },
    /// To every shard: take this in.
    Update { membership: Membership },
    /// To shard 0: taken in.
    Updated,
    /// To shard 0: change who belongs to the pool.
    Order(Order),
    /// To every other shard: the pool is claimed, open your lanes.
    Open { membership: Membership },
}

/// What an administrator orders.
#[derive(Clone, Debug)]
pub enum Order {
    /// The drive gets no new data, and its data is rewritten elsewhere.
    Drain(u8),
    /// The drive holds no data of the pool any more.
    Retire(u8),
    /// A drive that holds nothing joins the pool.
    Add(String),
    /// A drive that went is there again, under this path.
    TakeBack(u8, String),
    /// Damaged labels are rewritten.
    CheckLabels,
    /// The pool is moved to the newest format.
    Upgrade,
}

struct Loss {
    request: u64,
    from: u16,
    drive: u8,
    departure: Departure,
}

/// One shard of a simulated pool.
pub struct ShardState {
    pub shard: u16,
    pub io: Io,
    pub outbox: Outbox<PoolMessage>,
    pub lanes: RefCell<Vec<Rc<Lane>>>,
    pub membership: RefCell<Option<Membership>>,
    requests: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, OneshotSender<bool>>>,
    losses: RefCell<VecDeque<Loss>>,
    orders: RefCell<VecDeque<Order>>,
    updated: Cell<u16>,
    news: Notify,
    /// Every shard of the pool, on shard 0.
    all: RefCell<Vec<Weak<ShardState>>>,
}

impl ShardState {
    pub fn new(shard: u16, io: &Io, outbox: &Outbox<PoolMessage>) -> Rc<ShardState> {
        Rc::new(ShardState {
            shard,
            io: io.clone(),
            outbox: outbox.clone(),
            lanes: RefCell::default(),
            membership: RefCell::default(),
            requests: Cell::new(0),
            waiting: RefCell::default(),
            losses: RefCell::default(),
            orders: RefCell::default(),
            updated: Cell::new(0),
            news: Notify::new(io),
            all: RefCell::default(),
        })
    }

    /// Has shard 0 know every shard.
    pub fn know(&self, all: &[Rc<ShardState>]) {
        *self.all.borrow_mut() = all.iter().map(Rc::downgrade).collect();
    }

    fn all_lanes(&self) -> Vec<Rc<Lane>> {
        let shards = self.all.borrow();
        shards.iter().filter_map(Weak::upgrade).flat_map(|shard| shard.lanes.borrow().clone()).collect()
    }

    pub fn post(&self, to: u16, message: PoolMessage) {
        self.outbox.borrow_mut().push_back((ShardId(to), message));
    }

    /// Handles every message but [`PoolMessage::Open`].
    pub fn on_message(&self, message: PoolMessage) {
        match message {
            PoolMessage::Failed { request, from, drive, departure } => {
                self.losses.borrow_mut().push_back(Loss { request, from, drive, departure });
                self.news.notify();
            }
            PoolMessage::Recorded { request, recorded } => {
                if let Some(sender) = self.waiting.borrow_mut().remove(&request) {
                    sender.send(recorded);
                }
            }
            PoolMessage::Update { membership } => {
                for lane in self.lanes.borrow().iter() {
                    lane.set_membership(membership.clone());
                }
                *self.membership.borrow_mut() = Some(membership);
                self.post(0, PoolMessage::Updated);
            }
            PoolMessage::Updated => {
                self.updated.set(self.updated.get() + 1);
                self.news.notify();
            }
            PoolMessage::Order(order) => {
                self.orders.borrow_mut().push_back(order);
                self.news.notify();
            }
            PoolMessage::Open { .. } => unreachable!("opening is handled by whoever opens"),
        }
    }

    /// A lane that was opened with an older membership catches up.
    pub fn add_lane(&self, lane: Rc<Lane>) {
        if let Some(membership) = &*self.membership.borrow() {
            lane.set_membership(membership.clone());
        }
        self.lanes.borrow_mut().push(lane);
    }

    async fn carry_out(&self, membership: &mut Membership, order: Order) -> Result<(), String> {
        match order {
            Order::Drain(drive) => {
                membership.drain(&self.io, drive).await.map_err(|_| "too few drives".to_owned())
            }
            Order::Retire(drive) => {
                membership.retire(&self.io, drive).await.map_err(|_| "too few drives".to_owned())
            }
            Order::Add(path) => {
                let opened = self.io.drive_open(&path, true).await;
                let (handle, info) = opened.map_err(|error| error.to_string())?;
                membership.add(&self.io, handle, &info).await.map_err(|error| format!("{error:?}"))
            }
            // as the head's keeper does: one that nobody missed meanwhile is in the pool still
            Order::TakeBack(drive, _)
                if membership.members[usize::from(drive)].state != DriveState::Missing =>
            {
                Ok(())
            }
            Order::TakeBack(drive, path) => {
                let opened = self.io.drive_open(&path, true).await;
                let (handle, info) = opened.map_err(|error| error.to_string())?;
                let taken = membership.take_back(&self.io, drive, handle, &info.path).await;
                taken.map_err(|_| "too few drives".to_owned())
            }
            Order::Upgrade => {
                let upgraded = membership.upgrade(&self.io, pool::Heads::One).await;
                upgraded.map_err(|_| "too few drives".to_owned())
            }
            Order::CheckLabels => {
                let wrong = membership.wrong_labels(&self.io).await;
                if wrong.is_empty() {
                    return Ok(());
                }
                let rewritten = membership.rewrite_labels(&self.io, &wrong).await;
                rewritten.map_err(|_| "too few drives".to_owned())
            }
        }
    }

    /// What is said of the pool does not count on a drive that is about to be taken out.
    fn set_leaving(&self, drive: u8, leaving: bool) {
        if let Some(membership) = &mut *self.membership.borrow_mut() {
            membership.members[usize::from(drive)].leaving = leaving;
        }
    }

    /// Notifies every shard, and waits for all of them.
    async fn announce(&self, membership: &Membership, shards: u16) {
        self.updated.set(0);
        (0..shards)
            .for_each(|shard| self.post(shard, PoolMessage::Update { membership: membership.clone() }));
        while self.updated.get() < shards {
            self.news.wait().await;
        }
    }

    /// The coordinator; runs on shard 0 as long as the process lives.
    pub async fn coordinate(self: Rc<Self>, mut membership: Membership, shards: u16) {
        loop {
            let order = self.orders.borrow_mut().pop_front();
            if let Some(order) = order {
                // one that cannot be recorded leaves the pool unserviceable, which its lanes notice
                let _ = self.carry_out(&mut membership, order).await;
                self.announce(&membership, shards).await;
                continue;
            }
            let Some(loss) = self.losses.borrow_mut().pop_front() else {
                self.news.wait().await;
                continue;
            };
            let known = membership.handle(loss.drive).is_none();
            let recorded = if known {
                membership.is_serviceable()
            } else {
                let is_needed =
                    async |_: &Membership| self.all_lanes().iter().any(|lane| lane.stats().needs(loss.drive));
                self.set_leaving(loss.drive, loss.departure == Departure::TooManyErrors);
                let taken_out =
                    membership.take_out(&self.io, loss.drive, loss.departure, is_needed).await.is_ok();
                self.set_leaving(loss.drive, taken_out && membership.handle(loss.drive).is_none());
                taken_out
            };
            if !known && recorded {
                self.announce(&membership, shards).await;
            }
            self.post(loss.from, PoolMessage::Recorded { request: loss.request, recorded });
        }
    }
}

/// The host of every lane of one shard.
pub struct Host(pub Rc<ShardState>);

impl LaneHost for Host {
    fn drive_failed(&self, drive: u8, departure: Departure) -> OneshotReceiver<bool> {
        let (sender, receiver) = oneshot(&self.0.io);
        let request = self.0.requests.get();
        self.0.requests.set(request + 1);
        self.0.waiting.borrow_mut().insert(request, sender);
        self.0.post(0, PoolMessage::Failed { request, from: self.0.shard, drive, departure });
        receiver
    }
}
