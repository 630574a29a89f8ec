//! The members of a pool: changed one at a time, recorded on the pool's drives, and known to every lane before anything
//! continues.

use base::PoolId;
use env::DriveHandle;
use pool::{Departure, DriveState, Membership, TooFewDrives};

use crate::drive_events;
use crate::manager::Manager;
use api::{EventFacts, PoolOffline, Subject};
use shard::{Answer, DriveUse, ShardCall};

impl Manager {
    /// Carries out a change of a pool's membership. When this ends, the change is recorded and every lane knows it. If
    /// too few drives are left to record it, the pool is offline.
    pub(crate) async fn alter<T>(
        &self,
        id: PoolId,
        change: impl AsyncFnOnce(&mut Membership) -> Result<T, TooFewDrives>,
    ) -> Result<T, TooFewDrives> {
        let recording = self.state.borrow_mut().pool_mut(id).map(|pool| pool.recording.clone());
        let _lock = recording.ok_or(TooFewDrives)?.acquire(1).await;
        let known = self.state.borrow_mut().pool_mut(id).and_then(|pool| pool.membership.clone());
        let before = known.ok_or(TooFewDrives)?;
        let mut membership = before.clone();
        let result = change(&mut membership).await;
        if result.is_ok() && membership.generation == before.generation {
            return result;
        }
        let mut events = drive_events::between(&before, &membership);
        {
            let mut state = self.state.borrow_mut();
            let pool = state.pool_mut(id).ok_or(TooFewDrives)?;
            pool.membership = Some(membership.clone());
            pool.keeper.on_record(&membership, self.context.io.now());
            if result.is_err() {
                let why = PoolOffline::TooManyFailed;
                if pool.offline.replace(why.clone()).is_none() {
                    events.push((Subject::pool(&pool.name), EventFacts::PoolFailed { why }));
                }
            }
        }
        events.into_iter().for_each(|(subject, facts)| self.record(subject, facts));
        self.problems_may_differ();
        if result.is_ok() {
            self.context.ask_all(|| ShardCall::Adopt(membership.clone())).await;
            self.wake_keeper.notify();
        }
        result
    }

    /// A lane has met a drive that does not answer, refuses writes or has too many errors: this is recorded on the other
    /// drives, and announced to all lanes; or the drive is kept. `false` if service cannot continue.
    pub(crate) async fn drive_failed(&self, id: PoolId, drive: u8, departure: Departure) -> bool {
        let io = &self.context.io;
        let taken_out = self.alter(id, async |membership| {
            if !membership.members[usize::from(drive)].state.is_readable() {
                // already recorded, and announced to all lanes of that time
                return if membership.is_serviceable() {
                    Ok(Some(membership.clone()))
                } else {
                    Err(TooFewDrives)
                };
            }
            self.set_leaving(id, drive, departure == Departure::TooManyErrors);
            let is_needed = async |membership: &Membership| {
                let lanes = self.drive_use(membership, drive, None).await;
                lanes.is_none_or(|lanes| lanes.iter().any(|lane| lane.needed))
            };
            let taken_out = membership.take_out(io, drive, departure, is_needed).await.map(|()| None);
            self.set_leaving(id, drive, false);
            taken_out
        });
        match taken_out.await {
            Ok(None) => true,
            Ok(Some(membership)) => {
                self.context.ask_all(|| ShardCall::Adopt(membership.clone())).await;
                true
            }
            Err(TooFewDrives) => false,
        }
    }

    /// From before a drive is taken out until this is known, what the pool says of itself does not count on the drive.
    fn set_leaving(&self, id: PoolId, drive: u8, leaving: bool) {
        let mut state = self.state.borrow_mut();
        if let Some(membership) = state.pool_mut(id).and_then(|pool| pool.membership.as_mut()) {
            membership.members[usize::from(drive)].leaving = leaving;
        }
    }

    /// How every lane of a pool uses a drive; `None` if some lane does not answer.
    pub(crate) async fn drive_use(
        &self,
        membership: &Membership,
        drive: u8,
        instead: Option<u32>,
    ) -> Option<Vec<DriveUse>> {
        let answers = self.context.ask_all(|| ShardCall::DriveUse(membership.pool, drive, instead)).await;
        let lanes = answers.into_iter().flat_map(|answer| match answer {
            Answer::DriveUse(lanes) => lanes,
            other => unreachable!("the answer to what is on a drive, not {other:?}"),
        });
        let lanes: Vec<DriveUse> = lanes.collect();
        (lanes.len() == usize::from(membership.lanes)).then_some(lanes)
    }

    /// Records that a drive is not needed any more, if this is so. Returns the handle that nobody uses now.
    pub(crate) async fn retire_if_empty(&self, id: PoolId, drive: u8) -> Option<DriveHandle> {
        let io = &self.context.io;
        let retired = self.alter(id, async |membership| {
            // every lane has known its state since before the lock was taken: nothing new is written to it
            let lanes = self.drive_use(membership, drive, None).await;
            if !lanes.is_some_and(|lanes| may_retire(membership, drive, &lanes)) {
                return Ok(None);
            }
            let handle = membership.members[usize::from(drive)].handle;
            membership.retire(io, drive).await.map(|()| handle)
        });
        // if this fails, the pool is offline and reports why
        let handle = retired.await.ok().flatten()?;
        let mut state = self.state.borrow_mut();
        let closing = state.pool_mut(id).is_some_and(|pool| pool.keeper.closing.contains(&handle));
        (!closing).then_some(handle)
    }
}

/// Whether the pool needs nothing on a drive, and afterwards no fewer drives are recorded as lost than the number of
/// columns that some block has lost.
fn may_retire(membership: &Membership, drive: u8, lanes: &[DriveUse]) -> bool {
    if lanes.iter().any(|lane| lane.segments > 0) {
        return false;
    }
    let worst = lanes.iter().map(|lane| lane.worst_exposed).max().unwrap_or(0);
    match membership.members[usize::from(drive)].state {
        DriveState::Draining => true,
        DriveState::Missing | DriveState::Failed => enough_online(membership) && worst < membership.lost(),
        DriveState::Online | DriveState::Removed => false,
    }
}

/// Whether enough drives are online for new segments to have all columns.
pub(crate) fn enough_online(membership: &Membership) -> bool {
    let online = membership.online().into_iter().filter(|&online| online).count();
    online > usize::from(membership.protection.parity())
}
