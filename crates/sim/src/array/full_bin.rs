//! A pool that an administrator keeps nearly full by creating, filling and deleting volumes: the bin must release
//! space.
//!
//! What must be true, whenever the power goes: only the oldest volumes of the bin are deleted; nothing is deleted
//! before the pool is about full, and then something is deleted soon; hosts that write all the time are never refused
//! for want of space; a volume in the bin comes back unchanged, and a deleted one is reported as not found.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use api::{ArrayStatus, CommandError, CommandErrorKind, CopyOrder, NewBacking, NewVolume, ProblemCode};
use api::{Command, Reply};
use base::{BLOCK_BYTES, Nanos};
use block::Payload;
use engine::ShardMessage;
use iscsi::initiator::{Completion, InitiatorParams, Request};
use task::Io;
use wire::scsi::Lun;

use super::copies::HOST;
use super::engine_shard::command;
use super::lun::{LunSubject, Way, sense};
use super::session::HostSession;
use crate::counts::counted;
use crate::environment::Outside;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::workload::{Answer, Failure, Shared, read_checked, write_checked};

const PIECE_BYTES: u64 = 1 << 20;
/// Of one volume that is deleted again.
const PIECES: u64 = 16;
/// What is there before hosts come, in percent.
const FILLED_FIRST: u64 = 84;
/// From here on the bin gives way; below that by so much, nothing goes.
const GIVES_WAY: u64 = 92;
const WARNS: u64 = 88;
/// Within this time something has gone.
const PATIENCE: Nanos = Nanos::from_secs(30);
const LOOK_AGAIN: Nanos = Nanos::from_millis(20);
const PAUSE_NS_MAX: u64 = 4_000_000_000;

counted! {
    /// What was seen of it.
    Seen: "full pool: " {
        Deleted = "volume put into the bin",
        GaveWay = "the oldest in the bin has gone",
        CutOff = "cut off while the bin has to give way",
        Warned = "it is told that the bin will give way",
        Returned = "volume brought back",
        RefusedToReturn = "what has gone is not brought back",
    }
}

/// What is known, over all starts.
pub struct Records {
    shared: Rc<Shared>,
    next: Cell<u32>,
    /// In the bin, the oldest first: names, and the oracle's numbers.
    bin: RefCell<Vec<(String, u32)>>,
    /// Out of it, with what is in them; whether it is there now only a look can tell.
    live: RefCell<Vec<(String, u32)>>,
    /// Something has to go.
    pub is_full: Cell<bool>,
}

impl Records {
    pub fn new(shared: &Rc<Shared>) -> Rc<Records> {
        Rc::new(Records {
            shared: shared.clone(),
            next: Cell::new(10_000),
            bin: RefCell::default(),
            live: RefCell::default(),
            is_full: Cell::new(false),
        })
    }

    /// The array has ended.
    pub fn cut_off(&self) {
        if self.is_full.replace(false) {
            Seen::CutOff.seen();
        }
    }
}

/// The administrator.
pub struct Filler {
    pub io: Io,
    pub outside: Rc<Outside<ShardMessage>>,
    pub records: Rc<Records>,
    session: RefCell<Option<Rc<HostSession>>>,
}

fn percent(status: &ArrayStatus) -> u64 {
    let pool = &status.pools[0];
    pool.used_bytes * 100 / pool.capacity_bytes.max(1)
}

fn new_volume(name: &str, size_bytes: u64) -> Command {
    let volume = NewVolume {
        name: name.to_owned(),
        backing: NewBacking::Pool("pool".to_owned()),
        size_bytes: Some(size_bytes),
        block_bytes: 512,
        write_back: false,
    };
    Command::VolumeCreate { volume, dry_run: false }
}

impl Filler {
    pub fn new(io: &Io, outside: &Rc<Outside<ShardMessage>>, records: &Rc<Records>) -> Filler {
        let (io, outside, records) = (io.clone(), outside.clone(), records.clone());
        Filler { io, outside, records, session: RefCell::default() }
    }

    fn fail(&self, what: String) {
        self.records.shared.fail(Failure::Broken(what));
    }

    async fn order(&self, wanted: Command) -> Result<Reply, CommandError> {
        let answer = command(&self.io, &self.outside, wanted.clone()).await;
        self.records.shared.world.note(|| format!("{wanted:?}: {:?}", answer.as_ref().map(drop)));
        if answer.as_ref().is_err_and(|error| error.kind == CommandErrorKind::Stopping) {
            // this ends with it: what came of the order shows at the next start
            std::future::pending::<()>().await;
        }
        answer
    }

    async fn log_in(&self, portal: std::net::SocketAddr, params: InitiatorParams) {
        let session = HostSession::new(&self.io, portal, params);
        self.io.spawn(session.clone().run());
        while session.logins.get() == 0 {
            self.io.sleep(LOOK_AGAIN).await;
        }
        *self.session.borrow_mut() = Some(session);
    }

