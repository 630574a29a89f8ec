//! The owner's mirrored drives: what `mirror` orders, carried out. On one shard; the others send it their writes and flushes.
//!
//! What always holds: an answer of the partner counts for the connection over which it was asked; a piece that was read for an earlier
//! connection is not sent.

mod sending;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::Nanos;
use bytes::Bytes;
use env::{DriveHandle, DriveInfo, IoError};
use mirror::{
    Ask, CopyError, CopyId, Mirror, Order, OwnDrive, RECORD_BYTES, RequestId, Synchrony, TwinId, TwinNews,
    WantedTwin,
};
use pair::{Start, StoreEvent, StoreOrder, Term};
use task::{Io, Notify, OneshotSender, oneshot};

use crate::record::{self, DriveRecord};
use crate::shared::{ClaimKey, SharedDrives};
use crate::wire::{Wire, WireEnd};

/// Between two looks whether the partner has left.
const LEAVE_PAUSE: Nanos = Nanos::from_millis(5);
/// After a record that could not be written.
const FAILED_RECORD_PAUSE: Nanos = Nanos::from_millis(50);

/// What whoever decides about ownership is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    Store(StoreEvent),
    /// The partner must leave: its copy could not serve.
    PartnerIsUnfit,
    /// The partner has opened the term over a new connection.
    Opened,
    /// The partner accepts another term than this one, or none.
    Refused {
        accepts: Option<Term>,
    },
    ConnectionEnded(WireEnd),
    /// Since when the oldest request waits for the partner.
    OldestWait(Option<Nanos>),
    /// So many drives that both heads are to see are not seen by the partner, as far as it has said.
    UnseenDrives(usize),
    /// An owner of a later term has a drive that both heads see.
    DrivesLost,
}

/// What the other head has of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copies {
    /// A twin. Both are used up to here.
    Twin { end_bytes: u64 },
    /// The drive itself.
    Shared,
}

#[derive(Clone)]
enum Work {
    Write { offset_bytes: u64, data: Vec<Bytes>, durable: bool },
    Flush,
}

struct Request {
    handle: DriveHandle,
    work: Work,
    since: Nanos,
    /// Parts of it that the partner has not answered, and what it said of the others.
    far_left: usize,
    far_result: Result<(), IoError>,
    reply: OneshotSender<Result<(), IoError>>,
}

/// What the partner was asked for over the present connection.
#[derive(Clone, Copy)]
enum Asked {
    Request(RequestId),
    Copy(CopyId),
}

/// See the header of this file.
pub(crate) struct Center {
    io: Io,
    mirror: RefCell<Mirror>,
    requests: RefCell<BTreeMap<RequestId, Request>>,
    asked: RefCell<BTreeMap<u64, Asked>>,
    /// Drives whose record is being written.
    recording: RefCell<BTreeSet<usize>>,
    /// Those of which the last record could not be written, and those that are being closed.
    failing: RefCell<BTreeSet<usize>>,
    closing: RefCell<BTreeSet<usize>>,
    /// Drives without a twin on which something is stored.
    alone: RefCell<BTreeSet<DriveHandle>>,
    /// Drives that were erased, and not written to since: those that are closed have left their pools for good.
    erased: RefCell<BTreeSet<usize>>,
    shared: Rc<SharedDrives>,
    wire: RefCell<Option<Rc<Wire>>>,
    /// The term has been opened over it, and it is not to be ended.
    is_open: Cell<bool>,
    /// The start of the partner of the last connection that counted.
    partner: Cell<Option<Start>>,
    last: Cell<u64>,
    ended: Notify,
    report: Rc<dyn Fn(Report)>,
}

