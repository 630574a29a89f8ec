//! What a lane has recently seen of its drives: errors, latencies, and missing space below a drive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use base::Nanos;

use crate::drives::evidence::{Evidence, Fault, Patience};
use crate::drives::latency::{Access, DriveLatency, DriveTotals, Latencies};

#[derive(Default)]
pub(crate) struct DriveHealth {
    /// Recent faults of each drive.
    evidence: RefCell<Evidence>,
    latencies: RefCell<Latencies>,
    /// A drive to be taken out.
    condemned: Cell<Option<u8>>,
    /// Drives below which there was no space for a write that is being retried.
    full: RefCell<BTreeSet<u8>>,
    /// When there was last no space below a drive.
    full_at: Cell<Option<Nanos>>,
}

impl DriveHealth {
    /// Adds a fault; `true` if the drive has reached the threshold of this kind.
    pub fn note_fault(&self, drive: u8, fault: Fault, now: Nanos, patience: &Patience) -> bool {
        self.evidence.borrow_mut().add(drive, fault, now, patience)
    }

    /// The drive is taken out: its faults no longer count if it comes back.
    pub fn forget_faults(&self, drive: u8) {
        self.evidence.borrow_mut().forget(drive);
    }

    /// For each drive: how many recent faults of each kind it has.
    pub fn recent_faults(&self, now: Nanos, window: Nanos) -> Vec<[u32; 3]> {
        self.evidence.borrow().recent(now, window)
    }

    /// Records a completed read or write: its bytes, and how long it took.
    pub fn note_latency(
        &self,
        drive: u8,
        (access, bytes): (Access, usize),
        took: Nanos,
        now: Nanos,
        patience: &Patience,
    ) {
        let mut latencies = self.latencies.borrow_mut();
        latencies.add(drive, access, took, now, patience);
        latencies.count(drive, access, bytes, took);
    }

    /// By drive index.
    pub fn totals(&self) -> Vec<DriveTotals> {
        self.latencies.borrow().totals().to_vec()
    }

    /// The drive no longer counts as slow: its latencies are measured anew.
    pub fn forget_latency(&self, drive: u8) {
        self.latencies.borrow_mut().forget(drive);
    }

    pub fn latencies(&self) -> Vec<DriveLatency> {
        self.latencies.borrow().all()
    }

    /// Marks a drive to be taken out by the next task that can wait for it.
    pub fn condemn(&self, drive: u8) {
        self.condemned.set(Some(drive));
    }

    pub fn take_condemned(&self) -> Option<u8> {
        self.condemned.take()
    }

    /// There was no space below a drive.
    pub fn note_full(&self, drive: u8, now: Nanos) {
        self.full.borrow_mut().insert(drive);
        self.full_at.set(Some(now));
    }

    /// There is space again.
    pub fn forget_full(&self, now: Nanos) {
        let mut full = self.full.borrow_mut();
        if !full.is_empty() {
            full.clear();
            self.full_at.set(Some(now));
        }
    }

    /// When there was last no space below a drive, as far as is known.
    pub fn full_at(&self) -> Option<Nanos> {
        self.full_at.get()
    }

    pub fn full(&self) -> Vec<u8> {
        self.full.borrow().iter().copied().collect()
    }
}
