//! Drives that are much slower than their siblings: they are emptied if the pool can do without them. They keep their
//! data until it is elsewhere, so no data is ever less protected. Meanwhile they are read only if there is no other
//! way.

use base::Nanos;
use pool::{DriveState, LaneStats, Member, Membership};

use crate::manager::Manager;
use api::{Problem, ProblemFacts, Subject};

impl Manager {
    /// Begins to empty a slow drive: one at a time, and none while the pool has another problem.
    pub(crate) async fn empty_slow_drives(&self, membership: &Membership, lanes: &[&LaneStats]) {
        let members = || membership.members.iter().enumerate();
        let slow = |(index, member): (usize, &Member)| {
            let may = member.state.is_readable() && !member.slow;
            slow_factor(lanes, index).filter(|_| may).map(|factor| (factor, index))
        };
        let found = members().filter_map(slow).max();
        if found.is_none()
            && let Some(pool) = self.state.borrow_mut().pool_mut(membership.pool)
        {
            pool.keeper.slow_stays = None;
        }
        let Some((_, index)) = found else { return };
        let in_order = |member: &Member| matches!(member.state, DriveState::Online | DriveState::Removed);
        let slow = &membership.members[index];
        if !members().all(|(other, member)| other == index || in_order(member)) {
            return;
        }
        let stays = in_order(slow) && self.check_removable(membership, index, None).await.is_err();
        if let Some(pool) = self.state.borrow_mut().pool_mut(membership.pool) {
            pool.keeper.slow_stays = stays.then_some(slow.id);
        }
        if stays {
            return;
        }
        let io = &self.context.io;
        // if this fails, the pool is offline and reports why
        let _ = self
            .alter(membership.pool, async |membership| {
                match membership.members[index].state.is_readable() {
                    true => membership.drain_slow(io, index as u8).await,
                    // it has failed meanwhile
                    false => Ok(()),
                }
            })
            .await;
    }
}

/// How many times slower than its siblings a drive is, if it has been for too long.
fn slow_factor(lanes: &[&LaneStats], drive: usize) -> Option<u32> {
    lanes.iter().filter_map(|lane| lane.drive_latency.get(drive)?.slow).max()
}

/// Median latencies of a drive's reads and writes in microseconds, from the lane that finds it slowest.
pub(crate) fn latency_us(lanes: &[&LaneStats], drive: usize) -> [Option<u64>; 2] {
    let latencies = || lanes.iter().filter_map(|lane| lane.drive_latency.get(drive));
    let us = |time: Nanos| time.0 / 1000;
    [latencies().filter_map(|l| l.read).max().map(us), latencies().filter_map(|l| l.write).max().map(us)]
}

/// The problem of a slow drive.
pub(crate) fn problem(member: &Member, lanes: &[&LaneStats], index: usize) -> Option<Problem> {
    let factor = slow_factor(lanes, index);
    if !member.state.is_readable() || factor.is_none() && !member.slow {
        return None;
    }
    let facts = ProblemFacts::DriveSlow { factor, emptying: member.slow };
    Some(Problem::new(Subject::drive(&member.path), facts))
}