impl Center {
    pub fn new(
        io: &Io,
        tolerated: usize,
        is_whole: bool,
        key: ClaimKey,
        report: Rc<dyn Fn(Report)>,
    ) -> Rc<Center> {
        let mut mirror = Mirror::new(tolerated);
        mirror.set_whole(is_whole);
        let lost = report.clone();
        let shared = SharedDrives::new(io, key, Box::new(move || lost(Report::DrivesLost)));
        Rc::new(Center {
            io: io.clone(),
            mirror: RefCell::new(mirror),
            requests: RefCell::default(),
            asked: RefCell::default(),
            recording: RefCell::default(),
            failing: RefCell::default(),
            closing: RefCell::default(),
            alone: RefCell::default(),
            erased: RefCell::default(),
            shared,
            wire: RefCell::default(),
            is_open: Cell::default(),
            partner: Cell::default(),
            last: Cell::default(),
            ended: Notify::new(io),
            report,
        })
    }

    pub fn io(&self) -> &Io {
        &self.io
    }

    /// A drive was opened. If it has a record: what the other head has of it.
    pub async fn add(
        self: &Rc<Self>,
        handle: DriveHandle,
        info: &DriveInfo,
    ) -> Result<Option<Copies>, IoError> {
        let record = match record::read(&self.io, handle).await? {
            None => return Ok(None),
            Some(DriveRecord::Twin(record)) => record,
            Some(DriveRecord::Shared(record)) => {
                self.shared.add(handle, &record, info.size_bytes).await?;
                self.tell_shared();
                return Ok(Some(Copies::Shared));
            }
        };
        let geometry = record::geometry(&record, info).ok_or(IoError::Gone)?;
        let end_bytes = record::end_bytes(&record);
        // what an earlier owner wrote may be in its cache, and has no mark here
        self.io.drive_flush(handle).await?;
        let own = OwnDrive { id: record.twin, geometry, record: Some(record) };
        self.mirror.borrow_mut().add(handle.0 as usize, own);
        self.follow();
        Ok(Some(Copies::Twin { end_bytes }))
    }

    pub fn shared(&self) -> &Rc<SharedDrives> {
        &self.shared
    }

    fn tell_shared(self: &Rc<Self>) {
        self.mirror.borrow_mut().set_shared(self.shared.count(), self.shared.unseen());
        (self.report)(Report::UnseenDrives(self.shared.unseen()));
        self.follow();
    }

    /// A drive that both heads see is closed.
    pub async fn remove_shared(self: &Rc<Self>, handle: DriveHandle) {
        self.shared.remove(handle).await;
        self.tell_shared();
    }

    /// A mirrored drive is closed, when nothing is under way on it any more.
    pub async fn remove(self: &Rc<Self>, handle: DriveHandle) {
        let drive = handle.0 as usize;
        self.closing.borrow_mut().insert(drive);
        self.mirror.borrow_mut().settle(drive);
        self.follow();
        while self.is_in_use(handle) {
            self.ended.wait().await;
        }
        let twin = self.mirror.borrow().id(drive);
        self.mirror.borrow_mut().remove(drive);
        if let Some(twin) = twin.filter(|_| self.erased.borrow_mut().remove(&drive)) {
            self.mirror.borrow_mut().forget(twin);
        }
        self.closing.borrow_mut().remove(&drive);
        self.failing.borrow_mut().remove(&drive);
        self.follow();
    }

    /// Something is written to this drive; `erases`: also where its record is, as only somebody does who erases it.
    pub fn on_write(&self, handle: DriveHandle, erases: bool) {
        let mut erased = self.erased.borrow_mut();
        match erases {
            true => erased.insert(handle.0 as usize),
            false => erased.remove(&(handle.0 as usize)),
        };
    }

    fn is_in_use(&self, handle: DriveHandle) -> bool {
        self.requests.borrow().values().any(|request| request.handle == handle)
            || self.recording.borrow().contains(&(handle.0 as usize))
    }

    /// Something is to be stored on a drive that has no twin: the partner must leave first.
    pub async fn stores_alone(self: &Rc<Self>, handle: DriveHandle) {
        if self.alone.borrow_mut().insert(handle) {
            self.mirror.borrow_mut().set_stores_alone(true);
            self.follow();
        }
        while self.mirror.borrow().partner_counts() {
            self.io.sleep(LEAVE_PAUSE).await;
        }
    }

