//! The status of pools and their drives.

use std::collections::{BTreeMap, BTreeSet};

use base::{BLOCK_BYTES, Nanos, PoolId};
use catalog::{DriveName, PoolEntry};
use env::DriveInfo;
use pool::{LaneStats, Member, Membership};

use shard::{Answer, ShardCall};

use crate::condition::Condition;
use crate::fullness::SpaceUse;
use crate::manager::Manager;
use crate::repair::Remaining;
use crate::settings;
use crate::state::Pool;
use crate::{bin, drive_commands, drive_health, fullness, loss, members, outlook, scrub, slow, spares};
use api::{
    DriveContent, DriveErrors, DriveHealth, DriveLoss, DriveNote, DriveState, DriveStatus, Health, LostDrive,
    PoolActivity, PoolMap, PoolReferences, PoolStatus, PoolWrites, Problem, ProblemFacts, RepairStatus,
    Subject,
};

impl Manager {
    /// Every pool, with its problems. A pool that is being made is not one yet.
    pub(crate) async fn pool_statuses(&self) -> Vec<(PoolStatus, Vec<Problem>)> {
        let stats = self.lane_stats().await;
        self.describe_pools(stats).await
    }

    /// The same, from statistics of all lanes.
    pub(crate) async fn describe_pools(
        &self,
        stats: Vec<(PoolId, LaneStats)>,
    ) -> Vec<(PoolStatus, Vec<Problem>)> {
        let kept = self.kept_for_copies().await;
        let mut uses = self.uses(&stats).await;
        let of = |id: PoolId| stats.iter().filter(move |(pool, _)| *pool == id).map(|(_, stats)| stats);
        let health = self.drive_health.borrow();
        let state = self.state.borrow();
        let mut describe = |pool: &Pool| {
            let entry = state.catalog.pool(pool.id);
            let clocks = (self.context.io.now(), self.context.io.wall_clock_ms());
            let lanes: Vec<&LaneStats> = of(pool.id).collect();
            let kept_blocks = kept.get(&pool.id).copied().unwrap_or(0);
            let uses = uses.remove(&pool.id).unwrap_or_default();
            let view = View { pool, lanes: &lanes, kept_blocks, uses, entry, clocks, health: &health };
            let (status, mut problems) = view.status();
            problems.extend(bin::problem(&state.catalog, pool.id, &pool.name, &lanes));
            (status, problems)
        };
        state.pools.iter().filter(|pool| !pool.is_being_made).map(&mut describe).collect()
    }

    /// The statistics of every open lane, with its pool.
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

    /// Forgets a pool whose creation failed.
    pub(crate) fn forget_pool(&self, id: PoolId) {
        self.state.borrow_mut().pools.retain(|pool| pool.id != id);
    }
}

/// What is known of a pool.
struct View<'a> {
    pool: &'a Pool,
    lanes: &'a [&'a LaneStats],
    /// Blocks that only references keep.
    kept_blocks: u64,
    uses: SpaceUse,
    entry: Option<&'a PoolEntry>,
    /// The present time: since the start, and of the wall clock in milliseconds.
    clocks: (Nanos, u64),
    health: &'a BTreeMap<String, DriveHealth>,
}

/// Counts that were wrong: caused by an error of the program or of this machine's memory, and corrected.
fn corrected_counts(lanes: &[&LaneStats]) -> Option<PoolActivity> {
    let counts: u64 = lanes.iter().map(|lane| lane.counters.counts_corrected).sum();
    (counts > 0).then_some(PoolActivity::CountsCorrected { counts })
}

