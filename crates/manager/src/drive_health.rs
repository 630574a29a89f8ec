//! The health of drives, which the head finds out: it is shown with each drive, and a pool may be about to lose several to heat.

use api::{DriveHealth, DriveState, Health, KnownDrive, PoolStatus, Problem, ProblemFacts, Subject};

use crate::manager::Manager;

impl Manager {
    pub(crate) fn health_of_drive(&self, path: &str) -> Option<DriveHealth> {
        self.drive_health.borrow().get(path).cloned()
    }

    /// The drives of pools that are there, and the others that were found.
    pub(crate) fn drive_paths(&self) -> Vec<KnownDrive> {
        let others = self.known_drives();
        let state = self.state.borrow();
        let members = state.pools.iter().filter_map(|pool| pool.membership.as_ref()).flat_map(|m| &m.members);
        let there = members.filter(|member| member.state.is_readable() && !member.path.is_empty());
        let mut drives: Vec<KnownDrive> =
            there.map(|member| KnownDrive { path: member.path.clone(), is_used: true }).collect();
        for drive in others.into_iter().filter(|drive| drive.state != DriveState::Missing) {
            if !drives.iter().any(|known| known.path == drive.path) {
                let is_used = matches!(drive.state, DriveState::Spare | DriveState::Exported);
                drives.push(KnownDrive { path: drive.path, is_used });
            }
        }
        drives
    }
}

/// More of the pool's drives may soon shut themselves off than it can lose.
pub(crate) fn overheats(status: &PoolStatus) -> Option<Problem> {
    if status.health == Health::Offline {
        return None;
    }
    let is_near = |health: &DriveHealth| health.near_shutdown;
    let serves = |state| matches!(state, DriveState::Online | DriveState::Draining);
    let near = status
        .drives
        .iter()
        .filter(|drive| serves(drive.state) && drive.health.as_ref().is_some_and(is_near));
    let (drives, survivable) = (near.count() as u64, u64::from(status.failures_survivable));
    let facts = ProblemFacts::PoolOverheats { drives, survivable };
    (drives > survivable).then(|| Problem::new(Subject::pool(&status.name), facts))
}
