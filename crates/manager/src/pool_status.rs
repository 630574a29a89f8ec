//! What the administrator is shown of pools and their drives.

use std::collections::BTreeSet;

use base::{BLOCK_BYTES, Nanos, PoolId};
use catalog::{DriveName, PoolEntry};
use env::DriveInfo;
use pool::{LaneStats, Member, Membership};

use shard::{Answer, ShardCall};

use crate::care::Remaining;
use crate::fullness::Uses;
use crate::manager::Manager;
use crate::settings;
use crate::state::Pool;
use crate::words::size;
use crate::{bin, care, drive_commands, fullness, loss, members, outlook, scrub, slow, spares};
use api::{
    DriveContent, DriveErrors, DriveState, DriveStatus, Harm, Health, PoolMap, PoolReferences, PoolStatus,
    PoolWrites, Problem, RepairStatus,
};

const MAKE_ROOM: &str = "make room there, in the file system or thin pool; writes go on by themselves";

impl Manager {
    /// Every pool, with what is wrong with it.
    pub(crate) async fn pool_statuses(&self) -> Vec<(PoolStatus, Vec<Problem>)> {
        let stats = self.lane_stats().await;
        let kept = self.kept_for_copies().await;
        let mut uses = self.uses(&stats).await;
        let of = |id: PoolId| stats.iter().filter(move |(pool, _)| *pool == id).map(|(_, stats)| stats);
        let state = self.state.borrow();
        let mut describe = |pool: &Pool| {
            let entry = state.catalog.pool(pool.id);
            let clocks = (self.context.io.now(), self.context.io.wall_clock_ms());
            let lanes: Vec<&LaneStats> = of(pool.id).collect();
            let kept_blocks = kept.get(&pool.id).copied().unwrap_or(0);
            let uses = uses.remove(&pool.id).unwrap_or_default();
            let view = View { pool, lanes: &lanes, kept_blocks, uses, entry, clocks };
            let (status, mut problems) = view.status();
            problems.extend(bin::problem(&state.catalog, pool.id, &pool.name, &lanes));
            (status, problems)
        };
        state.pools.iter().map(&mut describe).collect()
    }

    /// How every open lane is, with its pool.
    pub(crate) async fn lane_stats(&self) -> Vec<(PoolId, LaneStats)> {
        let answers = self.context.ask_all(|| ShardCall::LaneStats).await;
        let mut stats = Vec::new();
        for answer in answers {
            let Answer::LaneStats(of_shard) = answer else {
                unreachable!("the answer to a question for stats")
            };
            stats.extend(of_shard);
        }
        stats
    }

    /// Forgets a pool that did not come to be.
    pub(crate) fn forget_pool(&self, id: PoolId) {
        self.state.borrow_mut().pools.retain(|pool| pool.id != id);
    }
}

/// What is known of a pool.
struct View<'a> {
    pool: &'a Pool,
    lanes: &'a [&'a LaneStats],
    /// Which nothing but references keeps.
    kept_blocks: u64,
    uses: Uses,
    entry: Option<&'a PoolEntry>,
    /// Now: since the start, and on the wall in milliseconds.
    clocks: (Nanos, u64),
}

/// Counts that were wrong: a fault of the program or of the memory of this machine, which has been corrected.
fn corrected_counts(lanes: &[&LaneStats]) -> Option<String> {
    let counts: u64 = lanes.iter().map(|lane| lane.counters.counts_mended).sum();
    (counts > 0).then(|| {
        format!(
            "counts of used blocks were wrong and have been corrected ({counts} since the start). A program or \
             this machine's memory had an error: run `tangelo pool scrub`, and report it"
        )
    })
}

/// How a pool is, why, and what to do about it.
struct Condition {
    harm: Harm,
    health: Health,
    reason: String,
    action: String,
}

const BRING_BACK: &str =
    "bring its missing drives back: it is opened by itself when enough of them are there";
/// Of one that was served: hosts may have been told of errors, so it comes back when somebody says so.
const RELOAD: &str =
    "bring its missing drives back, then reload (`systemctl reload tangelo`): it is opened anew";
pub(crate) const TOO_MANY_FAILED: &str = "more drives have failed than its protection allows";

