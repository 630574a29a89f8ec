//! The administrator: after a start it finds out what exists, then it gives commands until the array ends.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use api::{ArrayStatus, CommandErrorKind, Made, PoolReferences, SnapshotStatus};
use api::{Command, Reply};
use base::Nanos;
use engine::ShardMessage;
use iscsi::initiator::InitiatorParams;
use task::Io;

use super::counts::{Kind, Sight};
use super::records::Records;
use super::state::Order;
use crate::array::engine_shard::command;
use crate::array::lun::{LunSubject, Way};
use crate::array::session::HostSession;
use crate::environment::Outside;
use crate::oracle::SnapshotTicket;
use crate::prng::Prng;
use crate::workload::{Failure, Profile, Subject};

/// Orders in one round.
const ORDERS: u32 = 60;
const PAUSE_NS_MAX: u64 = 2_000_000;
const IDLE: Nanos = Nanos::from_millis(20);
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
/// Pause before something is tried again at the end, and how often.
const AGAIN: Nanos = Nanos::from_millis(100);
const TRIES: u32 = 600;
/// Within this time all space is back.
const SPACE_TIME: Nanos = Nanos::from_secs(600);

/// What became of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    Refused,
    /// It shows at the next start.
    Unknown,
}

/// See the module's words.
pub struct Administrator {
    pub io: Io,
    pub outside: Rc<Outside<ShardMessage>>,
    pub records: Rc<Records>,
    pub profile: Rc<Profile>,
    pub prng: RefCell<Prng>,
    pub session: RefCell<Option<Rc<HostSession>>>,
    /// Hosts copy ranges: states of their volumes are kept for that, as long as anything refers to them.
    pub ranges: bool,
    /// The file systems under drives run full.
    pub runs_full: bool,
}

impl Administrator {
    /// Runs as long as the array does, or until all is taken away again.
    pub async fn run(self, portal: std::net::SocketAddr, params: InitiatorParams) {
        let session = HostSession::new(&self.io, portal, params);
        self.io.spawn(session.clone().run());
        while session.logins.get() == 0 {
            self.io.sleep(LOOK_AGAIN).await;
        }
        *self.session.borrow_mut() = Some(session);
        self.settle().await;
        let mut orders = 0;
        while !self.records.shared.has_failed() {
            if self.records.winding_up.get() {
                if let Err(what) = self.wind_up().await {
                    self.fail(what);
                }
                return self.records.wound_up.set(true);
            }
            let enough = orders >= ORDERS && self.records.wanted.is_none();
            if self.records.shared.stop.get() || enough {
                self.io.sleep(IDLE).await;
                continue;
            }
            orders += 1;
            self.act().await;
            let pause = self.prng.borrow_mut().skewed(0, PAUSE_NS_MAX);
            self.io.sleep(Nanos(pause)).await;
        }
    }

    pub fn fail(&self, what: String) {
        self.records.shared.fail(Failure::Broken(what));
    }

    /// What the array tells, all snapshots with it. `None`: it cannot now.
    pub async fn look(&self) -> Option<(ArrayStatus, Vec<SnapshotStatus>)> {
        let Ok(Reply::Snapshots(list)) =
            command(&self.io, &self.outside, Command::SnapshotList { volume: None }).await
        else {
            return None;
        };
        match command(&self.io, &self.outside, Command::Status).await {
            Ok(Reply::Status(status)) => Some((*status, list)),
            _ => None,
        }
    }

