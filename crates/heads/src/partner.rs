//! The partner's drives: they take writes of one owner, in one term, over one connection.
//!
//! What always holds: what came over an earlier connection has ended before a later one is opened; a drive that is given back to this
//! head ([`Partner::hand_back`]) is written to by nobody else any more.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES};
use bytes::Bytes;
use env::{DriveHandle, IoError};
use mirror::{
    Answer, Ask, Bits, RECORD_BYTES, Record, RequestId, Side, Synchrony, TwinId, TwinNews, WantedTwin,
};
use pair::Term;
use task::{Io, Notify};

use crate::record;
use crate::twins::OfferedDrive;
use crate::wire::Wire;

/// Bytes of writes that are under way. Nothing more is received meanwhile.
const UNDER_WAY_BYTES_MAX: usize = 32 << 20;

struct Twin {
    path: String,
    handle: DriveHandle,
    bytes: u64,
    record: Record,
}

/// See the header of this file.
pub struct Partner {
    io: Io,
    paths: RefCell<Vec<String>>,
    twins: RefCell<BTreeMap<TwinId, Twin>>,
    side: RefCell<Side>,
    /// The term of which this head accepts writes; it decides that elsewhere.
    accepts: Cell<Option<Term>>,
    /// The connection that is open.
    serving: RefCell<Option<Rc<Wire>>>,
    /// The newest connection that asked to be opened.
    serial: Cell<u64>,
    ended: Notify,
    under_way_bytes: Cell<usize>,
    /// Connections for which drives are being opened.
    opening: Cell<usize>,
}

impl Partner {
    /// With the drives at these paths, of which those that have a record are twins.
    pub fn new(io: &Io, paths: Vec<String>) -> Rc<Partner> {
        Rc::new(Partner {
            io: io.clone(),
            paths: RefCell::new(paths),
            twins: RefCell::default(),
            side: RefCell::default(),
            accepts: Cell::default(),
            serving: RefCell::default(),
            serial: Cell::default(),
            ended: Notify::new(io),
            under_way_bytes: Cell::default(),
            opening: Cell::default(),
        })
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.borrow().clone()
    }

    /// From now on these are the drives of this head.
    pub(crate) fn set_paths(&self, paths: Vec<String>) {
        *self.paths.borrow_mut() = paths;
    }

    /// The twins that are open.
    pub(crate) fn offered(&self) -> Vec<OfferedDrive> {
        let offered = |twin: &Twin| OfferedDrive {
            path: twin.path.clone(),
            bytes: twin.bytes,
            twin: Some(twin.record.twin.0),
        };
        self.twins.borrow().values().map(offered).collect()
    }

    /// From now on writes of this term are accepted, and of no other.
    pub fn accept(&self, term: Option<Term>) {
        if self.accepts.replace(term) != term {
            self.close_connection();
        }
    }

    fn close_connection(&self) {
        self.side.borrow_mut().refuse();
        if let Some(wire) = self.serving.borrow_mut().take() {
            wire.close();
        }
    }

    /// Accepts nothing more, waits until everything that was accepted has ended, and closes the drives: this head takes over.
    pub async fn hand_back(&self) {
        self.accept(None);
        self.close_connection();
        while !self.side.borrow().is_quiet() || self.opening.get() > 0 {
            self.ended.wait().await;
        }
        let twins = std::mem::take(&mut *self.twins.borrow_mut());
        for twin in twins.into_values() {
            let _gone_already = self.io.drive_close(twin.handle).await;
        }
    }

    /// Opens the drives that are not open. Those that cannot be had now are tried again with the next connection.
    async fn open_drives(&self) {
        for path in &self.paths() {
            if self.twins.borrow().values().any(|twin| twin.path == *path) {
                continue;
            }
            let Ok((handle, info)) = self.io.drive_open(path, true).await else { continue };
            match record::read(&self.io, handle).await {
                // unless this head takes over meanwhile
                Ok(Some(record)) if self.opens(&record) => {
                    let bytes = info.size_bytes.min(record::end_bytes(&record));
                    let twin = Twin { path: path.clone(), handle, bytes, record };
                    self.twins.borrow_mut().insert(twin.record.twin, twin);
                }
                _ => {
                    let _gone_already = self.io.drive_close(handle).await;
                }
            }
        }
    }

    fn opens(&self, record: &Record) -> bool {
        self.accepts.get().is_some() && !self.twins.borrow().contains_key(&record.twin)
    }

    /// The owner has opened a connection for drives.
    pub(crate) fn serve(self: &Rc<Self>, wire: &Rc<Wire>) -> Rc<Served> {
        Rc::new(Served { partner: self.clone(), wire: wire.clone(), term: Cell::default() })
    }

    /// A connection has ended.
    pub(crate) fn connection_ended(&self, wire: &Rc<Wire>) {
        if self.is_serving(wire) {
            self.close_connection();
        }
    }

    fn is_serving(&self, wire: &Rc<Wire>) -> bool {
        self.serving.borrow().as_ref().is_some_and(|serving| Rc::ptr_eq(serving, wire))
    }

    fn has_room(&self) -> bool {
        self.under_way_bytes.get() < UNDER_WAY_BYTES_MAX
    }

    /// How a drive is, as far as its owner needs to know.
    fn news(&self, wanted: &WantedTwin) -> TwinNews {
        match self.twins.borrow().get(&wanted.twin) {
            Some(twin) if twin.bytes >= wanted.bytes => TwinNews::There(Some(twin.record.clone())),
            _ => TwinNews::Absent,
        }
    }
}