impl View<'_> {
    fn status(&self) -> (PoolStatus, Vec<Problem>) {
        let (pool, lanes) = (self.pool, self.lanes);
        let membership = pool.membership.as_ref();
        let remaining = Remaining::of(lanes);
        let drains = self.members().iter().any(|member| member.state == pool::DriveState::Draining);
        let enough = membership.is_none_or(members::enough_online);
        let repair = pool.care.repair.status(&remaining, drains, enough);
        let condition = self.condition(&remaining, repair.as_ref());
        let served = condition.health != Health::Offline;
        let lost = self.lost_problem().filter(|_| served);
        let survivable = |membership: &Membership| pool::failures_survivable(membership, lanes);
        let failures_survivable = membership.filter(|_| served).map_or(0, survivable);
        let next_failure = membership
            .filter(|_| failures_survivable > 0)
            .map(|membership| outlook::next_failure(membership, lanes));
        let subject = format!("pool {}", pool.name);
        let space = fullness::problems(&subject, lanes, next_failure, &self.uses);
        let space: Vec<Problem> = space.into_iter().filter(|_| served).collect();
        let harms = || lost.iter().chain(&space);
        let health = harms().map(|problem| problem.health).fold(condition.health, Health::max);
        let scrub = Manager::scrub_status(self.entry.and_then(|entry| entry.last_scrub), lanes);
        let blocks = |count: fn(&LaneStats) -> u64| {
            lanes.iter().map(|lane| count(lane)).sum::<u64>() * BLOCK_BYTES as u64
        };
        let in_pool = |(_, member): &(usize, &Member)| member.state != pool::DriveState::Removed;
        let drives = self.members().iter().enumerate().filter(in_pool);
        let activity = [repair.as_ref().map(care::describe), scrub::describe(&scrub, self.clocks.1)];
        let activity = activity
            .into_iter()
            .flatten()
            .chain(self.entry.into_iter().flat_map(|entry| spares::describe(&entry.spares)))
            .chain(bin::describe(&pool.care.gave_way))
            .chain(corrected_counts(lanes));
        let status = PoolStatus {
            name: pool.name.clone(),
            id: pool.id.to_string(),
            protection: membership.map(|m| m.protection.to_string()).unwrap_or_default(),
            width: membership.map_or(0, |m| m.width),
            lanes: membership.map_or(0, |m| m.lanes),
            health,
            reason: reasons(harms(), &condition.reason),
            failures_survivable,
            next_failure,
            provisioned_bytes: self.uses.provisioned_bytes,
            capacity_bytes: blocks(|lane| lane.capacity_blocks),
            used_bytes: blocks(|lane| lane.live_blocks),
            lost_bytes: loss::lost_bytes(lanes),
            log_bytes: blocks(|lane| (lane.segments_total * lane.segment_blocks) as u64),
            reserve_bytes: blocks(|lane| lane.reserve_blocks),
            references: PoolReferences {
                copied_bytes: blocks(|lane| lane.reference_blocks),
                kept_bytes: self.kept_blocks * BLOCK_BYTES as u64,
            },
            written: PoolWrites {
                host_bytes: blocks(|lane| lane.counters.blocks_written),
                moved_bytes: blocks(|lane| lane.counters.blocks_cleaned),
                restored_bytes: blocks(|lane| lane.counters.blocks_restored),
                map_bytes: blocks(|lane| lane.counters.map_blocks_written),
            },
            map: map_status(lanes),
            drives: drives.map(|(index, member)| self.drive_status(index, member)).collect(),
            settings: settings::status(&self.entry.map(|entry| entry.settings).unwrap_or_default()),
            repair: repair.filter(|_| served),
            scrub,
            activity: activity.filter(|_| served).collect(),
        };
        let problems = self.problems(&status, &condition, lost, space);
        (status, problems)
    }

    /// What is to be said of data that is damaged beyond repair.
    fn lost_problem(&self) -> Option<Problem> {
        let missing = self.members().iter().any(|member| member.state == pool::DriveState::Missing);
        loss::problem(&format!("pool {}", self.pool.name), loss::lost_bytes(self.lanes), missing)
    }

    fn members(&self) -> &[Member] {
        self.pool.membership.as_ref().map_or(&[], |membership| &membership.members)
    }

    /// Below which drives there is no space.
    fn short_of_space(&self) -> String {
        let short: BTreeSet<u8> = self.lanes.iter().flat_map(|lane| lane.short_of_space.clone()).collect();
        let path = |&drive: &u8| self.members().get(usize::from(drive)).map(|member| member.path.as_str());
        let paths: Vec<&str> = short.iter().filter_map(path).collect();
        match paths[..] {
            [] => "there is no space below its drives: writes are refused".to_owned(),
            _ => format!("there is no space below {}: writes are refused", paths.join(", ")),
        }
    }

    fn condition(&self, remaining: &Remaining, repair: Option<&RepairStatus>) -> Condition {
        let condition = |harm, health, reason: &str, action: &str| Condition {
            harm,
            health,
            reason: reason.to_owned(),
            action: action.to_owned(),
        };
        let mut lost: Vec<String> =
            self.members().iter().filter_map(|member| self.lost_drive(member)).collect();
        lost.extend(self.pool.unusable.iter().cloned());
        let failed = self.lanes.iter().any(|lane| lane.failed).then_some(TOO_MANY_FAILED);
        if let Some(reason) = self.pool.offline.as_deref().or(failed) {
            let reasons = [&[reason.to_owned()], &lost[..]].concat();
            let action = if self.pool.membership.is_some() { RELOAD } else { BRING_BACK };
            return condition(Harm::Offline, Health::Offline, &reasons.join("; "), action);
        }
        if self.lanes.iter().any(|lane| lane.stalled) {
            return condition(Harm::Space, Health::Degraded, &self.short_of_space(), MAKE_ROOM);
        }
        if lost.is_empty() && remaining.worst == 0 {
            let segments: usize = self.lanes.iter().map(|lane| lane.segments_degraded).sum();
            if segments > 0 {
                let reason = format!("{segments} segments lack something that a drive has missed or lost");
                return condition(
                    Harm::Exposed,
                    Health::Degraded,
                    &reason,
                    "nothing: they are being written anew",
                );
            }
            return condition(Harm::Other, Health::Healthy, "", "");
        }
        let (why, action) = self.rebuilding(remaining, repair, !lost.is_empty());
        lost.extend(why);
        condition(Harm::Exposed, Health::Degraded, &lost.join("; "), action)
    }

    /// How the rebuilding goes, and what to do.
    fn rebuilding(
        &self,
        remaining: &Remaining,
        repair: Option<&RepairStatus>,
        lost: bool,
    ) -> (Option<String>, &'static str) {
        let enough = self.pool.membership.as_ref().is_none_or(members::enough_online);
        if !enough {
            let why = "too few drives are left to rebuild on".to_owned();
            return (
                Some(why),
                "bring the drive back, or add one (`tangelo drive add`); keep a backup at hand",
            );
        }
        if remaining.short_blocks > 0 {
            let short = size(remaining.short_blocks * BLOCK_BYTES as u64);
            let why = format!("not enough free space to rebuild: {short} short");
            return (
                Some(why),
                "add a drive (`tangelo drive add`), delete volumes, or discard what hosts do not need",
            );
        }
        let action = match (lost, remaining.blocks) {
            (true, 0) if loss::lost_bytes(self.lanes) > 0 => {
                "bring the drive back; else replace it, and it leaves when nothing damaged stands on it any more"
            }
            (true, _) => "nothing: it is rebuilt on the other drives; replace the drive when you can",
            (false, _) => "nothing: what lacks a column is being written anew",
        };
        (repair.map(care::describe), action)
    }

    /// What is wrong with a pool.
    fn problems(
        &self,
        status: &PoolStatus,
        condition: &Condition,
        lost: Option<Problem>,
        space: Vec<Problem>,
    ) -> Vec<Problem> {
        let subject = format!("pool {}", status.name);
        let doubt = || loss::doubt(&subject, status.scrub.last);
        let mut problems: Vec<Problem> = lost.or_else(doubt).into_iter().collect();
        if condition.health != Health::Healthy {
            problems.push(Problem {
                harm: condition.harm,
                health: condition.health,
                subject: subject.clone(),
                reason: condition.reason.clone(),
                action: condition.action.clone(),
            });
        }
        problems
            .extend(self.members().iter().enumerate().filter_map(|(index, m)| self.drive_problem(index, m)));
        let slow = |(index, member): (usize, &Member)| slow::problem(member, self.lanes, index);
        problems.extend(self.members().iter().enumerate().filter_map(slow));
        problems.extend(space);
        problems
    }

    /// Errors that a drive has made since the start.
    fn counted(&self, index: usize) -> pool::DriveErrors {
        let of_lanes = self.lanes.iter().filter_map(|lane| lane.counters.drive_errors.get(index));
        of_lanes.fold(pool::DriveErrors::default(), |sum, errors| sum.plus(*errors))
    }

    /// A drive that is in service but has not done what it should lately: what it got wrong was rebuilt.
    fn drive_problem(&self, index: usize, member: &Member) -> Option<Problem> {
        let counted = self.counted(index);
        let pool::DriveErrors { read, write, checksum } = counted;
        let errs = read + write + checksum > 0 && self.pool.care.errs(index, counted, self.clocks.0);
        if member.state != pool::DriveState::Online || !errs {
            return None;
        }
        let counts = [(read, "read"), (write, "write"), (checksum, "checksum")];
        let errors =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
        let errors = errors.collect::<Vec<_>>().join(", ");
        let rebuilt = match loss::lost_bytes(self.lanes) {
            0 => "what it got wrong was rebuilt from the others",
            _ => "not all of what drives got wrong could be rebuilt",
        };
        let kept = self.pool.care.kept.get(&member.id);
        let (stays, action) = match kept {
            Some(kept) => (
                format!(
                    "; they are more than `tangelo pool set` allows, and it stays only because {}",
                    kept.reason()
                ),
                "replace the drive: `tangelo drive replace`, or add one first",
            ),
            None => (String::new(), "check the drive and its cabling; replace it if they go on"),
        };
        Some(Problem {
            harm: Harm::Drive,
            health: Health::Degraded,
            subject: format!("drive {}", member.path),
            reason: format!("it has made errors ({errors}); {rebuilt}{stays}"),
            action: action.to_owned(),
        })
    }

    /// What a member was called when it was last seen.
    fn known(&self, member: &Member) -> DriveName {
        let known = self.entry.and_then(|entry| entry.members.iter().find(|known| known.id == member.id));
        known.map(|known| known.name.clone()).unwrap_or_default()
    }

    fn lost_drive(&self, member: &Member) -> Option<String> {
        let how = match member.state {
            pool::DriveState::Online | pool::DriveState::Draining | pool::DriveState::Removed => return None,
            pool::DriveState::Missing => "is missing",
            pool::DriveState::Failed => "has failed",
        };
        let (name, bay) = (drive_commands::shown(member), self.known(member).bay);
        Some(match bay.is_empty() {
            true => format!("{name} {how}"),
            false => format!("{name} (bay {bay}) {how}"),
        })
    }

    fn drive_status(&self, index: usize, member: &Member) -> DriveStatus {
        let pool = self.pool;
        let info = pool.infos.iter().find(|info| info.path == member.path && member.state.is_readable());
        let known = self.known(member);
        let errors = member.errors.plus(self.counted(index));
        let [read_latency_us, write_latency_us] = slow::latency_us(self.lanes, index);
        let note = match member.state {
            pool::DriveState::Failed => "taken out for its errors: replace it".to_owned(),
            pool::DriveState::Missing => "comes back by itself when it is found again".to_owned(),
            pool::DriveState::Draining if member.slow => {
                "is being emptied: much slower than its siblings".to_owned()
            }
            pool::DriveState::Draining => "is being emptied".to_owned(),
            pool::DriveState::Online | pool::DriveState::Removed => {
                info.and_then(|info| self.unused(member, info)).unwrap_or_default()
            }
        };
        DriveStatus {
            path: member.path.clone(),
            size_bytes: info.map_or(0, |info| info.size_bytes),
            model: info.map_or(known.model, |info| info.model.clone()),
            serial: info.map_or(known.serial, |info| info.serial.clone()),
            bay: info.map_or(known.bay, |info| info.bay.clone()),
            content: DriveContent::Member,
            detail: format!("pool {}", pool.name),
            pool: Some(pool.name.clone()),
            state: match member.state {
                pool::DriveState::Online => DriveState::Online,
                pool::DriveState::Missing => DriveState::Missing,
                pool::DriveState::Failed => DriveState::Failed,
                pool::DriveState::Draining | pool::DriveState::Removed => DriveState::Draining,
            },
            errors: DriveErrors { read: errors.read, write: errors.write, checksum: errors.checksum },
            read_latency_us,
            write_latency_us,
            id: member.id.to_string(),
            note,
        }
    }

    /// That a drive has become larger than it was when it joined.
    fn unused(&self, member: &Member, info: &DriveInfo) -> Option<String> {
        let chunk_bytes = self.pool.membership.as_ref()?.chunk_bytes;
        let used = pool::LABEL_REGION_BYTES + u64::from(member.chunks) * chunk_bytes;
        let more = info.size_bytes.checked_sub(used).filter(|&more| more >= chunk_bytes)?;
        let (name, path) = (&self.pool.name, &member.path);
        Some(format!(
            "has become larger, and {} of it are not used: `tangelo drive remove {name} {path}` empties it, then `tangelo drive add {name} {path}` takes all of it",
            size(more)
        ))
    }
}

/// What the pool's maps take, and how much of them is at hand.
fn map_status(lanes: &[&LaneStats]) -> PoolMap {
    let blocks =
        |count: fn(&LaneStats) -> u64| lanes.iter().map(|lane| count(lane)).sum::<u64>() * BLOCK_BYTES as u64;
    PoolMap {
        bytes: blocks(|lane| lane.live_blocks.saturating_sub(lane.mapped_blocks)),
        memory_bytes: lanes.iter().map(|lane| lane.map_budget_bytes as u64).sum(),
        cached_bytes: blocks(|lane| lane.map_pages_cached as u64),
        lookups: lanes.iter().map(|lane| lane.map_lookups).sum(),
        misses: lanes.iter().map(|lane| lane.map_misses).sum(),
    }
}

/// Why the pool is not healthy: what does harm, then its condition.
fn reasons<'a>(harms: impl Iterator<Item = &'a Problem>, condition: &str) -> String {
    let unhealthy = harms.filter(|problem| problem.health != Health::Healthy);
    let reasons = unhealthy.map(|problem| problem.reason.as_str()).chain([condition]);
    reasons.filter(|reason| !reason.is_empty()).collect::<Vec<_>>().join("; ")
}