    /// Fills the pool before hosts come, if it is not.
    pub async fn fill_first(&self, portal: std::net::SocketAddr, params: InitiatorParams) {
        self.log_in(portal, params).await;
        let status = self.status().await;
        if percent(&status) >= FILLED_FIRST || status.volumes.iter().any(|volume| volume.name == "kept") {
            return;
        }
        let size_bytes = status.pools[0].capacity_bytes;
        let made = self.order(new_volume("kept", size_bytes)).await;
        if made.is_err() || !self.map("kept", 1).await {
            return self.fail(format!("the pool cannot be filled: {made:?}"));
        }
        let pieces = size_bytes / PIECE_BYTES * FILLED_FIRST / 100;
        for piece in 0..pieces {
            self.write(1, piece).await;
        }
    }

    /// Runs as long as the array does.
    pub async fn run(self, portal: std::net::SocketAddr, params: InitiatorParams) {
        self.log_in(portal, params).await;
        self.settle().await;
        while !self.records.shared.has_failed() && !self.records.shared.stop.get() {
            self.fill_and_delete().await;
            if self.io.random_u64().is_multiple_of(3) {
                self.bring_back().await;
            }
            self.io.sleep(Nanos(self.io.random_u64() % PAUSE_NS_MAX)).await;
        }
    }

    async fn status(&self) -> ArrayStatus {
        loop {
            if let Ok(Reply::Status(status)) = command(&self.io, &self.outside, Command::Status).await {
                return *status;
            }
            self.io.sleep(LOOK_AGAIN).await;
        }
    }

    /// What is there after a start; what was not deleted goes into the bin now.
    async fn settle(&self) {
        let status = self.status().await;
        let in_bin = |name: &String| status.bin.iter().any(|binned| binned.name == *name);
        let live = std::mem::take(&mut *self.records.live.borrow_mut());
        for one in live {
            // the last one was being deleted, or brought back
            match in_bin(&one.0) {
                true => self.records.bin.borrow_mut().push(one),
                false if status.volumes.iter().any(|volume| volume.name == one.0) => self.delete(one).await,
                false => {}
            }
        }
        self.check(&self.status().await);
    }

    /// How many have gone from the bin, all of them the oldest.
    fn check(&self, status: &ArrayStatus) -> usize {
        let mut bin = self.records.bin.borrow_mut();
        let mut told: Vec<&str> = status.bin.iter().map(|binned| binned.name.as_str()).collect();
        let gone = bin.len().saturating_sub(told.len());
        let mut expected: Vec<&str> = bin.iter().skip(gone).map(|(name, _)| name.as_str()).collect();
        told.sort_unstable();
        expected.sort_unstable();
        if told != expected {
            self.fail(format!("in the bin are {told:?}; there were {:?}, the oldest first", *bin));
        }
        let fresh = self.records.live.borrow().is_empty();
        let missing = |name: &str| status.volumes.iter().all(|volume| volume.name != name);
        if missing("kept") || fresh && (1..=3).any(|host| missing(&format!("volume{host}"))) {
            self.fail("a volume has gone that was not in the bin".to_owned());
        }
        let full = percent(status);
        let warns = status.problems.iter().any(|problem| problem.code() == ProblemCode::BinGivesWay);
        if (WARNS + 1..GIVES_WAY).contains(&full) && !told.is_empty() {
            match warns {
                true => Seen::Warned.seen(),
                false => {
                    self.fail(format!("the pool is {full} % full, and nobody is told: {:?}", status.problems))
                }
            }
        }
        bin.drain(..gone).for_each(|_| Seen::GaveWay.seen());
        gone
    }

    async fn map(&self, volume: &str, lun: u16) -> bool {
        let (volume, host, lun) = (volume.to_owned(), HOST.to_owned(), Some(lun));
        match self.order(Command::Map { volume, host, lun, read_only: false, dry_run: false }).await {
            Ok(_) => true,
            Err(error) => error.kind == CommandErrorKind::AlreadyExists,
        }
    }

    fn way(&self) -> Way {
        let session = self.session.borrow().clone().expect("it has logged in");
        let (host, holders, interferes) = (u16::MAX, Rc::default(), None);
        Way { io: self.io.clone(), session, host, holders, interferes, tally: None }
    }