    /// A drive that has no twin is closed.
    pub fn remove_alone(self: &Rc<Self>, handle: DriveHandle) {
        if self.alone.borrow_mut().remove(&handle) && self.alone.borrow().is_empty() {
            self.mirror.borrow_mut().set_stores_alone(false);
            self.follow();
        }
    }

    /// Writes to both drives; `offset_bytes` is behind the record.
    pub async fn write(
        self: &Rc<Self>,
        handle: DriveHandle,
        offset_bytes: u64,
        data: Vec<Bytes>,
        durable: bool,
    ) -> Result<(), IoError> {
        let length: usize = data.iter().map(Bytes::len).sum();
        let place = (offset_bytes - RECORD_BYTES as u64, length as u64);
        let work = Work::Write { offset_bytes, data, durable };
        self.carry_out(handle, work, |mirror, id, drive| mirror.write(id, drive, place, durable)).await
    }

    pub async fn flush(self: &Rc<Self>, handle: DriveHandle) -> Result<(), IoError> {
        self.carry_out(handle, Work::Flush, Mirror::flush).await
    }

    async fn carry_out(
        self: &Rc<Self>,
        handle: DriveHandle,
        work: Work,
        begin: impl FnOnce(&mut Mirror, RequestId, usize),
    ) -> Result<(), IoError> {
        let id = RequestId(self.next());
        let (reply, answer) = oneshot(&self.io);
        let (since, far_result) = (self.io.uptime(), Ok(()));
        let request = Request { handle, work, since, far_left: 0, far_result, reply };
        self.requests.borrow_mut().insert(id, request);
        begin(&mut self.mirror.borrow_mut(), id, handle.0 as usize);
        self.follow();
        answer.await.expect("every request is answered")
    }

