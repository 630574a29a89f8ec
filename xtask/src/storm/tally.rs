//! What the storm's sessions share: when it is over, the ledgers of common blocks, and counts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use wire::iscsi::TaskManagementFunction;

use super::content::{Common, Place};
use super::plan;

#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Of blocks and of commands.
#[derive(Default)]
pub struct Tally {
    pub written: Count,
    pub checked: Count,
    pub exchanged: Count,
    pub miscompares: Count,
    pub busy: Count,
    pub attentions: Count,
    /// Commands that were ended without an answer, by functions of their own session or with it.
    pub ended: Count,
    /// Commands that another session's function ended: TASK ABORTED.
    pub ended_by_others: Count,
    pub drops: Count,
    aborts: Count,
    abort_sets: Count,
    unit_resets: Count,
    target_resets: Count,
}

impl Tally {
    pub fn function(&self, function: TaskManagementFunction) {
        match function {
            TaskManagementFunction::AbortTask => self.aborts.add(1),
            TaskManagementFunction::AbortTaskSet | TaskManagementFunction::ClearTaskSet => {
                self.abort_sets.add(1)
            }
            TaskManagementFunction::LogicalUnitReset => self.unit_resets.add(1),
            _ => self.target_resets.add(1),
        }
    }

    /// In words.
    pub fn lines(&self) -> Vec<String> {
        vec![
            format!(
                "{} blocks written, {} read and right, {} exchanged, {} miscompares",
                self.written.get(),
                self.checked.get(),
                self.exchanged.get(),
                self.miscompares.get()
            ),
            format!(
                "{} ABORT TASK, {} ABORT or CLEAR TASK SET, {} LUN RESET, {} target resets, {} sessions dropped or replaced",
                self.aborts.get(),
                self.abort_sets.get(),
                self.unit_resets.get(),
                self.target_resets.get(),
                self.drops.get()
            ),
            format!(
                "{} commands ended without an answer, {} with TASK ABORTED, {} unit attentions, {} times busy",
                self.ended.get(),
                self.ended_by_others.get(),
                self.attentions.get(),
                self.busy.get()
            ),
        ]
    }
}

/// See the module's words.
pub struct Shared {
    pub address: SocketAddr,
    pub target: String,
    pub tally: Tally,
    over: AtomicBool,
    common: BTreeMap<Place, Mutex<Common>>,
    /// What each exchanged block held when somebody last looked.
    seen: Mutex<BTreeMap<Place, u64>>,
}

impl Shared {
    pub fn new(address: SocketAddr, target: String) -> Shared {
        let common = plan::common_blocks().map(|place| (place, Mutex::default())).collect();
        let (tally, over, seen) = (Tally::default(), AtomicBool::new(false), Mutex::default());
        Shared { address, target, tally, over, common, seen }
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn common(&self, place: Place) -> MutexGuard<'_, Common> {
        self.common[&place].lock().expect("nobody panics with it")
    }

    pub fn last_seen(&self, place: Place) -> Option<u64> {
        self.seen.lock().expect("nobody panics with it").get(&place).copied()
    }

    pub fn saw(&self, place: Place, version: u64) {
        self.seen.lock().expect("nobody panics with it").insert(place, version);
    }

    pub fn forget(&self, place: Place) {
        self.seen.lock().expect("nobody panics with it").remove(&place);
    }
}
