//! The drives of a partner: opened, opened again after they were away, late or in error, and closed when this head takes over.
//!
//! What always holds: a drive that has failed takes nothing more before it was closed and opened again; each opening has a number of its
//! own, by which the owner sees that a drive may have lost what it had in its cache.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::Nanos;
use env::{DriveHandle, IoError};
use mirror::{Record, TwinId};
use task::{Io, Notify, race};

use crate::record::{self, DriveRecord};
use crate::twins::OfferedDrive;

/// Before a drive is tried again. The pause doubles with each attempt.
const PAUSE_MIN: Nanos = Nanos::from_millis(500);
const PAUSE_MAX: Nanos = Nanos::from_secs(8);
/// Between two looks at a drive that both heads see, and how long one may take.
const LOOK: Nanos = Nanos::from_secs(1);
const LOOK_TIME: Nanos = Nanos::from_secs(5);
/// A drive that was well for so long is tried again as at first.
const WELL: Nanos = Nanos::from_secs(60);

/// A drive that the owner has, too: its twin, which takes the owner's writes; or the same drive, which takes none from here.
pub(crate) struct Twin {
    pub handle: DriveHandle,
    pub bytes: u64,
    /// `None`: both heads see this drive.
    pub record: Option<Record>,
    /// Which opening of a drive of this head it was.
    pub opening: u64,
    place: usize,
}

/// Where a drive may be.
struct Place {
    path: String,
    is_opening: bool,
    /// It is no twin: that changes only with the owner's next connection.
    is_blank: bool,
    try_at: Nanos,
    pause: Nanos,
    opened_at: Nanos,
}

impl Place {
    fn new(path: String) -> Place {
        Place {
            path,
            is_opening: false,
            is_blank: false,
            try_at: Nanos::default(),
            pause: PAUSE_MIN,
            opened_at: Nanos::default(),
        }
    }
}

/// See the header of this file.
pub(crate) struct Drives {
    io: Io,
    places: RefCell<Vec<Place>>,
    twins: RefCell<BTreeMap<TwinId, Twin>>,
    /// Whether this head is a partner: otherwise nothing stays open.
    is_partner: Cell<bool>,
    openings: Cell<u64>,
    /// Drives that are being read.
    looks_at: RefCell<BTreeSet<DriveHandle>>,
    /// An attempt has ended.
    changed: Notify,
}

impl Drives {
    pub fn new(io: &Io, paths: Vec<String>) -> Rc<Drives> {
        Rc::new(Drives {
            io: io.clone(),
            places: RefCell::new(paths.into_iter().map(Place::new).collect()),
            twins: RefCell::default(),
            is_partner: Cell::default(),
            openings: Cell::default(),
            looks_at: RefCell::default(),
            changed: Notify::new(io),
        })
    }

    pub fn paths(&self) -> Vec<String> {
        self.places.borrow().iter().map(|place| place.path.clone()).collect()
    }

    /// Those that are not known yet are drives of this head from now on.
    pub fn add_paths(&self, paths: Vec<String>) {
        let known = self.paths();
        let new = paths.into_iter().filter(|path| !known.contains(path));
        self.places.borrow_mut().extend(new.map(Place::new));
    }

    /// The twins that are open.
    pub fn offered(&self) -> Vec<OfferedDrive> {
        let places = self.places.borrow();
        let offered = |(id, twin): (&TwinId, &Twin)| OfferedDrive {
            path: places[twin.place].path.clone(),
            bytes: twin.bytes,
            twin: Some(id.0),
        };
        self.twins.borrow().iter().map(offered).collect()
    }

    pub fn set_partner(&self, is_partner: bool) {
        self.is_partner.set(is_partner);
    }

    /// Drives that were opened so far.
    pub fn openings(&self) -> u64 {
        self.openings.get()
    }

    pub fn is_opening(&self) -> bool {
        self.places.borrow().iter().any(|place| place.is_opening)
    }

    pub async fn change(&self) {
        self.changed.wait().await;
    }

    pub fn with<T>(&self, twin: TwinId, what: impl FnOnce(&mut Twin) -> T) -> Option<T> {
        self.twins.borrow_mut().get_mut(&twin).map(what)
    }

