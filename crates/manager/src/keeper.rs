//! The keeper of the pools: it looks every second while it has work, and otherwise every five seconds. It removes
//! drives without segments from their pool, takes missing drives back, lets spares join, records errors, begins and
//! ends scrubs, takes scheduled snapshots, and empties the bin.
//!
//! It must not hold the change lock while it holds a pool's lock, and it must hold neither while it waits.

use std::rc::Rc;

use crate::manager::Manager;
use crate::members::enough_online;
use crate::probed::Probed;
use api::Subject;
use base::{DriveId, Nanos, PoolId};
use pool::{Content, DriveState, LaneStats, Membership};
use task::race;

const BUSY: Nanos = Nanos::from_secs(1);
const IDLE: Nanos = Nanos::from_secs(5);
/// Counted errors are recorded this often, and at an orderly stop.
const ERRORS_RECORDED_EVERY: Nanos = Nanos::from_secs(600);

impl Manager {
    /// Runs until the array stops.
    pub(crate) async fn keep(self: Rc<Self>) {
        let mut pause = BUSY;
        loop {
            // whichever comes first
            let _ = race(self.context.io.sleep(pause), self.wake_keeper.wait()).await;
            let _round = self.keeping.acquire(1).await;
            if self.stopping.get() {
                return;
            }
            pause = if self.keep_pools().await { BUSY } else { IDLE };
            self.problems_may_differ();
        }
    }

    /// Looks after every pool once; returns whether the next round should follow soon.
    async fn keep_pools(self: &Rc<Self>) -> bool {
        self.watch_clock().await;
        let stats = self.lane_stats().await;
        let mut busy = false;
        let online = self.state.borrow().online();
        for membership in online {
            let id = membership.pool;
            let lanes: Vec<&LaneStats> =
                stats.iter().filter(|(pool, _)| *pool == id).map(|(_, stats)| stats).collect();
            busy |= self.take_stock(id, &lanes);
            self.release_handles(&membership);
            self.remember_drives(id).await;
            // a loss is recorded before the pool may have repaired it
            self.keep_spares(id).await;
            self.retire_drives(&membership).await;
            self.empty_slow_drives(&membership, &lanes).await;
            self.check_error_thresholds(&membership, &lanes).await;
            self.take_back_drives(id).await;
            self.keep_scrubbing(id, &lanes).await;
            self.record_errors(id, ERRORS_RECORDED_EVERY).await;
        }
        if !self.leftover.borrow().is_empty() {
            let _lock = self.changes.acquire(1).await;
            self.drop_leftover().await;
        }
        self.see_to_spares().await;
        self.keep_schedules().await;
        self.forget_copied().await;
        self.keep_bin(&stats).await || busy
    }

    /// Records the progress of repairs and the errors; returns whether work is going on.
    pub(crate) fn take_stock(&self, id: PoolId, lanes: &[&LaneStats]) -> bool {
        let now = self.context.io.now();
        let mut state = self.state.borrow_mut();
        let Some(pool) = state.pool_mut(id) else { return false };
        let Some(membership) = pool.membership.as_mut() else { return false };
        pool.keeper.see_missing(membership, now);
        for (index, member) in membership.members.iter_mut().enumerate() {
            let of_lanes = lanes.iter().filter_map(|lane| lane.counters.drive_errors.get(index));
            member.counted = of_lanes.fold(pool::DriveErrors::default(), |sum, errors| sum.plus(*errors));
            pool.keeper.see_errors(index, member.counted, now);
        }
        let lost = membership.lost() > 0;
        let drains = membership.members.iter().any(|member| member.state == DriveState::Draining);
        if !lost {
            pool.unusable.clear();
        }
        let (repairs, event) = pool.keeper.repair.sample(now, lanes, drains);
        if let Some(facts) = event {
            self.context.report(Subject::pool(&pool.name), facts);
        }
        repairs
            || drains
            || lost && !pool.keeper.repair.is_stuck()
            || lanes.iter().any(|lane| lane.scrub.running)
    }

    /// Closes the handles of drives that are out, so that another drive in their place can be opened.
    fn release_handles(self: &Rc<Self>, membership: &Membership) {
        for (index, member) in membership.members.iter().enumerate() {
            let Some(handle) = member.handle.filter(|_| !member.state.is_readable()) else { continue };
            let id = membership.pool;
            let fresh =
                self.state.borrow_mut().pool_mut(id).is_some_and(|pool| pool.keeper.closing.insert(handle));
            if !fresh {
                continue;
            }
            let manager = self.clone();
            self.context.io.spawn(async move {
                // this ends when all operations on the drive have ended: no old write can reach it later
                manager.close_drive(handle).await;
                manager.forget_handle(id, index, handle).await;
            });
        }
    }

