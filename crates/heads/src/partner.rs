//! The partner's drives: they take writes of one owner, in one term, over one connection.
//!
//! What always holds: what came over an earlier connection has ended before a later one is opened; a drive that is given back to this
//! head ([`Partner::hand_back`]) is written to by nobody else any more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, Nanos};
use bytes::Bytes;
use env::{DriveHandle, IoError};
use mirror::{
    Answer, Ask, Bits, RECORD_BYTES, Record, RequestId, Side, Synchrony, TwinId, TwinNews, WantedTwin,
};
use pair::Term;
use task::{Io, Notify, race};

use crate::partner_drives::{Drives, Twin};
use crate::record;
use crate::twins::OfferedDrive;
use crate::wire::Wire;

/// Bytes of writes that are under way. Nothing more is received meanwhile.
const UNDER_WAY_BYTES_MAX: usize = 32 << 20;
/// The owner is answered after this time, whether all drives are open or not.
const OPEN_TIME: Nanos = Nanos::from_millis(100);
/// How often a record is tried, and the pause after each time.
const RECORD_TRIES: u32 = 4;
const RECORD_PAUSE: Nanos = Nanos::from_millis(20);
/// How often the partner looks whether a drive is to be tried again.
const LOOK: Nanos = Nanos::from_millis(100);

/// See the header of this file.
pub struct Partner {
    io: Io,
    drives: Rc<Drives>,
    side: RefCell<Side>,
    /// The term of which this head accepts writes; it decides that elsewhere.
    accepts: Cell<Option<Term>>,
    /// The connection that is open.
    serving: RefCell<Option<Rc<Wire>>>,
    /// The newest connection that asked to be opened.
    serial: Cell<u64>,
    ended: Notify,
    under_way_bytes: Cell<usize>,
    /// Drives that had been opened when the owner was told of them.
    told: Cell<u64>,
}

impl Partner {
    /// With the drives at these paths, of which those that have a record are twins.
    pub fn new(io: &Io, paths: Vec<String>) -> Rc<Partner> {
        let partner = Rc::new(Partner {
            io: io.clone(),
            drives: Drives::new(io, paths),
            side: RefCell::default(),
            accepts: Cell::default(),
            serving: RefCell::default(),
            serial: Cell::default(),
            ended: Notify::new(io),
            under_way_bytes: Cell::default(),
            told: Cell::default(),
        });
        io.spawn(partner.clone().keep_opening());
        io.spawn(partner.drives.clone().keep_looking());
        partner
    }

    /// For ever: tries the drives that are not open. When one is, the owner is to ask anew: its connection is ended.
    async fn keep_opening(self: Rc<Self>) {
        loop {
            let _either = race(self.drives.change(), self.io.sleep(LOOK)).await;
            self.drives.open_missing(false);
            if self.serving.borrow().is_some() && self.told.get() != self.drives.openings() {
                self.close_connection();
            }
        }
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.drives.paths()
    }

    /// From now on these are drives of this head, too.
    pub(crate) fn set_paths(&self, paths: Vec<String>) {
        self.drives.add_paths(paths);
    }

    /// The twins that are open.
    pub(crate) fn offered(&self) -> Vec<OfferedDrive> {
        self.drives.offered()
    }

    /// From now on writes of this term are accepted, and of no other.
    pub fn accept(&self, term: Option<Term>) {
        self.drives.set_partner(term.is_some());
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
        while !self.side.borrow().is_quiet() {
            self.ended.wait().await;
        }
        while self.drives.is_opening() {
            self.drives.change().await;
        }
        self.drives.close_all().await;
    }

    /// Opens the drives that are not open. Those that are late are announced when they are there.
    async fn open_drives(&self) {
        self.drives.open_missing(true);
        let all = async {
            while self.drives.is_opening() {
                self.drives.change().await;
            }
        };
        let _either = race(all, self.io.sleep(OPEN_TIME)).await;
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
        let there = |twin: &mut Twin| {
            let (opening, record) = (twin.opening, twin.record.clone());
            (twin.bytes >= wanted.bytes).then_some(TwinNews::There { opening, record })
        };
        self.drives.with(wanted.twin, there).flatten().unwrap_or(TwinNews::Absent)
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
        partner.open_drives().await;
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
        partner.told.set(partner.drives.openings());
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

    fn ends(&self, request: RequestId, twin: TwinId, handle: DriveHandle, result: Result<(), IoError>) {
        if result.is_err() {
            self.partner.drives.on_failed(twin, handle);
        }
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
        let block = BLOCK_BYTES as u64;
        let is_aligned = offset_bytes.is_multiple_of(block) && (data.len() as u64).is_multiple_of(block);
        if !is_aligned || offset_bytes < RECORD_BYTES as u64 {
            self.wire.close();
            return;
        }
        let found = partner.drives.with(twin, |twin| (twin.handle, twin.bytes, twin.record.is_some()));
        let Some((handle, bytes, is_twin)) = found else {
            return self.lacks_it(request);
        };
        if offset_bytes + data.len() as u64 > bytes || !is_twin || !self.begins() {
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
            self.ends(request, twin, handle, result);
        });
    }

    /// A drive that has failed is not there until it was opened again.
    fn lacks_it(&self, request: RequestId) {
        self.say(&Answer::Ended { request, result: Err(IoError::Gone) });
    }

    fn flush(self: Rc<Self>, request: RequestId, twin: TwinId) {
        let partner = self.partner.clone();
        let Some(handle) = partner.drives.with(twin, |twin| twin.handle) else {
            return self.lacks_it(request);
        };
        if !self.begins() {
            self.wire.close();
            return;
        }
        let flushing = partner.io.drive_flush(handle);
        let io = partner.io.clone();
        io.spawn(async move {
            let result = flushing.await;
            self.ends(request, twin, handle, result);
        });
    }

    /// Both are in sync by this name: nothing is marked here.
    async fn record(self: Rc<Self>, twin: TwinId, synchrony: Synchrony) {
        if !self.begins() {
            return;
        }
        let partner = &self.partner;
        let next = partner.drives.with(twin, |twin| {
            let record = twin.record.as_ref()?;
            let marked = Bits::empty(record.marked.end());
            let generation = record.generation + 1;
            Some((twin.handle, Record { generation, synchrony, marked, ..record.clone() }))
        });
        if let Some((handle, record)) = next.flatten() {
            match self.write_record(twin, handle, &record).await {
                Ok(()) => drop(partner.drives.with(twin, |twin| twin.record = Some(record))),
                Err(_) => partner.drives.on_failed(twin, handle),
            }
        }
        partner.side.borrow_mut().ended();
        partner.ended.notify();
    }

    /// Tries more than once: a drive without the newest synchrony is copied as a whole.
    async fn write_record(&self, twin: TwinId, handle: DriveHandle, record: &Record) -> Result<(), IoError> {
        let partner = &self.partner;
        let mut result = record::write(&partner.io, handle, record).await;
        for _ in 1..RECORD_TRIES {
            if result.is_ok() {
                break;
            }
            partner.io.sleep(RECORD_PAUSE).await;
            // something else may have failed meanwhile
            if partner.drives.with(twin, |twin| twin.handle) != Some(handle) {
                return Err(IoError::Gone);
            }
            result = record::write(&partner.io, handle, record).await;
        }
        result
    }
}