impl View<'_> {
    fn drains(&self) -> bool {
        self.members().iter().any(|member| member.state == pool::DriveState::Draining)
    }

    fn status(&self) -> (PoolStatus, Vec<Problem>) {
        let (pool, lanes) = (self.pool, self.lanes);
        let membership = pool.membership.as_ref();
        let remaining = Remaining::of(lanes);
        let enough = membership.is_none_or(members::enough_online);
        let repair = pool.keeper.repair.status(&remaining, self.drains(), enough);
        let condition = self.condition(&remaining, repair.as_ref());
        let condition = condition.map(|facts| Problem::new(Subject::pool(&pool.name), facts));
        let served = condition.as_ref().is_none_or(|problem| problem.health() != Health::Offline);
        let lost = self.lost_problem().filter(|_| served);
        let survivable = |membership: &Membership| pool::failures_survivable(membership, lanes);
        let failures_survivable = membership.filter(|_| served).map_or(0, survivable);
        let next_failure = membership
            .filter(|_| failures_survivable > 0)
            .map(|membership| outlook::next_failure(membership, lanes));
        let space = fullness::problems(&pool.name, lanes, next_failure, &self.uses, self.clocks.0);
        let space: Vec<Problem> = space.into_iter().filter(|_| served).collect();
        let harms = || lost.iter().chain(&space).chain(&condition);
        let health = harms().map(Problem::health).max().unwrap_or(Health::Healthy);
        let scrub = Manager::scrub_status(self.entry.and_then(|entry| entry.last_scrub), lanes);
        let blocks = |count: fn(&LaneStats) -> u64| {
            lanes.iter().map(|lane| count(lane)).sum::<u64>() * BLOCK_BYTES as u64
        };
        let in_pool = |(_, member): &(usize, &Member)| member.state != pool::DriveState::Removed;
        let drives = self.members().iter().enumerate().filter(in_pool);
        let activity = repair
            .clone()
            .map(PoolActivity::Repair)
            .into_iter()
            .chain([scrub::activity(&scrub, self.clocks.1)])
            .chain(self.entry.into_iter().flat_map(|entry| spares::activity(&entry.spares)))
            .chain(bin::activity(&pool.keeper.gave_way))
            .chain(corrected_counts(lanes));
        let status = PoolStatus {
            name: pool.name.clone(),
            id: pool.id.to_string(),
            protection: membership.map(|m| m.protection.to_string()).unwrap_or_default(),
            format: membership.map_or(0, |m| m.version),
            width: membership.map_or(0, |m| m.width),
            lanes: membership.map_or(0, |m| m.lanes),
            health,
            causes: causes(harms()),
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
        let problems = self.problems(&status, condition, lost, space);
        (status, problems)
    }

    /// The problem of data that is damaged beyond repair.
    fn lost_problem(&self) -> Option<Problem> {
        let missing = self.members().iter().any(|member| member.state == pool::DriveState::Missing);
        loss::problem(&self.pool.name, loss::lost_bytes(self.lanes), missing)
    }

    fn members(&self) -> &[Member] {
        self.pool.membership.as_ref().map_or(&[], |membership| &membership.members)
    }

    /// The drives below which there is no space.
    fn short_of_space(&self) -> Vec<String> {
        let short: BTreeSet<u8> = self.lanes.iter().flat_map(|lane| lane.short_of_space.clone()).collect();
        let path = |&drive: &u8| self.members().get(usize::from(drive)).map(|member| member.path.clone());
        short.iter().filter_map(path).collect()
    }

    fn condition(&self, remaining: &Remaining, repair: Option<&RepairStatus>) -> Option<ProblemFacts> {
        let mut drives: Vec<LostDrive> =
            self.members().iter().filter_map(|member| self.lost_drive(member)).collect();
        drives.extend(self.pool.unusable.iter().cloned());
        let membership = self.pool.membership.as_ref();
        let condition = Condition {
            offline: self.pool.offline.clone(),
            was_served: membership.is_some(),
            drives,
            enough_online: membership.is_none_or(members::enough_online),
            short_of_space: self.short_of_space(),
            repair: repair.cloned(),
        };
        condition.problem(remaining, self.lanes)
    }

    /// The problems of a pool.
    fn problems(
        &self,
        status: &PoolStatus,
        condition: Option<Problem>,
        lost: Option<Problem>,
        space: Vec<Problem>,
    ) -> Vec<Problem> {
        let doubt = || loss::doubt(&status.name, status.scrub.last);
        let mut problems: Vec<Problem> = lost.or_else(doubt).into_iter().collect();
        problems.extend(condition);
        problems
            .extend(self.members().iter().enumerate().filter_map(|(index, m)| self.drive_problem(index, m)));
        let slow = |(index, member): (usize, &Member)| slow::problem(member, self.lanes, index);
        problems.extend(self.members().iter().enumerate().filter_map(slow));
        problems.extend(space);
        problems.extend(drive_health::overheats(status));
        problems
    }

    /// Errors of a drive since the start.
    fn counted(&self, index: usize) -> pool::DriveErrors {
        let of_lanes = self.lanes.iter().filter_map(|lane| lane.counters.drive_errors.get(index));
        of_lanes.fold(pool::DriveErrors::default(), |sum, errors| sum.plus(*errors))
    }

    /// The problem of a drive in service that has recently made errors: its data was rebuilt.
    fn drive_problem(&self, index: usize, member: &Member) -> Option<Problem> {
        let counted = self.counted(index);
        let pool::DriveErrors { read, write, checksum } = counted;
        let errs = read + write + checksum > 0 && self.pool.keeper.errs(index, counted, self.clocks.0);
        if member.state != pool::DriveState::Online || !errs {
            return None;
        }
        let facts = ProblemFacts::DriveErrors {
            read,
            write,
            checksum,
            all_rebuilt: loss::lost_bytes(self.lanes) == 0,
            kept: self.pool.keeper.kept.get(&member.id).copied(),
        };
        Some(Problem::new(Subject::drive(&member.path), facts))
    }

    /// The name of a member when it was last seen.
    fn known(&self, member: &Member) -> DriveName {
        let known = self.entry.and_then(|entry| entry.members.iter().find(|known| known.id == member.id));
        known.map(|known| known.name.clone()).unwrap_or_default()
    }

    fn lost_drive(&self, member: &Member) -> Option<LostDrive> {
        let how = match member.state {
            pool::DriveState::Online | pool::DriveState::Draining | pool::DriveState::Removed => return None,
            pool::DriveState::Missing => DriveLoss::Missing,
            pool::DriveState::Failed => DriveLoss::Failed,
        };
        Some(LostDrive { drive: drive_commands::shown(member), bay: self.known(member).bay, how })
    }

    fn drive_status(&self, index: usize, member: &Member) -> DriveStatus {
        let pool = self.pool;
        let info = pool.infos.iter().find(|info| info.path == member.path && member.state.is_readable());
        let known = self.known(member);
        let errors = member.errors.plus(self.counted(index));
        let [read_latency_us, write_latency_us] = slow::latency_us(self.lanes, index);
        let note = match member.state {
            pool::DriveState::Failed => Some(DriveNote::Failed {}),
            pool::DriveState::Missing => Some(DriveNote::Missing {}),
            pool::DriveState::Draining => Some(DriveNote::Emptying { slow: member.slow }),
            pool::DriveState::Online | pool::DriveState::Removed => {
                info.and_then(|info| self.unused(member, info))
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
            health: self.health.get(&member.path).cloned(),
        }
    }

    /// The space by which a drive has become larger since it joined.
    fn unused(&self, member: &Member, info: &DriveInfo) -> Option<DriveNote> {
        let chunk_bytes = self.pool.membership.as_ref()?.chunk_bytes;
        let used = pool::LABEL_REGION_BYTES + u64::from(member.chunks) * chunk_bytes;
        let unused_bytes = info.size_bytes.checked_sub(used).filter(|&more| more >= chunk_bytes)?;
        let (pool, drive) = (self.pool.name.clone(), member.path.clone());
        Some(DriveNote::Larger { pool, drive, unused_bytes })
    }
}

/// The memory of the pool's maps, and which part of the maps it holds.
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

/// Why the pool is not healthy: problems that do harm, then its condition.
fn causes<'a>(problems: impl Iterator<Item = &'a Problem>) -> Vec<ProblemFacts> {
    let unhealthy = problems.filter(|problem| problem.health() != Health::Healthy);
    unhealthy.map(|problem| problem.facts.clone()).collect()
}
