//! Opens pools whose drives appear after the start, and devices of raw volumes that come back, without a command.
//!
//! Probing and opening a faulty drive may take long, so both are done outside the change lock. Only the result is
//! taken over under the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::{Nanos, PoolId, VolumeId};
use bytes::Bytes;
use catalog::VolumeKind;
use env::{DriveHandle, DriveInfo};

use shard::Stage;

use crate::manager::Manager;
use crate::pools::FoundPool;
use crate::state::{OpenAttempt, Pool, RawDevice};
use api::{CommandError, DeviceTrouble, PoolOffline, PoolStep, VolumeStep};

const TRY_EVERY: Nanos = Nanos::from_secs(5);

/// Whether opening a pool may go better than the last time. `before`: what was found in the previous round. While
/// drives appear one after the other, this waits.
fn is_worth_a_try(
    now: &BTreeSet<String>,
    before: Option<&BTreeSet<String>>,
    tried: Option<&OpenAttempt>,
) -> bool {
    let settled = before == Some(now);
    settled && tried.is_none_or(|tried| tried.in_use || tried.paths != *now)
}

impl Manager {
    /// Runs until the array stops.
    pub(crate) async fn watch_absent(self: Rc<Self>) {
        let mut before = BTreeMap::new();
        while self.context.stage.get() == Stage::Serving {
            self.context.io.sleep(TRY_EVERY).await;
            if !self.stopping.get() {
                before = self.try_pools_again(&before).await;
                self.try_raw_devices_again().await;
                self.watch_files().await;
            }
        }
    }

    /// Pools that were never opened, or were closed again.
    fn absent_pools(&self) -> BTreeSet<PoolId> {
        let state = self.state.borrow();
        let absent = state.pools.iter().filter(|pool| pool.offline.is_some() && pool.membership.is_none());
        absent.map(|pool| pool.id).filter(|&id| state.catalog.pool(id).is_some()).collect()
    }

    /// Tries to open absent pools. Returns what was found this time.
    async fn try_pools_again(
        &self,
        before: &BTreeMap<PoolId, BTreeSet<String>>,
    ) -> BTreeMap<PoolId, BTreeSet<String>> {
        if self.absent_pools().is_empty() {
            return BTreeMap::new();
        }
        self.look_at_drives().await;
        let absent = self.absent_pools();
        let (array, found) = (self.state.borrow().catalog.array(), self.found_pools());
        let ours = found.into_iter().filter(|(id, found)| found.array == array && absent.contains(id));
        let ours: BTreeMap<PoolId, FoundPool> = ours.collect();
        let seen: BTreeMap<PoolId, BTreeSet<String>> =
            ours.iter().map(|(id, found)| (*id, found.paths.iter().cloned().collect())).collect();
        let promising = |id: &PoolId| is_worth_a_try(&seen[id], before.get(id), self.tried.borrow().get(id));
        let due: BTreeMap<PoolId, FoundPool> = ours.into_iter().filter(|(id, _)| promising(id)).collect();
        // a running change may involve these drives: next time
        if !due.is_empty()
            && let Some(_lock) = self.changes.try_acquire(1)
            && !self.stopping.get()
        {
            // a pool that cannot be settled is closed again, with the reason
            let _ = self.open_pools_found(due).await;
            self.broadcast().await;
            self.trim_all().await;
        }
        seen
    }

    /// Opens these pools, which are not open, and adds them to the array.
    pub(crate) async fn open_pools_found(
        &self,
        found: BTreeMap<PoolId, FoundPool>,
    ) -> Result<Vec<PoolStep>, CommandError> {
        let mut steps = Vec::new();
        for (id, found) in found {
            self.forget_pool(id);
            self.claim_pool(id, &found).await;
            if self.state.borrow().is_pool_online(id) {
                steps.push(PoolStep::OpenPool { pool: found.name.clone() });
            }
        }
        if !steps.is_empty() || !self.unsettled.borrow().is_empty() {
            self.unsettled.borrow_mut().clear();
            self.name_missing();
            self.settle_pools().await?;
            let bytes = Bytes::from(self.state.borrow().catalog.encode());
            drop((self.parameters.save_state)(bytes));
            self.look_at_drives().await;
            self.tell_spaces().await;
        }
        // pools that were forgotten and could not be opened
        self.add_absent_pools();
        Ok(steps)
    }