    /// Writes a piece of a volume of which nobody asks what is in it.
    async fn write(&self, lun: u16, piece: u64) {
        let sectors = PIECE_BYTES / 512;
        let mut cdb = [0; 16];
        cdb[0] = 0x8A;
        cdb[2..10].copy_from_slice(&(piece * sectors).to_be_bytes());
        cdb[10..14].copy_from_slice(&(sectors as u32).to_be_bytes());
        let mut request = Request::new(Lun::new(lun).expect("a small number").emit(), cdb);
        request.data_out = Payload::from(vec![piece as u8 | 1; PIECE_BYTES as usize]);
        let answer = |done: &Completion| match (done.status, sense(done)) {
            (0, _) => Some(Answer::Done),
            (0x02, (0x7, 0x27, 0x07)) => Some(Answer::OutOfSpace),
            (0x08 | 0x28, _) | (0x02, (0x6 | 0x2, ..)) => None,
            (0x02, (0xB, ..)) => Some(Answer::Lost),
            (status, sense) => Some(Answer::Failed(format!("{status:#04x}, {sense:x?}"))),
        };
        match self.way().send(request, None, answer).await {
            Answer::Done | Answer::Lost | Answer::Aborted => {}
            other => {
                self.fail(format!("piece {piece} cannot be written although the bin can give way: {other:?}"))
            }
        }
    }

    async fn fill_and_delete(&self) {
        self.records.next.set(self.records.next.get() + 1);
        let number = self.records.next.get();
        let (name, lun) = (format!("ballast{number}"), (number % 16_000) as u16);
        self.records.shared.oracle.borrow_mut().add_volume(number, false);
        self.records.live.borrow_mut().push((name.clone(), number));
        if self.order(new_volume(&name, (PIECES + 1) * PIECE_BYTES)).await.is_err()
            || !self.map(&name, lun).await
        {
            return self.fail(format!("{name} cannot be made"));
        }
        for piece in 1..=PIECES {
            self.write(lun, piece).await;
        }
        let subject = Rc::new(LunSubject { way: self.way(), luns: BTreeMap::from([(number, lun)]) });
        write_checked(self.records.shared.clone(), subject, number, 0..16 * SECTORS_PER_BLOCK).await;
        let kept = self.io.random_u64().is_multiple_of(3);
        if kept {
            let order = CopyOrder::Snapshot { snapshots: vec![(name.clone(), "s".to_owned())] };
            drop(self.order(Command::Copy { order, dry_run: false }).await);
        }
        self.delete((name, number)).await;
        self.wait_for_space().await;
    }

    async fn delete(&self, one: (String, u32)) {
        let name = one.0.clone();
        let wanted = Command::VolumeDelete { name, unmap: true, eradicate: false, dry_run: false };
        if let Err(error) = self.order(wanted).await {
            return self.fail(format!("{}: {error}", one.0));
        }
        Seen::Deleted.seen();
        self.records.live.borrow_mut().clear();
        self.records.bin.borrow_mut().push(one);
    }

    /// Where the pool is about full, until the bin has given way.
    async fn wait_for_space(&self) {
        let deadline = self.io.now() + PATIENCE;
        loop {
            let status = self.status().await;
            let gone = self.check(&status);
            let full = percent(&status);
            let before = status.pools[0].used_bytes + gone as u64 * (PIECES + 1) * PIECE_BYTES;
            if before * 100 < status.pools[0].capacity_bytes * (GIVES_WAY - 1) && gone > 0 {
                self.fail(format!("{gone} have gone from the bin of a pool that is {full} % full"));
            }
            self.records.is_full.set(full >= GIVES_WAY);
            if full < GIVES_WAY || self.records.shared.has_failed() {
                return;
            }
            if self.io.now() >= deadline {
                return self
                    .fail(format!("the pool is {full} % full for {PATIENCE:?}, and the bin is not empty"));
            }
            self.io.sleep(LOOK_AGAIN).await;
        }
    }

    /// Brings back the newest, reads it, and deletes it again; what has gone cannot be brought back.
    async fn bring_back(&self) {
        let undelete =
            |volume: String| Command::Copy { order: CopyOrder::Undelete { volume }, dry_run: false };
        let first = self.records.bin.borrow().first().map_or(u32::MAX, |(_, number)| *number);
        if let Some(gone) = (10_001..first.min(self.records.next.get())).last() {
            match self.order(undelete(format!("ballast{gone}"))).await {
                Err(error) if error.kind == CommandErrorKind::NotFound => Seen::RefusedToReturn.seen(),
                other => {
                    self.fail(format!("ballast{gone} has gone, and is brought back: {:?}", other.map(drop)))
                }
            }
        }
        let Some(one) = self.records.bin.borrow_mut().pop() else { return };
        self.records.live.borrow_mut().push(one.clone());
        if let Err(error) = self.order(undelete(one.0.clone())).await {
            return self.fail(format!("{} does not come back: {error}", one.0));
        }
        Seen::Returned.seen();
        let (lun, number) = ((one.1 % 16_000) as u16, one.1);
        let subject = Rc::new(LunSubject { way: self.way(), luns: BTreeMap::from([(number, lun)]) });
        read_checked(self.records.shared.clone(), subject, number, 0..16 * SECTORS_PER_BLOCK).await;
        self.delete(one).await;
    }
}

const _: () = assert!(PIECE_BYTES.is_multiple_of(BLOCK_BYTES as u64));
