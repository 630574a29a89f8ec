//! Hosts reserve LUNs while all of them write, and preempt each other. While a reservation holds, no write of another
//! host that began under it may be executed. Some reservations survive a restart of the array (APTPL).
//!
//! Reservations of one volume change one at a time, so the holder is always known. The engine's tests cover races
//! between such changes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Nanos;
use block::Payload;
use iscsi::initiator::Request;
use task::Io;
use wire::scsi::Lun;
use wire::scsi::reservation::ReserveOutList;

use super::notices::{Notices, REGISTRATIONS_PREEMPTED};
use super::session::{Ended, HostSession};
use crate::counts::counted;
use crate::workload::Shared;

const PAUSE_NS_MAX: u64 = 20_000_000;
const HELD_NS_MAX: u64 = 5_000_000;
/// Pause before another attempt.
const AGAIN: Nanos = Nanos::from_millis(1);
/// Attempts to preempt: one that was carried out, and whose answer was lost, is refused from then on.
const PREEMPTIONS: u32 = 3;

const REGISTER_AND_IGNORE: u8 = 6;
const RESERVE: u8 = 1;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const WRITE_EXCLUSIVE: u8 = 1;
const EXCLUSIVE_ACCESS: u8 = 3;

counted! {
    /// What hosts did to each other.
    Seen: "reservation: " {
        Preempted = "preempted",
        PreemptedAndAborted = "preempted, and its holder's commands aborted",
        Outlived = "it outlives the array",
    }
}

#[derive(Clone, Copy)]
struct Hold {
    host: u16,
    since: Nanos,
    /// It is there after a restart.
    persists: bool,
}

/// Identifies a change of a volume's reservation. A host that preempts takes it over.
type Turn = u64;

/// Who holds which volume, as far as hosts have been told.
#[derive(Default)]
pub struct Holders {
    held: RefCell<BTreeMap<u32, Hold>>,
    /// Volumes whose reservations are being changed, or are held.
    changing: RefCell<BTreeMap<u32, Turn>>,
    turns: Cell<Turn>,
    /// Reservations that may outlive the array, and who is to clear them.
    kept: RefCell<BTreeMap<u32, u16>>,
    pub notices: Notices,
}

impl Holders {
    /// Whether a write by this host, sent at that time, must not be carried out.
    pub fn forbid(&self, volume: u32, host: u16, sent: Nanos) -> bool {
        self.held.borrow().get(&volume).is_some_and(|hold| hold.host != host && hold.since < sent)
    }

    /// The array has ended, and with it what was not to outlive it.
    pub fn clear(&self) {
        self.held.borrow_mut().retain(|_, hold| hold.persists);
        self.held.borrow().values().for_each(|_| Seen::Outlived.seen());
        self.changing.borrow_mut().clear();
        let kept: Vec<u32> = self.kept.borrow().keys().copied().collect();
        for volume in kept {
            self.begin(volume);
        }
        self.notices.clear();
    }

    fn begin(&self, volume: u32) -> Turn {
        self.turns.set(self.turns.get() + 1);
        self.changing.borrow_mut().insert(volume, self.turns.get());
        self.turns.get()
    }

    fn is_free(&self, volume: u32) -> bool {
        !self.changing.borrow().contains_key(&volume)
    }

    fn is_turn(&self, volume: u32, turn: Turn) -> bool {
        self.changing.borrow().get(&volume) == Some(&turn)
    }
}

/// One host's part.
pub struct Locksmith {
    pub io: Io,
    pub session: Rc<HostSession>,
    pub shared: Rc<Shared>,
    pub holders: Rc<Holders>,
    pub host: u16,
    /// LUN by the oracle's volume.
    pub luns: BTreeMap<u32, u16>,
    /// Reservations in one round.
    pub times: u32,
}

impl Locksmith {
    pub async fn run(self) {
        self.clear_what_was_kept().await;
        let volumes: Vec<u32> = self.luns.keys().copied().collect();
        for _ in 0..self.times {
            self.io.sleep(Nanos(self.io.random_u64() % PAUSE_NS_MAX)).await;
            let volume = volumes[(self.io.random_u64() % volumes.len() as u64) as usize];
            let holder = self.holders.held.borrow().get(&volume).copied();
            if self.shared.stop.get() {
                continue;
            }
            match holder {
                _ if self.holders.is_free(volume) => self.reserve(volume).await,
                Some(holder) if holder.host != self.host => self.preempt(volume, holder.host).await,
                _ => {}
            }
        }
    }