/// A connection for drives.
pub(crate) struct Served {
    partner: Rc<Partner>,
    wire: Rc<Wire>,
    /// The term that was opened over it.
    term: Cell<Option<Term>>,
}

impl Served {
    pub(crate) fn on_frame(self: Rc<Self>, kind: u16, content: &[u8]) {
        match Ask::decode(kind, content) {
            Ok(Ask::Open { term, drives }) => {
                let io = self.partner.io.clone();
                io.spawn(self.open(term, drives));
            }
            Ok(Ask::Write { request, twin, offset_bytes, durable, data }) => {
                self.write(request, twin, offset_bytes, durable, &data);
            }
            Ok(Ask::Flush { request, twin }) => self.flush(request, twin),
            Ok(Ask::Synchrony { synchrony, drives }) => {
                let io = self.partner.io.clone();
                drives.into_iter().for_each(|twin| io.spawn(self.clone().record(twin, synchrony)));
            }
            Err(_) => self.wire.close(),
        }
    }

    fn say(&self, answer: &Answer) {
        let (kind, content) = answer.encode();
        self.wire.send_frame(kind, vec![Bytes::from(content)]);
    }

    async fn open(self: Rc<Self>, term: Term, drives: Vec<WantedTwin>) {
        let partner = &self.partner;
        partner.serial.set(partner.serial.get() + 1);
        let serial = partner.serial.get();
        if partner.accepts.get() != Some(term) {
            self.say(&Answer::Refused { accepts: partner.accepts.get() });
            return;
        }
        if !partner.is_serving(&self.wire) {
            partner.close_connection();
        }
        partner.opening.set(partner.opening.get() + 1);
        partner.open_drives().await;
        partner.opening.set(partner.opening.get() - 1);
        partner.ended.notify();
        // another connection may have asked meanwhile, or the head decided otherwise
        if serial != partner.serial.get() || partner.accepts.get() != Some(term) {
            self.say(&Answer::Busy);
            return;
        }
        if partner.side.borrow_mut().accept(term).is_err() {
            self.say(&Answer::Busy);
            return;
        }
        *partner.serving.borrow_mut() = Some(self.wire.clone());
        self.term.set(Some(term));
        for wanted in &drives {
            self.say(&Answer::Twin { twin: wanted.twin, state: partner.news(wanted) });
        }
        self.say(&Answer::Opened);
    }

    /// Whether something that came over this connection may begin.
    fn begins(&self) -> bool {
        let Some(term) = self.term.get() else { return false };
        self.partner.is_serving(&self.wire) && self.partner.side.borrow_mut().begin(term).is_ok()
    }

    fn ends(&self, request: RequestId, result: Result<(), IoError>) {
        self.partner.side.borrow_mut().ended();
        self.partner.ended.notify();
        self.say(&Answer::Ended { request, result });
    }

    fn write(
        self: Rc<Self>,
        request: RequestId,
        twin: TwinId,
        offset_bytes: u64,
        durable: bool,
        data: &[u8],
    ) {
        let partner = self.partner.clone();
        let place = partner.twins.borrow().get(&twin).map(|twin| (twin.handle, twin.bytes));
        let block = BLOCK_BYTES as u64;
        let is_aligned = offset_bytes.is_multiple_of(block) && (data.len() as u64).is_multiple_of(block);
        let Some((handle, bytes)) = place.filter(|_| is_aligned && offset_bytes >= RECORD_BYTES as u64)
        else {
            self.wire.close();
            return;
        };
        if offset_bytes + data.len() as u64 > bytes || !self.begins() {
            self.wire.close();
            return;
        }
        let length = data.len();
        partner.under_way_bytes.set(partner.under_way_bytes.get() + length);
        self.wire.receives(partner.has_room());
        let data = vec![AlignedBuffer::copied_from(data).into_bytes()];
        let writing = partner.io.drive_write(handle, offset_bytes, data, durable);
        let io = partner.io.clone();
        io.spawn(async move {
            let result = writing.await;
            partner.under_way_bytes.set(partner.under_way_bytes.get() - length);
            self.wire.receives(partner.has_room());
            self.ends(request, result);
        });
    }

    fn flush(self: Rc<Self>, request: RequestId, twin: TwinId) {
        let partner = self.partner.clone();
        let handle = partner.twins.borrow().get(&twin).map(|twin| twin.handle);
        let Some(handle) = handle.filter(|_| self.begins()) else {
            self.wire.close();
            return;
        };
        let flushing = partner.io.drive_flush(handle);
        let io = partner.io.clone();
        io.spawn(async move {
            let result = flushing.await;
            self.ends(request, result);
        });
    }

    /// Both are in sync by this name: nothing is marked here.
    async fn record(self: Rc<Self>, twin: TwinId, synchrony: Synchrony) {
        if !self.begins() {
            return;
        }
        let partner = &self.partner;
        let next = partner.twins.borrow().get(&twin).map(|twin| {
            let marked = Bits::empty(twin.record.marked.end());
            let generation = twin.record.generation + 1;
            (twin.handle, Record { generation, synchrony, marked, ..twin.record.clone() })
        });
        if let Some((handle, record)) = next
            && record::write(&partner.io, handle, &record).await.is_ok()
            && let Some(twin) = partner.twins.borrow_mut().get_mut(&twin)
        {
            twin.record = record;
        }
        partner.side.borrow_mut().ended();
        partner.ended.notify();
    }
}
