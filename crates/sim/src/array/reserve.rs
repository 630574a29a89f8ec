//! Hosts reserve LUNs for themselves while all of them write: nobody else's write that began under a reservation is
//! carried out.
//!
//! Reservations change one at a time for each volume, so that it is known who holds it; how they race is the business of
//! the engine's tests.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::Nanos;
use block::Payload;
use iscsi::initiator::Request;
use task::Io;
use wire::scsi::Lun;
use wire::scsi::reservation::ReserveOutList;

use super::session::{Ended, HostSession};
use crate::workload::Shared;

/// Reservations of one host in one round.
const TIMES: u32 = 3;
const PAUSE_NS_MAX: u64 = 20_000_000;
const HELD_NS_MAX: u64 = 5_000_000;
/// Pause before another attempt.
const AGAIN: Nanos = Nanos::from_millis(1);

const REGISTER_AND_IGNORE: u8 = 6;
const RESERVE: u8 = 1;
const CLEAR: u8 = 3;
const WRITE_EXCLUSIVE: u8 = 1;
const EXCLUSIVE_ACCESS: u8 = 3;

/// Who holds which volume, as far as hosts have been told.
#[derive(Default)]
pub struct Holders {
    held: RefCell<BTreeMap<u32, (u16, Nanos)>>,
    /// Volumes whose reservations are being changed.
    changing: RefCell<BTreeSet<u32>>,
}

impl Holders {
    /// Whether a write by this host, sent at that time, must not be carried out.
    pub fn forbid(&self, volume: u32, host: u16, sent: Nanos) -> bool {
        self.held.borrow().get(&volume).is_some_and(|&(holder, since)| holder != host && since < sent)
    }

    /// The array has ended, and with it what was not to survive.
    pub fn clear(&self) {
        self.held.borrow_mut().clear();
        self.changing.borrow_mut().clear();
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
}

impl Locksmith {
    pub async fn run(self) {
        let volumes: Vec<u32> = self.luns.keys().copied().collect();
        for _ in 0..TIMES {
            self.io.sleep(Nanos(self.io.random_u64() % PAUSE_NS_MAX)).await;
            let volume = volumes[(self.io.random_u64() % volumes.len() as u64) as usize];
            if self.shared.stop.get() || !self.holders.changing.borrow_mut().insert(volume) {
                continue;
            }
            self.hold(volume).await;
            self.holders.changing.borrow_mut().remove(&volume);
        }
    }

    async fn hold(&self, volume: u32) {
        let kind = if self.io.random_u64().is_multiple_of(2) { WRITE_EXCLUSIVE } else { EXCLUSIVE_ACCESS };
        let registered = self.until_good(volume, REGISTER_AND_IGNORE, 0).await;
        if registered && self.ask(volume, RESERVE, kind).await {
            self.shared.world.note(|| format!("host {} holds volume {volume}", self.host));
            self.holders.held.borrow_mut().insert(volume, (self.host, self.io.now()));
            self.io.sleep(Nanos(self.io.random_u64() % HELD_NS_MAX)).await;
            self.holders.held.borrow_mut().remove(&volume);
        }
        // whatever became of it: a request that was aborted may have been carried out
        while !self.ask(volume, CLEAR, 0).await {
            self.io.sleep(AGAIN).await;
            self.until_good(volume, REGISTER_AND_IGNORE, 0).await;
        }
    }

    async fn until_good(&self, volume: u32, action: u8, kind: u8) -> bool {
        while !self.ask(volume, action, kind).await {
            self.io.sleep(AGAIN).await;
        }
        true
    }

    /// PERSISTENT RESERVE OUT; whether it was carried out.
    async fn ask(&self, volume: u32, action: u8, kind: u8) -> bool {
        let key = u64::from(self.host) + 1;
        let registers = action == REGISTER_AND_IGNORE;
        let list = ReserveOutList {
            key: if registers { 0 } else { key },
            service_action_key: if registers { key } else { 0 },
            specify_initiator_ports: false,
            all_target_ports: false,
            persist: false,
        };
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5F, action, kind, 24);
        let mut request = Request::new(Lun::new(self.luns[&volume]).expect("a small number").emit(), cdb);
        request.data_out = Payload::from(list.emit(&[]));
        matches!(self.session.command(request, None).await, Ended::Completed(done) if done.status == 0)
    }
}