    /// Closes pools that went offline while they were served, so that they can be opened anew.
    pub(crate) async fn close_failed_pools(&self) {
        let stats = self.lane_stats().await;
        let failed: Vec<(PoolId, PoolOffline)> = {
            let state = self.state.borrow();
            let lane_failed = |id: PoolId| stats.iter().any(|(pool, lane)| *pool == id && lane.failed);
            let why = |pool: &Pool| match &pool.offline {
                None if lane_failed(pool.id) => Some(PoolOffline::TooManyFailed),
                why => why.clone(),
            };
            let served = state.pools.iter().filter(|pool| pool.membership.is_some());
            served.filter_map(|pool| Some((pool.id, why(pool)?))).collect()
        };
        for (id, why) in failed {
            self.close_pool(id, why).await;
        }
    }

    /// Missing devices of raw volumes.
    fn absent_raw_devices(&self) -> Vec<(VolumeId, String, u64)> {
        let state = self.state.borrow();
        let absent = state.raw.iter().filter(|raw| raw.drive.is_err());
        let known = absent.filter_map(|raw| {
            let volume = state.catalog.volume(raw.volume)?;
            let VolumeKind::Raw { path } = &volume.backing else { return None };
            Some((volume.id, path.clone(), volume.size_bytes))
        });
        known.collect()
    }

    async fn try_raw_devices_again(&self) {
        let mut taken = Vec::new();
        for (volume, path, size_bytes) in self.absent_raw_devices() {
            if let Ok(drive) = self.open_raw_device(volume, &path, size_bytes).await {
                taken.push((volume, drive));
            }
        }
        if taken.is_empty() {
            return;
        }
        let lock = self.changes.try_acquire(1).filter(|_| !self.stopping.get());
        if lock.is_some() {
            for (volume, drive) in taken.drain(..) {
                let waits = |raw: &&mut RawDevice| raw.volume == volume && raw.drive.is_err();
                let taken_over =
                    self.state.borrow_mut().raw.iter_mut().find(waits).map(|raw| raw.take(Ok(drive.clone())));
                if taken_over.is_none() {
                    self.close_drive(drive.0).await;
                }
            }
            self.broadcast().await;
        }
        for (_, (handle, _)) in taken {
            self.close_drive(handle).await;
        }
    }

    /// Closes missing devices of raw volumes, and adopts those that are there. Must be called under the change
    /// lock. Returns what has changed.
    pub(crate) async fn renew_raw_devices(&self) -> Vec<VolumeStep> {
        self.check_raw_devices().await;
        let mut steps = Vec::new();
        for (volume, path, size_bytes) in self.absent_raw_devices() {
            let drive = self.open_raw_device(volume, &path, size_bytes).await;
            let mut state = self.state.borrow_mut();
            let name = state.catalog.volume(volume).map(|volume| volume.name.to_string()).unwrap_or_default();
            steps.push(match &drive {
                Ok(_) => VolumeStep::TakeDevice { volume: name, device: path },
                Err(trouble) => VolumeStep::MissDevice { volume: name, device: path, trouble: *trouble },
            });
            if let Some(raw) = state.raw.iter_mut().find(|raw| raw.volume == volume) {
                raw.take(drive);
            }
        }
        steps
    }

    async fn open_raw_device(
        &self,
        volume: VolumeId,
        path: &str,
        size_bytes: u64,
    ) -> Result<(DriveHandle, DriveInfo), DeviceTrouble> {
        let opened = self.open_and_probe(path).await;
        self.as_raw_device(opened, volume, size_bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_tried_when_its_drives_have_settled_and_are_others_than_before() {
        let paths = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let (one, two) = (paths(&["a"]), paths(&["a", "b"]));
        let tried = |paths: &BTreeSet<String>, in_use| Some(OpenAttempt { paths: paths.clone(), in_use });
        let table = [
            ("just seen", is_worth_a_try(&two, None, tried(&one, false).as_ref()), false),
            ("more are coming", is_worth_a_try(&two, Some(&one), tried(&one, false).as_ref()), false),
            ("settled", is_worth_a_try(&two, Some(&two), tried(&one, false).as_ref()), true),
            ("never tried", is_worth_a_try(&two, Some(&two), None), true),
            ("the same as then", is_worth_a_try(&two, Some(&two), tried(&two, false).as_ref()), false),
            ("somebody had one", is_worth_a_try(&two, Some(&two), tried(&two, true).as_ref()), true),
        ];
        for (what, found, expected) in table {
            assert_eq!(found, expected, "{what}");
        }
    }
}