    /// Begins to open the drives that are not open and may be tried; `all`: whether they failed lately or not.
    pub fn open_missing(self: &Rc<Self>, all: bool) {
        if !self.is_partner.get() {
            return;
        }
        let (now, twins) = (self.io.now(), self.twins.borrow());
        for (index, place) in self.places.borrow_mut().iter_mut().enumerate() {
            let is_open = || twins.values().any(|twin| twin.place == index);
            let may_try = all || !place.is_blank && now >= place.try_at;
            if !place.is_opening && may_try && !is_open() {
                place.is_opening = true;
                place.is_blank = false;
                place.try_at = now + place.pause;
                place.pause = Nanos(place.pause.0 * 2).min(PAUSE_MAX);
                self.io.spawn(self.clone().open(index, place.path.clone()));
            }
        }
    }

    async fn open(self: Rc<Self>, index: usize, path: String) {
        let is_blank = self.try_to_open(index, &path).await == Ok(false);
        let place = &mut self.places.borrow_mut()[index];
        (place.is_opening, place.is_blank) = (false, is_blank);
        place.opened_at = self.io.now();
        self.changed.notify();
    }

    /// Whether there is a drive that is a twin.
    async fn try_to_open(&self, index: usize, path: &str) -> Result<bool, IoError> {
        let (handle, info) = self.io.drive_open(path, true).await?;
        let record = record::read(&self.io, handle).await;
        match record {
            // unless this head takes over meanwhile
            Ok(Some(record)) if self.is_partner.get() && !self.twins.borrow().contains_key(&record.id()) => {
                self.openings.set(self.openings.get() + 1);
                let (opening, place) = (self.openings.get(), index);
                let id = record.id();
                let (bytes, record) = match record {
                    DriveRecord::Twin(record) => {
                        (info.size_bytes.min(record::end_bytes(&record)), Some(record))
                    }
                    DriveRecord::Shared(_) => (info.size_bytes, None),
                };
                self.twins.borrow_mut().insert(id, Twin { handle, bytes, record, opening, place });
                Ok(true)
            }
            record => {
                let _gone_already = self.io.drive_close(handle).await;
                record.map(|record| record.is_some())
            }
        }
    }

    /// The drive has failed something: it is closed, and opened again after a while.
    pub fn on_failed(self: &Rc<Self>, twin: TwinId, handle: DriveHandle) {
        let is_meant = self.twins.borrow().get(&twin).is_some_and(|twin| twin.handle == handle);
        if !is_meant {
            return;
        }
        let failed = self.twins.borrow_mut().remove(&twin).expect("just seen");
        let now = self.io.now();
        let place = &mut self.places.borrow_mut()[failed.place];
        if now.saturating_sub(place.opened_at) > WELL {
            place.pause = PAUSE_MIN;
        }
        place.try_at = place.try_at.max(now + PAUSE_MIN);
        // not free before it is closed
        place.is_opening = true;
        let (drives, index) = (self.clone(), failed.place);
        self.io.spawn(async move {
            let _gone_already = drives.io.drive_close(handle).await;
            drives.places.borrow_mut()[index].is_opening = false;
            drives.changed.notify();
        });
    }

    /// For ever: reads of drives that both heads see. Nothing is written to them from here, so nothing else would show that they are gone.
    pub async fn keep_looking(self: Rc<Self>) {
        loop {
            self.io.sleep(LOOK).await;
            let twins = self.twins.borrow();
            let shared: Vec<(TwinId, DriveHandle)> = twins
                .iter()
                .filter(|(_, twin)| twin.record.is_none())
                .map(|(&id, twin)| (id, twin.handle))
                .collect();
            drop(twins);
            for (id, handle) in shared {
                if self.looks_at.borrow_mut().insert(handle) {
                    self.io.spawn(self.clone().look_at(id, handle));
                }
            }
        }
    }

    async fn look_at(self: Rc<Self>, id: TwinId, handle: DriveHandle) {
        let is_open = self.twins.borrow().get(&id).is_some_and(|twin| twin.handle == handle);
        let reading = is_open.then(|| {
            let io = self.io.clone();
            self.io.spawn_join(async move { record::read(&io, handle).await })
        });
        if let Some(mut reading) = reading {
            match race(&mut reading, self.io.sleep(LOOK_TIME)).await {
                Ok(Some(Ok(Some(found)))) if found.id() == id => {}
                // it answers nothing, has failed, or is something else now
                _ => self.on_failed(id, handle),
            }
        }
        self.looks_at.borrow_mut().remove(&handle);
    }

    /// Closes all drives. Nothing is under way on them.
    pub async fn close_all(&self) {
        let twins = std::mem::take(&mut *self.twins.borrow_mut());
        for twin in twins.into_values() {
            let _gone_already = self.io.drive_close(twin.handle).await;
        }
    }
}
