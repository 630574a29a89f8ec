//! Drives with more errors, over all lanes, than their pool's settings allow: they are taken out, or kept for a reason
//! that `status` gives.

use crate::manager::Manager;
use api::KeptInService;
use pool::{Departure, DriveState, LaneStats, Membership, Patience};

/// The decision about a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Stays,
    Out,
    Kept(KeptInService),
}

impl Manager {
    /// Takes out a drive with too many errors: one in a round, because each change affects which of the others are
    /// needed.
    pub(crate) async fn check_error_thresholds(&self, membership: &Membership, lanes: &[&LaneStats]) {
        let id = membership.pool;
        let patience = {
            let state = self.state.borrow();
            shard::effective(&state.catalog.pool(id).map(|entry| entry.settings).unwrap_or_default()).1
        };
        let verdicts: Vec<Verdict> =
            (0..membership.members.len()).map(|index| verdict(membership, index, lanes, &patience)).collect();
        if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
            pool.keeper.kept.clear();
            for (member, verdict) in membership.members.iter().zip(&verdicts) {
                if let Verdict::Kept(why) = *verdict {
                    pool.keeper.kept.insert(member.id, why);
                }
            }
        }
        if let Some(index) = verdicts.iter().position(|&verdict| verdict == Verdict::Out) {
            // if it cannot be recorded, the pool is offline and reports why
            self.drive_failed(id, index as u8, Departure::TooManyErrors).await;
        }
    }
}

fn verdict(membership: &Membership, index: usize, lanes: &[&LaneStats], patience: &Patience) -> Verdict {
    let recent = |kind: usize| -> u32 {
        lanes.iter().filter_map(|lane| lane.recent_faults.get(index)).map(|faults| faults[kind]).sum()
    };
    let limits = [patience.write_errors, patience.read_errors, patience.checksum_errors];
    let too_many = limits.iter().enumerate().any(|(kind, &limit)| recent(kind) >= limit.max(1));
    if !too_many || membership.members[index].state != DriveState::Online {
        return Verdict::Stays;
    }
    if !membership.can_spare_one() {
        return Verdict::Kept(KeptInService::NoneToSpare);
    }
    let needed = lanes.iter().any(|lane| lane.needs(index as u8));
    if needed { Verdict::Kept(KeptInService::Needed) } else { Verdict::Out }
}
