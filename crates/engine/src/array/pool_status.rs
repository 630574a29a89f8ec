//! What the administrator is shown of pools and their drives.

use base::{BLOCK_BYTES, PoolId};
use pool::{LaneStats, Member};

use super::Array;
use super::pools::Pool;
use crate::command::{DriveContent, DriveErrors, DriveState, DriveStatus, Health, PoolStatus, Problem};
use crate::message::{Answer, Call};

/// A pool with less space left than this is pointed out.
const FULL_PERCENT: u128 = 95;

impl Array {
    /// Every pool, with what is wrong with it.
    pub(super) async fn pool_statuses(&self) -> Vec<(PoolStatus, Vec<Problem>)> {
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

fn status(pool: &Pool, lanes: &[&LaneStats]) -> (PoolStatus, Vec<Problem>) {
    let condition = condition(pool, lanes);
    let membership = pool.membership.as_ref();
    let parity = membership.map_or(0, |m| m.protection.parity());
    let lost = membership.map_or(0, |m| m.lost());
    let blocks =
        |count: fn(&LaneStats) -> u64| lanes.iter().map(|lane| count(lane)).sum::<u64>() * BLOCK_BYTES as u64;
    let drives = membership.map_or_else(Vec::new, |membership| {
        let in_pool = |(_, member): &(usize, &Member)| member.state != pool::DriveState::Removed;
        let drive = |(index, member)| drive_status(pool, index, member, lanes);
        membership.members.iter().enumerate().filter(in_pool).map(drive).collect()
    });
    let status = PoolStatus {
        name: pool.name.clone(),
        id: pool.id.to_string(),
        protection: membership.map(|m| m.protection.to_string()).unwrap_or_default(),
        width: membership.map_or(0, |m| m.width),
        lanes: membership.map_or(0, |m| m.lanes),
        health: condition.health,
        reason: condition.reason.clone(),
        failures_survivable: match condition.health {
            Health::Offline => 0,
            _ => parity.saturating_sub(lost.min(usize::from(u8::MAX)) as u8),
        },
        capacity_bytes: blocks(|lane| lane.capacity_blocks),
        used_bytes: blocks(|lane| lane.live_blocks),
        drives,
    };
    let problems = problems(&status, &condition);
    (status, problems)
}

/// How a pool is, why, and what to do about it.
struct Condition {
    health: Health,
    reason: String,
    action: &'static str,
}

const BRING_BACK: &str = "bring its missing drives back, and restart";
pub(super) const TOO_MANY_FAILED: &str = "more drives have failed than its protection allows";

fn condition(pool: &Pool, lanes: &[&LaneStats]) -> Condition {
    let condition = |health, reason: &str, action| Condition { health, reason: reason.to_owned(), action };
    let members = pool.membership.as_ref().map_or(&[][..], |membership| &membership.members);
    let mut lost: Vec<String> = members.iter().filter_map(lost_drive).collect();
    lost.extend(pool.unusable.iter().cloned());
    let failed = lanes.iter().any(|lane| lane.failed).then_some(TOO_MANY_FAILED);
    if let Some(reason) = pool.offline.as_deref().or(failed) {
        let reasons = [&[reason.to_owned()], &lost[..]].concat();
        return condition(Health::Offline, &reasons.join("; "), BRING_BACK);
    }
    if lanes.iter().any(|lane| lane.stalled) {
        let reason = "the file system under its drives is full: writes are refused";
        return condition(
            Health::Degraded,
            reason,
            "free space in that file system; writes go on by themselves",
        );
    }
    if !lost.is_empty() {
        let action = "bring the drive back and restart; until then keep a backup at hand";
        return condition(Health::Degraded, &lost.join("; "), action);
    }
    let segments: usize = lanes.iter().map(|lane| lane.segments_degraded).sum();
    if segments > 0 {
        let reason = format!("{segments} segments lack a column that a drive has missed");
        return condition(Health::Degraded, &reason, "nothing: they are replaced as they are rewritten");
    }
    condition(Health::Healthy, "", "")
}

/// What is wrong with a pool.
fn problems(status: &PoolStatus, condition: &Condition) -> Vec<Problem> {
    let subject = format!("pool {}", status.name);
    let mut problems = Vec::new();
    if condition.health != Health::Healthy {
        problems.push(Problem {
            health: condition.health,
            subject: subject.clone(),
            reason: condition.reason.clone(),
            action: condition.action.to_owned(),
        });
    }
    problems.extend(status.drives.iter().filter_map(drive_problem));
    let full = u128::from(status.used_bytes) * 100 / u128::from(status.capacity_bytes.max(1));
    if condition.health != Health::Offline && full >= FULL_PERCENT {
        problems.push(Problem {
            health: Health::Degraded,
            subject,
            reason: format!("it is {full} % full; when it is full, writes that need space are refused"),
            action: "delete volumes, or discard what hosts do not need (fstrim)".to_owned(),
        });
    }
    problems
}

/// A drive that is in service but does not do what it should: what it got wrong was rebuilt from the others.
fn drive_problem(drive: &DriveStatus) -> Option<Problem> {
    let DriveErrors { read, write, checksum } = drive.errors;
    if drive.state != DriveState::Online || read + write + checksum == 0 {
        return None;
    }
    let counts = [(read, "read"), (write, "write"), (checksum, "checksum")];
    let errors = counts.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
    let errors = errors.collect::<Vec<_>>().join(", ");
    Some(Problem {
        health: Health::Degraded,
        subject: format!("drive {}", drive.path),
        reason: format!("it has made errors ({errors}); what it got wrong was rebuilt from the others"),
        action: "check the drive and its cabling; replace it if they go on".to_owned(),
    })
}

fn lost_drive(member: &Member) -> Option<String> {
    let name = if member.path.is_empty() { format!("drive {}", member.id) } else { member.path.clone() };
    match member.state {
        pool::DriveState::Online | pool::DriveState::Draining | pool::DriveState::Removed => None,
        pool::DriveState::Missing => Some(format!("{name} is missing")),
        pool::DriveState::Failed => Some(format!("{name} has failed")),
    }
}

fn drive_status(pool: &Pool, index: usize, member: &Member, lanes: &[&LaneStats]) -> DriveStatus {
    let info = pool.infos.iter().find(|info| info.path == member.path);
    let mut errors = DriveErrors {
        read: member.errors.read,
        write: member.errors.write,
        checksum: member.errors.checksum,
    };
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
            pool::DriveState::Draining | pool::DriveState::Removed => DriveState::Draining,
        },
        errors,
    }
}
