//! Schedules: snapshots that the keeper takes when they are due, and deletes when their time is over.
//!
//! New snapshots, the time at which they were taken, and the deletion of old ones are one change of the catalog: after
//! a crash, all or nothing of it is there. What a schedule could not do is reported, and tried again.

use std::collections::BTreeSet;

use base::{LayerId, Nanos, PoolId, VolumeId};
use catalog::{Catalog, Change, Retention, Snapshot, Volume};

use crate::manager::Manager;
use crate::state::{FailedSchedule, MissedWork};
use api::{
    CommandError, EventFacts, Keep, Problem, ProblemFacts, Reply, ScheduleFailure, ScheduleOrder,
    ScheduleStatus, SnapshotStep, Subject,
};

/// How long to wait after a failure.
const AGAIN_AFTER: Nanos = Nanos::from_secs(60);

impl Manager {
    pub(crate) async fn schedule(&self, order: ScheduleOrder, dry_run: bool) -> Result<Reply, CommandError> {
        let (change, step) = match order {
            ScheduleOrder::Create { name, volumes, keep } => {
                let Keep { hourly, daily, weekly, monthly } = keep;
                let keep = Retention { hourly, daily, weekly, monthly };
                let schedule = name.parse()?;
                let step = SnapshotStep::CreateSchedule { schedule: name, volumes: volumes.clone() };
                (Change::CreateSchedule { name: schedule, volumes, keep }, step)
            }
            ScheduleOrder::Delete { name } => {
                let step = SnapshotStep::DeleteSchedule { schedule: name.clone() };
                (Change::DeleteSchedule { schedule: name }, step)
            }
        };
        let planned = self.plan(&change)?.step(step);
        if !dry_run {
            self.commit(&planned.next).await?;
            self.wake_keeper.notify();
        }
        Ok(planned.reply(dry_run, None))
    }

    /// Takes due snapshots, and deletes those whose time is over.
    pub(crate) async fn keep_schedules(&self) {
        let now_ms = self.context.io.wall_clock_ms();
        // the change lock is taken only if there is something to do
        let due: Vec<String> = {
            let state = self.state.borrow();
            let schedules = state.catalog.schedules();
            let known =
                |late: &FailedSchedule| schedules.iter().any(|one| one.name.as_str() == late.schedule);
            self.late.borrow_mut().retain(known);
            let due = |one: &&catalog::Schedule| {
                one.is_due(now_ms) && state.catalog.scheduled(one).next().is_some()
            };
            schedules.iter().filter(due).map(|one| one.name.to_string()).collect()
        };
        for name in due {
            if self.has_just_failed(&name) {
                continue;
            }
            let _turn = self.changes.acquire(1).await;
            let done = self.take_scheduled(&name).await;
            let mut late = self.late.borrow_mut();
            late.retain(|late| late.schedule != name);
            let missed = match done {
                Ok(left_out) => left_out.map(MissedWork::Volume),
                Err(error) => Some(MissedWork::Failed(error)),
            };
            let since = self.context.io.now();
            late.extend(missed.map(|what| FailedSchedule { schedule: name, since, what }));
        }
    }

    fn has_just_failed(&self, name: &str) -> bool {
        let now = self.context.io.now();
        let late = self.late.borrow();
        late.iter().any(|late| late.schedule == name && now.saturating_sub(late.since) < AGAIN_AFTER)
    }

    /// Takes due snapshots. If it returns a volume, that volume was not available now, and is left out.
    async fn take_scheduled(&self, name: &str) -> Result<Option<String>, ScheduleFailure> {
        let now_ms = self.context.io.wall_clock_ms();
        let (volumes, offline): (Vec<Volume>, Vec<Volume>) = {
            let state = self.state.borrow();
            let Some(schedule) = state.catalog.find_schedule(name).filter(|one| one.is_due(now_ms)) else {
                return Ok(None);
            };
            let online = |volume: &Volume| volume.place().is_some_and(|(pool, _)| state.is_pool_online(pool));
            state.catalog.scheduled(schedule).cloned().partition(online)
        };
        if volumes.is_empty() {
            return match offline.first() {
                Some(volume) => Err(ScheduleFailure::PoolOffline { volume: volume.name.to_string() }),
                None => Ok(None),
            };
        }
        let ids: Vec<VolumeId> = volumes.iter().map(|volume| volume.id).collect();
        let keep_all = self.is_clock_doubted();
        let run = Change::RunSchedule { schedule: name.to_owned(), volumes: ids, now_ms, keep_all };
        let planned = self.plan(&run)?;
        let gone = self.kept_no_longer(name, &planned.next);
        self.take_snapshots(&volumes, &planned).await?;
        let names = volumes.iter().map(|volume| volume.name.to_string()).collect();
        let facts = EventFacts::SnapshotsTaken { volumes: names, expired: gone.len() as u64 };
        self.record(Subject::Schedule(name.to_owned()), facts);
        for (pool, layer) in gone {
            self.drop_layer(pool, layer).await;
        }
        Ok(offline.first().map(|volume| volume.name.to_string()))
    }

    /// The layers of the schedule's snapshots that no longer exist in `next`.
    fn kept_no_longer(&self, name: &str, next: &Catalog) -> Vec<(PoolId, LayerId)> {
        let kept: BTreeSet<LayerId> = next.snapshots().iter().map(|one| one.layer).collect();
        let state = self.state.borrow();
        let by_it = |one: &&Snapshot| one.schedule.as_ref().is_some_and(|by| by.as_str() == name);
        let taken = state.catalog.snapshots().iter().filter(by_it).filter_map(|one| {
            let (pool, _) = state.catalog.volume(one.volume)?.place()?;
            Some((pool, one.layer))
        });
        taken.filter(|(_, layer)| !kept.contains(layer)).collect()
    }

    pub(crate) fn schedule_statuses(&self) -> Vec<ScheduleStatus> {
        let now_ms = self.context.io.wall_clock_ms();
        let state = self.state.borrow();
        let catalog = &state.catalog;
        let status = |schedule: &catalog::Schedule| {
            let Retention { hourly, daily, weekly, monthly } = schedule.keep;
            let by_it = |one: &&Snapshot| one.schedule.as_ref() == Some(&schedule.name);
            ScheduleStatus {
                name: schedule.name.to_string(),
                volumes: catalog.scheduled(schedule).map(|volume| volume.name.to_string()).collect(),
                keep: Keep { hourly, daily, weekly, monthly },
                last_ms: schedule.last_ms,
                next_ms: schedule.next_ms(now_ms),
                snapshots: catalog.snapshots().iter().filter(by_it).count() as u64,
            }
        };
        catalog.schedules().iter().map(status).collect()
    }

    /// The problems of schedules.
    pub(crate) fn schedule_problems(&self) -> Vec<Problem> {
        let problem = |late: &FailedSchedule| {
            let facts = match &late.what {
                MissedWork::Failed(cause) => ProblemFacts::ScheduleFailed { cause: cause.clone() },
                MissedWork::Volume(volume) => ProblemFacts::ScheduleIncomplete { volume: volume.clone() },
            };
            Problem::new(Subject::Schedule(late.schedule.clone()), facts)
        };
        self.late.borrow().iter().map(problem).collect()
    }
}
