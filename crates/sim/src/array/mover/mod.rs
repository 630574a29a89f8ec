//! The control plane as it moves whole volumes: exports of volumes and snapshots while hosts write, checked against the
//! oracle, and imports of what was exported. It reads slowly, takes more than it may, and vanishes.
//!
//! What must hold: an export is of one moment; what it calls unmapped is zeros; transfers never hold more memory than
//! they may, and all of it comes back; a volume is what it was until an import is complete, and then what was imported,
//! whatever ends the array.

mod credit;
mod importing;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use api::{
    Bulk, BulkError, BulkOutput, BulkRequest, BulkResult, Command, CommandError, CommandErrorKind, CopyOrder,
    LeaseHolder, NewBacking, NewVolume, Reply, TransferGrant, TransferOrder,
};
use base::{BLOCK_BYTES, Nanos, ShardId};
use bytes::Bytes;
use engine::ShardMessage;
use task::Io;

use self::importing::Content;
use super::engine_shard::{EngineShard, command};
use super::set_up::ToArray;
use crate::counts::counted;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::workload::{Failure, Shared, VolumePlan};

counted! {
    /// What was moved.
    Seen: "transfers: " {
        Exported = "a volume exported",
        ExportedSnapshot = "a snapshot exported",
        Deleted = "a snapshot deleted under its export",
        Vanished = "a reader vanished",
        Slow = "a reader kept data for long",
        Late = "a reader began long after its volume was frozen",
        Full = "a reader had to wait for its own credit",
        Imported = "a volume imported",
        Abandoned = "an import abandoned",
        CutOff = "an import cut off, and its volume read",
        CreditBack = "all credit came back",
    }
}

/// Transfers in one round.
const TIMES: u32 = 12;
const PAUSE_NS_MAX: u64 = 4_000_000;
const LOOK: Nanos = Nanos::from_micros(200);
/// How long a slow reader keeps data, at most.
const KEEP_NS_MAX: u64 = 300_000_000;
/// The keeper forgets what nothing refers to within this time.
const LATE: Nanos = Nanos::from_secs(15);
/// The memory for commands' data on a shard of an array with transfers.
pub const DATA_BYTES: usize = 24 << 20;
/// The oracle's numbers of exports begin here.
const FIRST: u32 = 500_000;
const MOVED: &str = "moved";
const MOVED_BYTES: u64 = 64 << 20;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// What is known over all starts.
#[derive(Default)]
pub struct Records {
    next: Cell<u32>,
    /// Numbers that the oracle has.
    numbers: RefCell<BTreeSet<u32>>,
    /// What the volume of imports holds: the checksum of each block that is not zeros.
    content: RefCell<Content>,
    /// It was made; a full pool or a drive that fails may have refused it.
    has_volume: Cell<bool>,
    /// What else it may hold.
    pending: RefCell<Vec<Content>>,
}

impl Records {
    /// Whether an import is about to become what its volume holds.
    pub fn is_completing(&self) -> bool {
        !self.pending.borrow().is_empty()
    }
}

/// See the module's words.
pub struct Mover {
    pub io: Io,
    pub outside: ToArray,
    pub shared: Rc<Shared>,
    pub volumes: Rc<Vec<VolumePlan>>,
    pub records: Rc<Records>,
    pub shards: Vec<Rc<RefCell<EngineShard>>>,
    /// The pool in which it has its volume.
    pub pool: &'static str,
}

/// A transfer under way.
struct Moving {
    grant: TransferGrant,
    holder: LeaseHolder,
}

/// An answer that may not be there yet.
type Place = Arc<Mutex<Option<BulkResult>>>;

/// Why a transfer is not carried on.
enum Stop {
    /// Drives fail, the array stops, its pool is full.
    Refused,
    Ended,
    /// It was wrong, and that has been reported.
    Failed,
    Vanished,
}

impl From<BulkError> for Stop {
    fn from(error: BulkError) -> Stop {
        if error == BulkError::Ended { Stop::Ended } else { Stop::Refused }
    }
}

impl Mover {
    pub async fn run(self) {
        self.create_volume().await;
        self.delete_snapshots().await;
        self.check_moved().await;
        for _ in 0..TIMES {
            let pause = self.draw(PAUSE_NS_MAX);
            self.io.sleep(Nanos(pause)).await;
            if self.shared.stop.get() || self.shared.has_failed() {
                return;
            }
            self.move_something().await;
            self.forget_numbers();
            self.check_credit_is_back().await;
        }
    }

    fn draw(&self, below: u64) -> u64 {
        self.io.random_u64() % below
    }

    fn fail(&self, what: String) -> Stop {
        self.shared.fail(Failure::Broken(what));
        Stop::Failed
    }

    fn forget_numbers(&self) {
        let numbers = std::mem::take(&mut *self.records.numbers.borrow_mut());
        numbers.into_iter().for_each(|number| self.shared.oracle.borrow_mut().remove_volume(number));
    }