    fn chance_of_three(&self) -> bool {
        self.io.random_u64().is_multiple_of(3)
    }

    async fn clear_what_was_kept(&self) {
        for &volume in self.luns.keys() {
            let is_own = self.holders.kept.borrow().get(&volume) == Some(&self.host);
            let turn = self.holders.changing.borrow().get(&volume).copied();
            if let Some(turn) = turn.filter(|_| is_own) {
                self.keep_for_a_while().await;
                self.let_go(volume, turn).await;
            }
        }
    }

    async fn keep_for_a_while(&self) {
        self.io.sleep(Nanos(self.io.random_u64() % HELD_NS_MAX)).await;
    }

    fn kind(&self) -> u8 {
        if self.io.random_u64().is_multiple_of(2) { WRITE_EXCLUSIVE } else { EXCLUSIVE_ACCESS }
    }

    async fn reserve(&self, volume: u32) {
        let turn = self.holders.begin(volume);
        let (kind, persists) = (self.kind(), self.chance_of_three());
        if persists {
            self.holders.kept.borrow_mut().insert(volume, self.host);
        }
        self.register(volume, persists).await;
        if self.ask(volume, RESERVE, kind, 0, false).await {
            self.hold(volume, persists).await;
        }
        self.let_go(volume, turn).await;
    }

    async fn hold(&self, volume: u32, persists: bool) {
        self.shared.world.note(|| format!("host {} holds volume {volume}, persists: {persists}", self.host));
        let hold = Hold { host: self.host, since: self.io.now(), persists };
        self.holders.held.borrow_mut().insert(volume, hold);
        self.keep_for_a_while().await;
    }

    /// Takes a reservation from another host.
    async fn preempt(&self, volume: u32, from: u16) {
        let turn = self.holders.begin(volume);
        // until the answer comes, nobody can tell whose it is, and whether it persists
        self.holders.held.borrow_mut().remove(&volume);
        self.holders.kept.borrow_mut().insert(volume, self.host);
        let (kind, persists, aborts) = (self.kind(), self.chance_of_three(), self.chance_of_three());
        self.register(volume, persists).await;
        let action = if aborts { PREEMPT_AND_ABORT } else { PREEMPT };
        for _ in 0..PREEMPTIONS {
            let began = self.io.now();
            if self.ask(volume, action, kind, key(from), false).await {
                if aborts {
                    Seen::PreemptedAndAborted.seen()
                } else {
                    Seen::Preempted.seen()
                }
                self.holders.notices.owe(
                    self.luns[&volume],
                    Some(from),
                    REGISTRATIONS_PREEMPTED,
                    began,
                    &self.io,
                );
                self.hold(volume, persists).await;
                break;
            }
        }
        self.let_go(volume, turn).await;
    }

    /// Nobody holds the volume any more, unless another host has made that its business.
    async fn let_go(&self, volume: u32, turn: Turn) {
        if !self.holders.is_turn(volume, turn) {
            return;
        }
        self.holders.held.borrow_mut().remove(&volume);
        // whatever became of it: a request that was aborted may have been carried out
        while !self.ask(volume, CLEAR, 0, 0, false).await {
            self.io.sleep(AGAIN).await;
            self.register(volume, false).await;
        }
        self.holders.kept.borrow_mut().remove(&volume);
        self.holders.changing.borrow_mut().remove(&volume);
    }

    async fn register(&self, volume: u32, persist: bool) {
        while !self.ask(volume, REGISTER_AND_IGNORE, 0, key(self.host), persist).await {
            self.io.sleep(AGAIN).await;
        }
    }

    /// PERSISTENT RESERVE OUT; whether it was carried out.
    async fn ask(&self, volume: u32, action: u8, kind: u8, service_action_key: u64, persist: bool) -> bool {
        let list = ReserveOutList {
            key: if action == REGISTER_AND_IGNORE { 0 } else { key(self.host) },
            service_action_key,
            specify_initiator_ports: false,
            all_target_ports: false,
            persist,
        };
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5F, action, kind, 24);
        let mut request = Request::new(Lun::new(self.luns[&volume]).expect("a small number").emit(), cdb);
        request.data_out = Payload::from(list.emit(&[]));
        matches!(self.session.command(request, None).await, Ended::Completed(done) if done.status == 0)
    }
}

fn key(host: u16) -> u64 {
    u64::from(host) + 1
}
