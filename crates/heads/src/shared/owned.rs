//! The shared drives of an owner: held when they are opened, and looked at again and again, because an administrator's tool may have
//! cleared their reservations.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::Nanos;
use env::{DriveHandle, IoError};
use mirror::TwinId;
use task::{Io, Notify};

use super::{ClaimError, ClaimKey, SharedRecord, claim};

/// Between two looks at the reservations.
const LOOK: Nanos = Nanos::from_secs(5);

struct Held {
    id: TwinId,
    bytes: u64,
}

/// See the header of this file.
pub(crate) struct SharedDrives {
    io: Io,
    key: ClaimKey,
    held: RefCell<BTreeMap<DriveHandle, Held>>,
    /// Those that the partner has not said it sees.
    unseen: RefCell<BTreeSet<TwinId>>,
    is_looking: Cell<bool>,
    /// Drives that are being looked at.
    busy: RefCell<Vec<DriveHandle>>,
    looked: Notify,
    /// An owner of a later term has a drive.
    lost: Box<dyn Fn()>,
}

impl SharedDrives {
    pub fn new(io: &Io, key: ClaimKey, lost: Box<dyn Fn()>) -> Rc<SharedDrives> {
        Rc::new(SharedDrives {
            io: io.clone(),
            key,
            held: RefCell::default(),
            unseen: RefCell::default(),
            is_looking: Cell::default(),
            busy: RefCell::default(),
            looked: Notify::new(io),
            lost,
        })
    }

    /// A drive with this record was opened: it is this owner's now. If a later owner has it, this does not return.
    pub async fn add(
        self: &Rc<Self>,
        handle: DriveHandle,
        record: &SharedRecord,
        bytes: u64,
    ) -> Result<(), IoError> {
        self.claim(handle).await?;
        self.held.borrow_mut().insert(handle, Held { id: record.drive, bytes });
        self.unseen.borrow_mut().insert(record.drive);
        if !self.is_looking.replace(true) {
            self.io.spawn(self.clone().keep_looking());
        }
        Ok(())
    }

    async fn claim(&self, handle: DriveHandle) -> Result<(), IoError> {
        match claim(&self.io, handle, self.key).await {
            Ok(()) => Ok(()),
            Err(ClaimError::Lost) => {
                (self.lost)();
                std::future::pending().await
            }
            Err(ClaimError::Stranger { .. }) => Err(IoError::Reserved),
            Err(ClaimError::Drive(error)) => Err(error),
        }
    }

    /// The drive is to be closed. Nothing is asked of it any more.
    pub async fn remove(&self, handle: DriveHandle) {
        if let Some(held) = self.held.borrow_mut().remove(&handle) {
            self.unseen.borrow_mut().remove(&held.id);
        }
        while self.busy.borrow().contains(&handle) {
            self.looked.wait().await;
        }
    }

    pub fn count(&self) -> usize {
        self.held.borrow().len()
    }

    pub fn unseen(&self) -> usize {
        self.unseen.borrow().len()
    }

    /// What the partner is to be asked for.
    pub fn wanted(&self) -> Vec<(TwinId, u64)> {
        self.held.borrow().values().map(|held| (held.id, held.bytes)).collect()
    }

    /// The partner has said which of them it sees.
    pub fn on_partner(&self, sees: impl Fn(TwinId) -> bool) {
        let all = self.wanted().into_iter().map(|(id, _)| id);
        *self.unseen.borrow_mut() = all.filter(|&id| !sees(id)).collect();
    }

    /// Makes sure that this owner holds its drives. If a later owner has one, this does not return.
    pub async fn hold_all(&self) {
        let handles: Vec<DriveHandle> = self.held.borrow().keys().copied().collect();
        for handle in handles {
            if self.held.borrow().contains_key(&handle) {
                self.busy.borrow_mut().push(handle);
                // a drive that does not answer is for the pool to notice
                let _known_to_the_pool = self.claim(handle).await;
                let mut busy = self.busy.borrow_mut();
                let at = busy.iter().position(|&other| other == handle).expect("it was put there");
                busy.swap_remove(at);
                self.looked.notify();
            }
        }
    }

    async fn keep_looking(self: Rc<Self>) {
        loop {
            self.io.sleep(LOOK).await;
            self.hold_all().await;
        }
    }
}