    /// Whether something may go wrong in this way.
    fn check_refusal(&self, what: &str, error: &CommandError) {
        use CommandErrorKind::*;
        if !matches!(error.kind, Io | Unavailable | Stopping | Full | TimedOut | Unfinished) {
            self.fail(format!("{what}: {error}"));
        }
    }

    async fn create_volume(&self) {
        let volume = NewVolume {
            name: MOVED.to_owned(),
            backing: NewBacking::Pool(self.pool.to_owned()),
            size_bytes: Some(MOVED_BYTES),
            block_bytes: 512,
            write_back: false,
        };
        match command(&self.io, &self.outside, Command::VolumeCreate { volume, dry_run: false }).await {
            Err(error) if error.kind != CommandErrorKind::AlreadyExists => {
                self.check_refusal("the volume of imports", &error);
            }
            _ => self.records.has_volume.set(true),
        }
    }

    /// What a crash has left.
    async fn delete_snapshots(&self) {
        let all = command(&self.io, &self.outside, Command::SnapshotList { volume: None }).await;
        let Ok(Reply::Snapshots(snapshots)) = all else { return };
        for one in snapshots {
            self.copy(CopyOrder::DeleteSnapshot { volume: one.volume, snapshot: one.name }).await;
        }
    }

    async fn copy(&self, order: CopyOrder) -> bool {
        let what = format!("{order:?}");
        let answer = command(&self.io, &self.outside, Command::Copy { order, dry_run: false }).await;
        answer.inspect_err(|error| self.check_refusal(&what, error)).is_ok()
    }

    async fn move_something(&self) {
        let volume = self.volumes[self.draw(self.volumes.len() as u64) as usize];
        let image = match self.draw(3) {
            0 => self.export_snapshot(volume.volume).await,
            _ => self.export_volume(volume.volume).await,
        };
        let Ok(image) = image else { return };
        if self.records.has_volume.get() && image.len() as u64 <= MOVED_BYTES && self.draw(2) == 0 {
            let _ = self.import(&image).await;
            self.check_moved().await;
        }
    }

    fn new_number(&self) -> u32 {
        let next = self.records.next.get().max(FIRST) + 1;
        self.records.next.set(next);
        self.records.numbers.borrow_mut().insert(next);
        next
    }

    async fn begin(&self, order: TransferOrder) -> Result<Moving, Stop> {
        let holder = LeaseHolder::new();
        let what = format!("{order:?}");
        let begin = Command::TransferBegin { order, lease: holder.lease(), dry_run: false };
        match command(&self.io, &self.outside, begin).await {
            Ok(Reply::TransferBegan(grant)) => Ok(Moving { grant, holder }),
            Ok(other) => Err(self.fail(format!("{what} gave {other:?}"))),
            Err(error) => {
                self.check_refusal(&what, &error);
                Err(Stop::Refused)
            }
        }
    }

    /// Of this moment, while hosts write.
    async fn export_volume(&self, volume: u32) -> Result<Vec<u8>, Stop> {
        let number = self.new_number();
        let ticket = self.shared.oracle.borrow_mut().begin_volume_copy(volume, number);
        let order = TransferOrder::Export { volume: format!("volume{volume}"), snapshot: None };
        let moving = self.begin(order).await;
        self.shared.oracle.borrow_mut().end_snapshots(ticket);
        let moving = moving?;
        if self.draw(5) == 0 {
            Seen::Late.seen();
            self.io.sleep(LATE).await;
        }
        let image = self.read_all(&moving, Some(number), None).await;
        if let Err(Stop::Ended) = image {
            return Err(self.fail(format!("the export of volume{volume} ended by itself")));
        }
        Seen::Exported.seen();
        image
    }

    /// Now and then the snapshot is deleted meanwhile.
    async fn export_snapshot(&self, volume: u32) -> Result<Vec<u8>, Stop> {
        let number = self.new_number();
        let (volume_name, name) = (format!("volume{volume}"), format!("m{number}"));
        let ticket = self.shared.oracle.borrow_mut().begin_snapshots(vec![(volume, number)]);
        let snapshots = vec![(volume_name.clone(), name.clone())];
        let taken = self.copy(CopyOrder::Snapshot { snapshots }).await;
        self.shared.oracle.borrow_mut().end_snapshots(ticket);
        if !taken {
            return Err(Stop::Refused);
        }
        let snapshot = Some(name.clone());
        let moving = self.begin(TransferOrder::Export { volume: volume_name.clone(), snapshot }).await?;
        let delete = CopyOrder::DeleteSnapshot { volume: volume_name, snapshot: name };
        let delete_early = (self.draw(3) == 0).then(|| delete.clone());
        let deletes_early = delete_early.is_some();
        let image = self.read_all(&moving, Some(number), delete_early).await;
        if let Err(Stop::Ended) = image {
            if !deletes_early {
                return Err(self.fail(format!("the export of {} ended by itself", moving.grant.content)));
            }
            Seen::Deleted.seen();
        }
        drop(moving);
        if !deletes_early {
            self.copy(delete).await;
        }
        Seen::ExportedSnapshot.seen();
        image
    }

