//! What the administrator is shown of pools and their drives.

use base::{BLOCK_BYTES, PoolId};
use pool::{LaneStats, Member};

use super::Array;
use super::pools::Pool;
use crate::command::{DriveContent, DriveErrors, DriveState, DriveStatus, Health, PoolStatus};
use crate::message::{Answer, Call};

impl Array {
    pub(super) async fn pool_statuses(&self) -> Vec<PoolStatus> {
        let answers = self.context.ask_all(|| Call::LaneStats).await;
        let mut stats = Vec::new();
        for answer in answers {
            let Answer::LaneStats(of_shard) = answer else {
                unreachable!("the answer to a question for stats")
            };
            stats.extend(of_shard);
        }
        let of = |id: PoolId| stats.iter().filter(move |(pool, _)| *pool == id).map(|(_, stats)| stats);
        self.state.borrow().pools.iter().map(|pool| status(pool, &of(pool.id).collect::<Vec<_>>())).collect()
    }

    /// Forgets a pool that did not come to be.
    pub(super) fn forget_pool(&self, id: PoolId) {
        self.state.borrow_mut().pools.retain(|pool| pool.id != id);
    }
}

fn status(pool: &Pool, lanes: &[&LaneStats]) -> PoolStatus {
    let (health, reason) = health(pool, lanes);
    let membership = pool.membership.as_ref();
    let parity = membership.map_or(0, |m| m.protection.parity());
    let lost = membership.map_or(0, |m| m.lost());
    let blocks =
        |count: fn(&LaneStats) -> u64| lanes.iter().map(|lane| count(lane)).sum::<u64>() * BLOCK_BYTES as u64;
    let drives = membership.map_or_else(Vec::new, |membership| {
        let drive = |(index, member)| drive_status(pool, index, member, lanes);
        membership.members.iter().enumerate().map(drive).collect()
    });
    PoolStatus {
        name: pool.name.clone(),
        id: pool.id.to_string(),
        protection: membership.map(|m| m.protection.to_string()).unwrap_or_default(),
        width: membership.map_or(0, |m| m.width),
        lanes: membership.map_or(0, |m| m.lanes),
        health,
        reason,
        failures_survivable: match health {
            Health::Offline => 0,
            _ => parity.saturating_sub(lost.min(usize::from(u8::MAX)) as u8),
        },
        capacity_bytes: blocks(|lane| lane.capacity_blocks),
        used_bytes: blocks(|lane| lane.live_blocks),
        drives,
    }
}

/// How the pool is, and why.
fn health(pool: &Pool, lanes: &[&LaneStats]) -> (Health, String) {
    if let Some(reason) = &pool.offline {
        return (Health::Offline, reason.clone());
    }
    if lanes.iter().any(|lane| lane.failed) {
        return (Health::Offline, "more drives have failed than its protection allows".to_owned());
    }
    if lanes.iter().any(|lane| lane.stalled) {
        return (Health::Degraded, "the file system under its drives is full: writes are refused".to_owned());
    }
    let members = pool.membership.as_ref().map_or(&[][..], |membership| &membership.members);
    let lost: Vec<String> = members.iter().filter_map(lost_drive).collect();
    if !lost.is_empty() {
        return (Health::Degraded, lost.join("; "));
    }
    let segments: usize = lanes.iter().map(|lane| lane.segments_degraded).sum();
    if segments > 0 {
        return (Health::Degraded, format!("{segments} segments lack a column that a drive has missed"));
    }
    (Health::Healthy, String::new())
}

fn lost_drive(member: &Member) -> Option<String> {
    let name = if member.path.is_empty() { format!("drive {}", member.id) } else { member.path.clone() };
    match member.state {
        pool::DriveState::Online => None,
        pool::DriveState::Missing => Some(format!("{name} is missing")),
        pool::DriveState::Failed => Some(format!("{name} has failed")),
    }
}

fn drive_status(pool: &Pool, index: usize, member: &Member, lanes: &[&LaneStats]) -> DriveStatus {
    let info = pool.infos.iter().find(|info| info.path == member.path);
    let mut errors = DriveErrors::default();
    for counted in lanes.iter().filter_map(|lane| lane.counters.drive_errors.get(index)) {
        errors.read += counted.read;
        errors.write += counted.write;
        errors.checksum += counted.checksum;
    }
    DriveStatus {
        path: member.path.clone(),
        size_bytes: info.map_or(0, |info| info.size_bytes),
        model: info.map(|info| info.model.clone()).unwrap_or_default(),
        serial: info.map(|info| info.serial.clone()).unwrap_or_default(),
        content: DriveContent::Member(pool.name.clone()),
        pool: Some(pool.name.clone()),
        state: match member.state {
            pool::DriveState::Online => DriveState::Online,
            pool::DriveState::Missing => DriveState::Missing,
            pool::DriveState::Failed => DriveState::Failed,
        },
        errors,
    }
}