    fn next(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// The head has decided.
    pub fn on_order(self: &Rc<Self>, order: StoreOrder) {
        {
            let mut mirror = self.mirror.borrow_mut();
            match order {
                StoreOrder::Commit(rule) => mirror.set_rule(rule),
                StoreOrder::Copy => mirror.copy(),
                StoreOrder::StopCopying => mirror.stop_copying(),
                StoreOrder::Joined => mirror.joined(Synchrony(self.io.random_u128())),
                StoreOrder::Recover { .. }
                | StoreOrder::Drain
                | StoreOrder::EndDrain
                | StoreOrder::Demote => unreachable!("the head carries it out"),
            }
        }
        self.follow();
    }

    /// All that the array has is there.
    pub fn on_whole(self: &Rc<Self>) {
        self.mirror.borrow_mut().set_whole(true);
        self.follow();
    }

    /// Says since when the oldest request waits for the partner.
    pub fn tell_oldest_wait(&self) {
        let requests = self.requests.borrow();
        let waiting = requests.values().filter(|request| request.far_left > 0);
        (self.report)(Report::OldestWait(waiting.map(|request| request.since).min()));
    }

    pub fn lacking_bytes(&self) -> u64 {
        self.mirror.borrow().lacking_bytes()
    }

    /// The twins that the partner is to have, and how long they must be.
    pub fn wanted(&self) -> Vec<WantedTwin> {
        let wanted = |(_, twin, bytes)| WantedTwin { twin, bytes: bytes + RECORD_BYTES as u64 };
        let shared = self.shared.wanted().into_iter().map(|(twin, bytes)| WantedTwin { twin, bytes });
        self.mirror.borrow().drives().map(wanted).chain(shared).collect()
    }

    pub fn begin_connection(&self, wire: &Rc<Wire>) {
        *self.wire.borrow_mut() = Some(wire.clone());
    }

    pub fn end_connection(&self, why: WireEnd) {
        *self.wire.borrow_mut() = None;
        self.is_open.set(false);
        self.asked.borrow_mut().clear();
        (self.report)(Report::ConnectionEnded(why));
    }

    pub fn on_refused(&self, accepts: Option<Term>) {
        (self.report)(Report::Refused { accepts });
    }

    /// The partner has opened the term, and said what it has.
    pub fn on_opened(self: &Rc<Self>, start: Start, twins: &BTreeMap<TwinId, TwinNews>) {
        self.is_open.set(true);
        self.asked.borrow_mut().clear();
        if !self.shared.wanted().iter().all(|(id, _)| twins.contains_key(id)) {
            // a drive was opened after the partner had been asked
            return self.obey(Order::Reconnect);
        }
        let is_same_start = self.partner.get().is_none_or(|before| before == start);
        let news = |(drive, twin, _)| Some((drive, twins.get(&twin)?.clone()));
        let said = self.mirror.borrow().drives().filter_map(news).collect();
        (self.report)(Report::Opened);
        let counts = self.mirror.borrow_mut().on_partner(&said, is_same_start);
        if counts {
            self.partner.set(Some(start));
            self.shared.on_partner(|id| matches!(twins.get(&id), Some(TwinNews::There { .. })));
            self.tell_shared();
        }
        self.follow();
    }

    /// The partner has ended something that it was asked for over the present connection.
    pub fn on_far(self: &Rc<Self>, number: u64, result: Result<(), IoError>) {
        let Some(asked) = self.asked.borrow_mut().remove(&number) else { return };
        match asked {
            Asked::Copy(copy) => {
                self.mirror.borrow_mut().on_copied(copy, result.map_err(|_| CopyError::Far));
            }
            Asked::Request(id) => {
                let mut requests = self.requests.borrow_mut();
                let Some(request) = requests.get_mut(&id) else { return };
                request.far_left -= 1;
                request.far_result = request.far_result.and(result);
                if request.far_left > 0 {
                    return;
                }
                let result = request.far_result;
                drop(requests);
                self.mirror.borrow_mut().on_far(id, result);
            }
        }
        self.follow();
    }

    /// Carries out what the mirror has ordered, and what it orders thereupon.
    fn follow(self: &Rc<Self>) {
        loop {
            let orders = self.mirror.borrow_mut().take_orders();
            if orders.is_empty() {
                return;
            }
            orders.into_iter().for_each(|order| self.obey(order));
        }
    }

    fn obey(self: &Rc<Self>, order: Order) {
        match order {
            Order::Begin { request, far } => {
                self.begin_own(request);
                if far {
                    self.send(request);
                }
            }
            Order::Done { request, result } => {
                let request = self.requests.borrow_mut().remove(&request).expect("it was asked for");
                request.reply.send(result);
                self.ended.notify();
            }
            Order::Record { drive, record } => {
                let is_closing = self.closing.borrow().contains(&drive);
                if !is_closing || !self.failing.borrow().contains(&drive) {
                    self.recording.borrow_mut().insert(drive);
                    self.io.spawn(self.clone().record(drive, record));
                }
            }
            Order::Copy { copy, drive, offset_bytes, length_bytes } => {
                self.io.spawn(self.clone().copy(copy, drive, offset_bytes, length_bytes));
            }
            Order::SendAgain { request } => self.send(request),
            Order::Reconnect => {
                // at once: what is sent from now on is for the next one
                self.is_open.set(false);
                self.asked.borrow_mut().clear();
                if let Some(wire) = &*self.wire.borrow() {
                    wire.close();
                }
            }
            Order::TellSynchrony { synchrony, drives } => {
                let drives = drives
                    .into_iter()
                    .map(|drive| self.mirror.borrow().id(drive).expect("it was just named"))
                    .collect();
                if let Some(wire) = self.open_wire() {
                    wire.send_ask(&Ask::Synchrony { synchrony, drives });
                }
            }
            Order::Tell(event) => (self.report)(Report::Store(event)),
            Order::PartnerIsUnfit => (self.report)(Report::PartnerIsUnfit),
        }
    }
}