    fn post(&self, moving: &Moving, request: BulkRequest) -> impl Future<Output = Place> {
        let bulk = Bulk { transfer: moving.grant.transfer, request, caller: moving.holder.lease() };
        let place = Place::default();
        let answer = place.clone();
        let reply = Box::new(move |result| *answer.lock().expect("one thread") = Some(result));
        let mut message = ShardMessage::Bulk(bulk, reply);
        let (io, outside, to) = (self.io.clone(), self.outside.clone(), ShardId(moving.grant.shard));
        async move {
            while let Err(returned) = outside.send(to, message) {
                message = returned;
                io.sleep(LOOK).await;
            }
            place
        }
    }

    async fn answer(&self, place: &Place) -> Result<BulkOutput, Stop> {
        loop {
            let answer = place.lock().expect("one thread").take();
            match answer {
                Some(Err(BulkError::Medium { offset_bytes })) => {
                    return Err(self.fail(format!("byte {offset_bytes} cannot be read")));
                }
                Some(Err(
                    error @ (BulkError::OutOfRange | BulkError::WrongDirection | BulkError::NoCredit),
                )) => return Err(self.fail(format!("{error:?}"))),
                Some(answer) => return answer.map_err(Stop::from),
                None => self.io.sleep(LOOK).await,
            }
        }
    }

    async fn ask(&self, moving: &Moving, request: BulkRequest) -> Result<BulkOutput, Stop> {
        let place = self.post(moving, request).await;
        self.answer(&place).await
    }

    /// The whole image; it is compared with what the oracle knows by this number.
    async fn read_all(
        &self,
        moving: &Moving,
        number: Option<u32>,
        mut delete: Option<CopyOrder>,
    ) -> Result<Vec<u8>, Stop> {
        let size_bytes = moving.grant.size_bytes;
        let mut image = vec![0; size_bytes as usize];
        if number.is_some() && self.draw(4) == 0 {
            self.take_too_much(moving).await?;
        }
        let mut at = 0;
        while at < size_bytes {
            let found = match self.ask(moving, BulkRequest::Extents { from_bytes: at }).await? {
                BulkOutput::Extents(found) => found,
                other => return Err(self.fail(format!("extents gave {other:?}"))),
            };
            if found.until_bytes <= at || found.until_bytes > size_bytes {
                return Err(self.fail(format!("extents from {at} of {size_bytes}: {found:?}")));
            }
            for range in found.ranges {
                self.check(number, at..range.start, &image)?;
                self.read_range(moving, range.clone(), &mut image).await?;
                self.check(number, range.clone(), &image)?;
                at = range.end;
                if let Some(order) = delete.take_if(|_| self.draw(2) == 0) {
                    self.copy(order).await;
                }
            }
            self.check(number, at..found.until_bytes, &image)?;
            at = found.until_bytes;
        }
        if let Some(order) = delete {
            self.copy(order).await;
        }
        Ok(image)
    }

    /// In pieces of any length, several at once. Some readers keep what they have for a while, and some vanish.
    async fn read_range(&self, moving: &Moving, range: Range<u64>, image: &mut [u8]) -> Result<(), Stop> {
        let window = 1 + self.draw(4) as usize;
        let (mut at, mut waiting) = (range.start, VecDeque::new());
        let mut kept: Vec<Bytes> = Vec::new();
        loop {
            while at < range.end && waiting.len() < window {
                let length = ((1 + self.draw(256)) * BLOCK).min(range.end - at);
                let read = BulkRequest::Read { offset_bytes: at, length_bytes: length as usize };
                waiting.push_back((at, self.post(moving, read).await));
                at += length;
            }
            if self.draw(150) == 0 {
                Seen::Vanished.seen();
                return Err(Stop::Vanished);
            }
            let Some((from, place)) = waiting.pop_front() else { return Ok(()) };
            let BulkOutput::Data(pieces) = self.answer(&place).await? else {
                return Err(self.fail("a read gave no data".to_owned()));
            };
            self.check_bound()?;
            let mut to = from as usize;
            for piece in &pieces {
                image[to..to + piece.len()].copy_from_slice(piece);
                to += piece.len();
            }
            if self.draw(60) == 0 {
                Seen::Slow.seen();
                kept = pieces;
                self.io.sleep(Nanos(self.draw(KEEP_NS_MAX))).await;
            }
            kept.clear();
        }
    }

    fn check(&self, number: Option<u32>, range: Range<u64>, image: &[u8]) -> Result<(), Stop> {
        let Some(number) = number.filter(|_| !range.is_empty()) else { return Ok(()) };
        let sectors = range.start / BLOCK * SECTORS_PER_BLOCK..range.end / BLOCK * SECTORS_PER_BLOCK;
        let mut oracle = self.shared.oracle.borrow_mut();
        let ticket = oracle.begin_read(number, sectors);
        let checked = oracle.end_read(&ticket, &image[range.start as usize..range.end as usize]);
        drop(oracle);
        checked.map_err(|violation| {
            self.shared.fail(Failure::Violation(violation));
            Stop::Failed
        })
    }
}