    async fn forget_handle(&self, id: PoolId, index: usize, handle: env::DriveHandle) {
        let recording = self.state.borrow_mut().pool_mut(id).map(|pool| pool.recording.clone());
        let Some(recording) = recording else { return };
        let _lock = recording.acquire(1).await;
        let mut state = self.state.borrow_mut();
        let Some(pool) = state.pool_mut(id) else { return };
        pool.keeper.closing.remove(&handle);
        let member = pool.membership.as_mut().and_then(|membership| membership.members.get_mut(index));
        if let Some(member) = member.filter(|member| member.handle == Some(handle)) {
            member.handle = None;
        }
        self.wake_keeper.notify();
    }

    async fn retire_drives(self: &Rc<Self>, membership: &Membership) {
        let io = &self.context.io;
        for (index, member) in membership.members.iter().enumerate() {
            match member.state {
                // the remaining drives could not hold all columns of a segment: the drive is needed
                DriveState::Draining if !enough_online(membership) => {
                    let kept = self.alter(membership.pool, async |membership| {
                        match membership.members[index].state {
                            DriveState::Draining => membership.keep(io, index as u8).await,
                            _ => Ok(()),
                        }
                    });
                    let _ = kept.await;
                }
                // it may be back in a moment
                DriveState::Missing if self.is_awaited(membership.pool, member.id) => {}
                DriveState::Missing | DriveState::Failed | DriveState::Draining => {
                    if let Some(handle) = self.retire_if_empty(membership.pool, index as u8).await {
                        let mut state = self.state.borrow_mut();
                        let Some(pool) = state.pool_mut(membership.pool) else { continue };
                        if member.slow {
                            pool.keeper.left.insert(member.path.clone());
                        }
                        if pool.keeper.closing.contains(&handle) {
                            // already being closed: closed twice, the handle could belong to another drive by then
                            continue;
                        }
                        let manager = self.clone();
                        io.spawn(async move { manager.close_drive(handle).await });
                    }
                }
                DriveState::Online | DriveState::Removed => {}
            }
        }
    }

    fn is_awaited(&self, pool: PoolId, drive: DriveId) -> bool {
        let now = self.context.io.now();
        self.state.borrow_mut().pool_mut(pool).is_some_and(|pool| pool.keeper.is_awaited(drive, now))
    }

    /// Checks whether missing drives are back.
    async fn take_back_drives(&self, id: PoolId) {
        let now = self.context.io.now();
        {
            let mut state = self.state.borrow_mut();
            let Some(pool) = state.pool_mut(id) else { return };
            let Some(membership) = &pool.membership else { return };
            let waits =
                |member: &pool::Member| member.state == DriveState::Missing && member.handle.is_none();
            if !membership.members.iter().any(waits) || !pool.keeper.may_look(now) {
                return;
            }
        }
        self.look_at_drives().await;
        for (index, path) in self.returned_drives(id) {
            self.take_back_drive(id, index, &path).await;
        }
    }

    /// Missing members whose label was seen, with the path where it was seen.
    fn returned_drives(&self, id: PoolId) -> Vec<(usize, String)> {
        let state = self.state.borrow();
        let Some(membership) = state.online_pool(id) else { return Vec::new() };
        let here = |(index, member): (usize, &pool::Member)| {
            let waits = member.state == DriveState::Missing && member.handle.is_none();
            let drive = state.drives.iter().find(|drive| drive.is(id, member.id)).filter(|_| waits)?;
            Some((index, drive.path.clone()))
        };
        membership.members.iter().enumerate().filter_map(here).collect()
    }

    async fn take_back_drive(&self, id: PoolId, index: usize, path: &str) {
        // the process that uses it may close it before the next round
        let Ok(Probed { handle, info, content }) = self.open_and_probe(path).await else { return };
        if self.forget_twin(handle).await.is_err() {
            return self.close_drive(handle).await;
        }
        let io = &self.context.io;
        let taken = self.alter(id, async |membership| {
            let Membership { pool, chunk_bytes, .. } = *membership;
            let member = &mut membership.members[index];
            let same =
                matches!(&content, Content::Member(label) if label.pool == pool && label.drive == member.id);
            let large = info.size_bytes >= pool::LABEL_REGION_BYTES + u64::from(member.chunks) * chunk_bytes;
            if !same || !large || member.state != DriveState::Missing || member.handle.is_some() {
                return Ok(false);
            }
            membership.take_back(io, index as u8, handle, path).await.map(|()| true)
        });
        if taken.await != Ok(true) {
            self.close_drive(handle).await;
            return;
        }
        let mut state = self.state.borrow_mut();
        state.drives.retain(|drive| drive.path != path);
        if let Some(pool) = state.pool_mut(id) {
            pool.infos.retain(|known| known.path != info.path);
            pool.infos.push(info);
        }
    }

    /// Records the errors counted since the start, if they have changed and the last record is old enough.
    pub(crate) async fn record_errors(&self, id: PoolId, every: Nanos) {
        let now = self.context.io.now();
        let due = self.state.borrow_mut().pool_mut(id).is_some_and(|pool| {
            pool.membership.as_ref().is_some_and(|membership| pool.keeper.errors_due(membership, now, every))
        });
        if due {
            let io = &self.context.io;
            // if this fails, the pool is offline and reports why
            let _ = self.alter(id, async |membership| membership.write_labels(io).await).await;
        }
    }
}
