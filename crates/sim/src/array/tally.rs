//! Compares the figures for monitoring with what hosts did: while they work, at any moment, and over broken connections.
//!
//! ```text
//!   bytes of answers that hosts have seen  ≤  bytes that the array counts  ≤  bytes of commands that hosts have sent
//! ```
//!
//! A command that was refused does not count. One that was aborted or whose answer was lost may count or not. As long as there is none and nothing is in flight,
//! the array's count is exact. It never becomes smaller while the program runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use api::{Command, Metrics, Reply, Traffic};
use base::Nanos;
use iscsi::initiator::Request;
use task::Io;
use wire::scsi::Lun;

use super::engine_shard::command;
use super::set_up::ToArray;
use crate::counts::counted;
use crate::oracle::SECTOR_BYTES;
use crate::workload::{Failure, Shared};

counted! {
    /// What comparisons have met.
    Seen: "figures: " {
        Compared = "compared with what hosts did",
        Exact = "exact after a write",
        Reconnected = "compared after a host had logged in again",
    }
}

/// Comparisons in one round, and the longest pause before one.
const TIMES: u32 = 100;
const PAUSE_NS_MAX: u64 = 10_000_000;

/// Bytes that were read and written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Bytes {
    read: u64,
    written: u64,
}

impl Bytes {
    fn of(traffic: &Traffic) -> Bytes {
        Bytes { read: traffic.reads.bytes, written: traffic.writes.bytes }
    }

    fn add(&mut self, other: Bytes) {
        self.read += other.read;
        self.written += other.written;
    }

    fn remove(&mut self, other: Bytes) {
        self.read -= other.read;
        self.written -= other.written;
    }

    fn is_within(self, other: Bytes) -> bool {
        self.read <= other.read && self.written <= other.written
    }
}

/// Whose bytes they are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Whose {
    Host(String),
    Volume(String),
}

type Sums = BTreeMap<Whose, Bytes>;

/// What hosts have sent, and what they have seen answered, since the array was started.
#[derive(Default)]
pub struct Tally {
    sent: RefCell<Sums>,
    answered: RefCell<Sums>,
}

impl Tally {
    pub fn sent(&self, host: u16, command: &Request) {
        add(&mut self.sent.borrow_mut(), host, command);
    }

    /// The command has ended. Unless it has ended well, it has read and written nothing.
    pub fn ended(&self, host: u16, command: &Request, well: bool) {
        match well {
            true => add(&mut self.answered.borrow_mut(), host, command),
            false => each(host, command, |whose, bytes| {
                self.sent.borrow_mut().get_mut(&whose).expect("it was sent").remove(bytes);
            }),
        }
    }
}

fn host_name(host: u16) -> String {
    format!("host{host}")
}

fn add(sums: &mut Sums, host: u16, command: &Request) {
    each(host, command, |whose, bytes| sums.entry(whose).or_default().add(bytes));
}

/// Calls `act` with those whose sums the command belongs to, and its bytes.
fn each(host: u16, command: &Request, mut act: impl FnMut(Whose, Bytes)) {
    let volume = Lun::parse(command.lun).expect("the host made it").number();
    for whose in [Whose::Host(host_name(host)), Whose::Volume(format!("volume{volume}"))] {
        act(whose, bytes_of(command));
    }
}

/// Bytes of blocks that a command reads or writes.
fn bytes_of(command: &Request) -> Bytes {
    let cdb = &command.cdb;
    let sectors = u32::from_be_bytes([cdb[10], cdb[11], cdb[12], cdb[13]]);
    match cdb[0] {
        0x88 => Bytes { read: u64::from(sectors) * SECTOR_BYTES as u64, written: 0 },
        0x8A => Bytes { read: 0, written: command.data_out.len() as u64 },
        0x89 => Bytes { read: 0, written: command.data_out.len() as u64 / 2 },
        _ => Bytes::default(),
    }
}

/// Compares again and again, until the run stops or has failed.
pub async fn compare(io: Io, outside: ToArray, shared: Rc<Shared>, tally: Rc<Tally>) {
    let mut last = Sums::new();
    for _ in 0..TIMES {
        io.sleep(Nanos(io.random_u64() % PAUSE_NS_MAX)).await;
        if shared.stop.get() || shared.has_failed() {
            return;
        }
        let answered = tally.answered.borrow().clone();
        let Ok(Reply::Metrics(metrics)) = command(&io, &outside, Command::Metrics).await else { return };
        let sent = tally.sent.borrow().clone();
        let counted = counted(&metrics);
        if let Some(wrong) = difference(&answered, &counted, &sent, &last) {
            return shared.fail(Failure::Broken(wrong));
        }
        Seen::Compared.seen();
        let is_exact =
            |(whose, bytes): (&Whose, &Bytes)| bytes.written > 0 && answered.get(whose) == Some(bytes);
        if sent.iter().any(is_exact) {
            Seen::Exact.seen();
        }
        if metrics.hosts.iter().any(|(_, load)| load.logins > load.sessions && load.sessions > 0) {
            Seen::Reconnected.seen();
        }
        last = counted;
    }
}

fn counted(metrics: &Metrics) -> Sums {
    let volumes = metrics.volumes.iter();
    let volumes = volumes.map(|volume| (Whose::Volume(volume.name.clone()), Bytes::of(&volume.load.traffic)));
    let hosts = metrics.hosts.iter();
    let hosts = hosts.map(|(host, load)| (Whose::Host(host.clone()), Bytes::of(&load.load.traffic)));
    volumes.chain(hosts).collect()
}

fn difference(answered: &Sums, counted: &Sums, sent: &Sums, last: &Sums) -> Option<String> {
    let of = |sums: &Sums, whose: &Whose| sums.get(whose).copied().unwrap_or_default();
    for whose in sent.keys().chain(counted.keys()) {
        let [answered, counted, sent, last] = [answered, counted, sent, last].map(|sums| of(sums, whose));
        if !answered.is_within(counted) || !counted.is_within(sent) {
            return Some(format!(
                "{whose:?}: the array counts {counted:?}; hosts were answered {answered:?} before, and sent {sent:?}"
            ));
        }
        if !last.is_within(counted) {
            return Some(format!("{whose:?}: the array counts {counted:?}, and counted {last:?} before"));
        }
    }
    None
}