    /// Finds out what is the case.
    async fn settle(&self) {
        self.check().await;
        self.read_what_is_in_doubt().await;
        let views = || {
            let state = self.records.state();
            let views = state.volumes.iter().filter(|(_, volume)| volume.is_view);
            views.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        for volume in views() {
            self.execute(Order::Delete { volume }).await;
        }
        if !self.records.shared.has_failed() {
            self.wait_for_schedule().await;
        }
    }

    /// Whether the array tells what must be the case. `false`: it tells nothing now.
    pub async fn check(&self) -> bool {
        let Some((status, list)) = self.look().await else { return false };
        if let Err(what) = self.records.check(&status, &list) {
            self.fail(what);
        }
        true
    }

    /// Carries out an order, and notes what came of it.
    pub async fn execute(&self, order: Order) -> Outcome {
        let (records, kind) = (&self.records, order.kind());
        let asked = order.command(&records.state());
        let after = records.worlds.borrow().iter().map(|state| state.after(&order)).collect();
        records.begin(kind, after);
        let ticket = self.tell_oracle(&order);
        records.shared.world.note(|| format!("> {order:?}"));
        let answer = command(&self.io, &self.outside, asked).await;
        records.shared.world.note(|| format!("< {order:?} = {answer:?}"));
        if let Some(ticket) = ticket {
            records.shared.oracle.borrow_mut().end_snapshots(ticket);
        }
        match answer {
            Ok(_) if order.must_be_refused(&records.state()) => {
                self.fail(format!("{order:?}: it is carried out although a clone is mapped"));
                Outcome::Done
            }
            Ok(reply) => {
                records.end(true);
                self.note_sizes(&order, &reply);
                Outcome::Done
            }
            Err(error)
                if matches!(
                    error.kind,
                    CommandErrorKind::Io | CommandErrorKind::Unavailable | CommandErrorKind::Stopping
                ) =>
            {
                records.end(false);
                Outcome::Unknown
            }
            // there is no room for more in its layer
            Err(error) if kind == Kind::Grow && error.kind == CommandErrorKind::Full => {
                records.refused();
                Outcome::Refused
            }
            Err(error)
                if error.kind == CommandErrorKind::InUse && order.must_be_refused(&records.state()) =>
            {
                Sight::RefusedToRefresh.seen();
                records.refused();
                Outcome::Refused
            }
            Err(error) if kind == Kind::Shrink && error.kind == CommandErrorKind::InUse => {
                Sight::RefusedToShrink.seen();
                records.refused();
                Outcome::Refused
            }
            Err(error) => {
                self.fail(format!("{order:?}: {error}"));
                records.refused();
                Outcome::Refused
            }
        }
    }

    /// What will be in what the order makes.
    fn tell_oracle(&self, order: &Order) -> Option<SnapshotTicket> {
        let state = self.records.state();
        let mut oracle = self.records.shared.oracle.borrow_mut();
        match order {
            Order::Create { number, .. } => oracle.add_volume(*number, false),
            Order::Clone { snapshot, number, .. } => {
                let owner = state.name_of(state.snapshot(*snapshot).owner);
                oracle.copy_to_volume(*snapshot, *number, state.volumes[&owner].write_back);
            }
            Order::RollBack { volume, snapshot, number } => {
                oracle.copy_to_volume(*snapshot, *number, state.volumes[volume].write_back);
            }
            Order::Refresh { snapshot, clones, .. } => {
                for (name, number) in clones {
                    oracle.copy_to_volume(*snapshot, *number, state.volumes[name].write_back);
                }
                if clones.len() > 1 {
                    Sight::RefreshedSeveral.seen();
                }
            }
            Order::Resize { volume, blocks, number, grows: false, .. } => {
                let volume = &state.volumes[volume];
                oracle.copy_to_volume(volume.number, *number, volume.write_back);
                oracle.cut_volume(*number, *blocks);
            }
            Order::Copy { volume, number, .. } => {
                return Some(oracle.begin_volume_copy(state.volumes[volume].number, *number));
            }
            Order::Snapshot { of, .. } => {
                let numbers = of.iter().map(|(volume, number)| (state.volumes[volume].number, *number));
                return Some(oracle.begin_snapshots(numbers.collect()));
            }
            _ => {}
        }
        None
    }

    /// Snapshots and copies of the hosts' volumes are as large as those were then.
    fn note_sizes(&self, order: &Order, reply: &Reply) {
        let Reply::Changed(change) = reply else { return };
        if let (Order::Copy { .. }, Some(Made::Volume(copy))) = (order, &change.made) {
            for state in self.records.worlds.borrow_mut().iter_mut() {
                self.records.cut_copies(state.measure(std::slice::from_ref(copy)));
            }
        }
        if !matches!(order, Order::Snapshot { .. }) {
            return;
        }
        let Some(Made::Snapshots(list)) = &change.made else {
            return self.fail(format!("{order:?} made {:?}", change.made));
        };
        for state in self.records.worlds.borrow_mut().iter_mut() {
            match state.learn_sizes(list) {
                Ok(sizes) => self.records.cut_copies(sizes),
                Err(what) => self.fail(what),
            }
        }
    }

    /// The way to one of the own volumes.
    pub fn subject(&self, number: u32, lun: u16) -> Rc<dyn Subject> {
        Rc::new(LunSubject { way: self.way(), luns: BTreeMap::from([(number, lun)]) })
    }

    pub fn way(&self) -> Way {
        let session = self.session.borrow().clone().expect("it has logged in");
        let (host, holders, interferes) = (u16::MAX, Rc::default(), None);
        Way { io: self.io.clone(), session, host, holders, interferes, tally: None }
    }

    /// At the end, nothing goes wrong any more: what is asked for is done before long.
    async fn insist(&self, order: Order) -> Result<(), String> {
        for _ in 0..TRIES {
            if self.records.shared.has_failed() {
                return Ok(());
            }
            if self.execute(order.clone()).await == Outcome::Done {
                return Ok(());
            }
            self.io.sleep(AGAIN).await;
        }
        Err(format!("{order:?} is not carried out although nothing goes wrong any more"))
    }

    /// Reads all that there is, takes it away, and waits for the space.
    async fn wind_up(&self) -> Result<(), String> {
        self.check().await;
        self.read_everything().await;
        for volume in self.records.state().volumes.into_iter().filter(|(_, volume)| volume.blocks.is_some()) {
            let (name, volume) = volume;
            if volume.binned_ms.is_none() {
                let now_ms = self.records.shared.world.wall_clock_ms();
                self.insist(Order::Bin { volume: name.clone(), now_ms }).await?;
            }
        }
        self.end_schedule().await?;
        // what is in the bin goes by itself
        self.records.shared.world.suspend(super::state::BIN_MS + 1);
        for snapshot in self.records.state().live_snapshots() {
            self.insist(Order::DeleteSnapshot { snapshot }).await?;
        }
        self.wait_for_space().await
    }

    async fn wait_for_space(&self) -> Result<(), String> {
        let deadline = self.io.now() + SPACE_TIME;
        loop {
            let Some((status, list)) = self.look().await else { return Err("it does not tell".to_owned()) };
            let what = still_held(&status, &list, self.records.hosts.len(), self.ranges);
            match what {
                None => break,
                Some(what) if self.io.now() >= deadline => {
                    return Err(format!("after {SPACE_TIME:?}, {what}"));
                }
                Some(_) if self.records.shared.has_failed() => return Ok(()),
                Some(_) => self.io.sleep(AGAIN).await,
            }
        }
        self.check().await;
        Sight::SpaceIsBack.seen();
        Ok(())
    }
}

/// What is left of what was deleted.
fn still_held(status: &ArrayStatus, list: &[SnapshotStatus], hosts: usize, ranges: bool) -> Option<String> {
    if !status.bin.is_empty() || !list.is_empty() || status.volumes.len() != hosts {
        let (volumes, bin, left) = (status.volumes.len(), status.bin.len(), list.len());
        return Some(format!("{volumes} volumes, {bin} in the bin and {left} snapshots are there"));
    }
    let mut used_bytes = 0;
    for volume in &status.volumes {
        let Some(space) = volume.space else { return Some(format!("{} tells no space", volume.name)) };
        if space.shared_bytes > 0 && !ranges {
            return Some(format!("{} shares {} bytes with nothing", volume.name, space.shared_bytes));
        }
        used_bytes += space.used_bytes;
    }
    let (pool_bytes, references) = (status.pools[0].used_bytes, status.pools[0].references);
    // volumes have nothing in common any more; and what nothing refers to is forgotten
    let is_told = match ranges {
        true => references.copied_bytes > 0 || references.kept_bytes == 0,
        false => references == PoolReferences::default(),
    };
    let held_bytes = used_bytes + references.kept_bytes;
    let most = held_bytes + held_bytes / 4 + OWN_BYTES;
    let fits = (held_bytes..=most).contains(&pool_bytes);
    (!is_told || !fits)
        .then(|| format!("the pool holds {pool_bytes} bytes for volumes of {used_bytes}, {references:?}"))
}

/// The catalog, and pages of the map that are hardly filled.
const OWN_BYTES: u64 = 4 << 20;
