//! What the keeper remembers of a pool between two of its rounds. Nothing of this survives a restart.

use std::collections::{BTreeMap, BTreeSet};

use api::KeptInService;
use base::{DriveId, Nanos};
use env::DriveHandle;
use pool::{DriveErrors, DriveState, Membership};

use crate::repair::Repair;

/// How long a drive's errors are shown.
const ERRORS_SHOWN: Nanos = Nanos::from_secs(3600);
/// How long a missing drive may come back before the pool retires it and a spare joins in its place.
const MISSING_PATIENCE: Nanos = Nanos::from_secs(30);
/// How often drives are checked for a missing one.
const LOOK_EVERY: Nanos = Nanos::from_secs(5);

#[derive(Default)]
pub(crate) struct KeeperState {
    pub(crate) repair: Repair,
    /// Handles that are being closed.
    pub(crate) closing: BTreeSet<DriveHandle>,
    /// Paths of drives that left the pool because they were slow.
    pub(crate) left: BTreeSet<String>,
    /// A scrub was seen running; whether it was told to stop.
    pub(crate) scrubbing: Option<bool>,
    /// Number of wrong labels that the scrub found and wrote anew.
    pub(crate) labels_rewritten: u64,
    /// Drives that are missing, and since when.
    pub(crate) missing: BTreeMap<DriveId, Nanos>,
    /// A slow drive that the pool cannot do without.
    pub(crate) slow_stays: Option<DriveId>,
    /// Drives with too many errors that stay in service.
    pub(crate) kept: BTreeMap<DriveId, KeptInService>,
    /// When a spare was last needed but could not join.
    pub(crate) spare_failed: Option<Nanos>,
    /// Blocks in use at the last check, if the pool was so full that volumes leave the bin.
    pub(crate) live_when_full: Option<u64>,
    /// Volumes that had to leave the bin because the pool was full, and when, by the wall clock.
    pub(crate) gave_way: Vec<(String, u64)>,
    looked: Option<Nanos>,
    /// Recorded errors of each drive, and when they were recorded.
    recorded: (Vec<DriveErrors>, Nanos),
    /// Errors of each drive, and when they last increased.
    seen: Vec<(DriveErrors, Option<Nanos>)>,
}

impl KeeperState {
    /// A label was written.
    pub(crate) fn on_record(&mut self, membership: &Membership, now: Nanos) {
        self.recorded = (membership.members.iter().map(|member| member.counted).collect(), now);
    }

    pub(crate) fn errors_due(&self, membership: &Membership, now: Nanos, every: Nanos) -> bool {
        let on_record = |index: usize| self.recorded.0.get(index).copied().unwrap_or_default();
        let changed = membership.members.iter().enumerate().any(|(index, m)| m.counted != on_record(index));
        changed && now.saturating_sub(self.recorded.1) >= every
    }

    pub(crate) fn see_errors(&mut self, drive: usize, counted: DriveErrors, now: Nanos) {
        if self.seen.len() <= drive {
            self.seen.resize(drive + 1, Default::default());
        }
        if self.seen[drive].0 != counted {
            self.seen[drive] = (counted, Some(now));
        }
    }

    /// Whether a drive has made errors recently; `counted` are all since the start.
    pub(crate) fn errs(&self, drive: usize, counted: DriveErrors, now: Nanos) -> bool {
        let (seen, at) = self.seen.get(drive).copied().unwrap_or_default();
        seen != counted || at.is_some_and(|at| now.saturating_sub(at) < ERRORS_SHOWN)
    }

    /// Records which drives are missing, and since when.
    pub(crate) fn see_missing(&mut self, membership: &Membership, now: Nanos) {
        let missing = membership.members.iter().filter(|member| member.state == DriveState::Missing);
        let gone: Vec<DriveId> = missing.map(|member| member.id).collect();
        self.missing.retain(|id, _| gone.contains(id));
        for id in gone {
            self.missing.entry(id).or_insert(now);
        }
    }

    /// Whether a missing drive may still come back.
    pub(crate) fn is_awaited(&self, id: DriveId, now: Nanos) -> bool {
        self.missing.get(&id).is_none_or(|&since| now.saturating_sub(since) < MISSING_PATIENCE)
    }

    pub(crate) fn may_look(&mut self, now: Nanos) -> bool {
        let may = self.looked.is_none_or(|looked| now.saturating_sub(looked) >= LOOK_EVERY);
        if may {
            self.looked = Some(now);
        }
        may
    }
}
