//! Scrubs: begun by command or by schedule, stopped, and remembered. The lanes do the reading.

use base::calendar::CLOCK_STEP_MS;
use base::{Nanos, PoolId};
use catalog::{Change, ScrubRecord};
use pool::LaneStats;

use shard::ShardCall;

use crate::drive_commands::done;
use crate::manager::Manager;
use api::{
    CommandError, CommandErrorKind, EventFacts, LastScrub, PoolActivity, PoolStep, Reply, ScrubStatus,
    Subject,
};

/// How long labels are read before a scrub continues without them.
const LABELS_TIME_MAX: Nanos = Nanos::from_secs(5);

impl Manager {
    pub(crate) async fn scrub_pool(
        &self,
        name: &str,
        stop: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let id = self.served_pool(name)?.pool;
        let stats = self.lane_stats().await;
        let running = stats.iter().any(|(pool, lane)| *pool == id && lane.scrub.running);
        if running != stop {
            let message = match running {
                true => format!("pool {name} is being scrubbed already"),
                false => format!("pool {name} is not being scrubbed"),
            };
            return Err(CommandError::new(
                CommandErrorKind::Invalid,
                message,
                "`tangelo status` shows how far it is",
            ));
        }
        let step = PoolStep::ScrubPool { pool: name.to_owned(), stop };
        if !dry_run {
            self.go_ahead()?;
            self.set_scrubbing(id, !stop).await;
        }
        Ok(done(vec![step.into()], dry_run, self.pool_made_unless(name, dry_run).await))
    }

    async fn set_scrubbing(&self, id: PoolId, begin: bool) {
        if begin {
            self.check_labels(id).await;
        }
        self.context.ask_all(|| ShardCall::Scrub(id, begin)).await;
        // set only now: a caller that sees it and then asks the lanes sees this scrub
        if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
            pool.keeper.scrubbing = Some(!begin);
            if begin {
                self.record(Subject::pool(&pool.name), EventFacts::ScrubBegan {});
            }
        }
        self.wake_keeper.notify();
    }

    /// Reads the pool's labels, and writes them anew if one is not what was written.
    async fn check_labels(&self, id: PoolId) {
        let known = self.state.borrow().online_pool(id);
        let Some(before) = known else { return };
        let io = &self.context.io;
        // a drive that does not answer is handled elsewhere; only reading may be abandoned, never a half-written record
        let wrong = task::race(before.wrong_labels(io), io.sleep(LABELS_TIME_MAX)).await;
        let Some(wrong) = wrong.ok().filter(|wrong| !wrong.is_empty()) else { return };
        let rewritten = self.alter(id, async |membership| {
            // labels that were written meanwhile are newer than those that were compared
            let same = membership.generation == before.generation;
            if same {
                membership.rewrite_labels(io, &wrong).await?;
            }
            Ok(if same { wrong.len() as u64 } else { 0 })
        });
        // if this fails, the pool is offline and reports why
        let rewritten = rewritten.await.unwrap_or(0);
        if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
            pool.keeper.labels_rewritten = rewritten;
        }
    }

    /// Begins a scrub that is due, and records the result of one that has ended.
    pub(crate) async fn keep_scrubbing(&self, id: PoolId, lanes: &[&LaneStats]) {
        let scrubbing = self.state.borrow_mut().pool_mut(id).and_then(|pool| pool.keeper.scrubbing);
        if lanes.iter().any(|lane| lane.scrub.running) {
            return;
        }
        if let Some(stopped) = scrubbing {
            // `lanes` may be from before it began
            let stats = self.lane_stats().await;
            let lanes: Vec<&LaneStats> =
                stats.iter().filter(|(pool, _)| *pool == id).map(|(_, stats)| stats).collect();
            if !lanes.iter().any(|lane| lane.scrub.running) {
                self.end_scrub(id, stopped, &lanes).await;
            }
        } else if self.scrub_is_due(id) {
            self.set_scrubbing(id, true).await;
        }
    }

    async fn end_scrub(&self, id: PoolId, stopped: bool, lanes: &[&LaneStats]) {
        let sum = |count: fn(&LaneStats) -> u64| lanes.iter().map(|lane| count(lane)).sum();
        let labels = match self.state.borrow_mut().pool_mut(id) {
            Some(pool) => {
                pool.keeper.scrubbing = None;
                std::mem::take(&mut pool.keeper.labels_rewritten)
            }
            None => 0,
        };
        let record = ScrubRecord {
            ended_ms: self.context.io.wall_clock_ms(),
            complete: !stopped
                && lanes.iter().all(|lane| lane.scrub.segments_done == lane.scrub.segments_total),
            repaired: labels + sum(|lane| lane.scrub.batches_repaired),
            unreadable: sum(|lane| lane.scrub.batches_unreadable),
        };
        let ScrubRecord { complete, repaired, unreadable, .. } = record;
        let subject = self.state.borrow_mut().pool_mut(id).map(|pool| Subject::pool(&pool.name));
        if let Some(subject) = subject {
            self.record(subject, EventFacts::ScrubEnded { complete, repaired, unreadable });
        }
        let _turn = self.changes.acquire(1).await;
        if let Ok(planned) = self.plan(&Change::Scrubbed { pool: id, record }) {
            // if this cannot be stored, the pool reports why, and a scheduled scrub begins again
            let _ = self.commit(&planned.next).await;
        }
    }

    fn scrub_is_due(&self, id: PoolId) -> bool {
        let state = self.state.borrow();
        let Some(entry) = state.catalog.pool(id) else { return false };
        let Some(every) = entry.settings.scrub_every_seconds() else { return false };
        let made = state.online_pool(id).map_or(0, |membership| membership.created_ms);
        let last = entry.last_scrub.map_or(made, |last| last.ended_ms);
        let now = self.context.io.wall_clock_ms();
        // a time in the future is ignored: the clock was wrong then, or is wrong now
        last > now + CLOCK_STEP_MS || now.saturating_sub(last) >= u64::from(every) * 1000
    }

    /// The status of a pool's scrubs.
    pub(crate) fn scrub_status(last: Option<ScrubRecord>, lanes: &[&LaneStats]) -> ScrubStatus {
        let sum = |count: fn(&LaneStats) -> u64| lanes.iter().map(|lane| count(lane)).sum();
        let last = last.map(|record| LastScrub {
            ended_ms: record.ended_ms,
            complete: record.complete,
            repaired: record.repaired,
            unreadable: record.unreadable,
        });
        if !lanes.iter().any(|lane| lane.scrub.running) {
            return ScrubStatus { last, ..ScrubStatus::default() };
        }
        ScrubStatus {
            running: true,
            segments_done: sum(|lane| lane.scrub.segments_done as u64),
            segments_total: sum(|lane| lane.scrub.segments_total as u64),
            batches_repaired: sum(|lane| lane.scrub.batches_repaired),
            batches_unreadable: sum(|lane| lane.scrub.batches_unreadable),
            last,
        }
    }
}

/// The running scrub, otherwise the last one; `now_ms` is the wall clock.
pub(crate) fn activity(scrub: &ScrubStatus, now_ms: u64) -> PoolActivity {
    match scrub.last {
        _ if scrub.running => PoolActivity::Scrub {
            percent: scrub.segments_done * 100 / scrub.segments_total.max(1),
            batches_repaired: scrub.batches_repaired,
            batches_unreadable: scrub.batches_unreadable,
        },
        Some(last) => PoolActivity::Scrubbed { last, ago_ms: now_ms.saturating_sub(last.ended_ms) },
        None => PoolActivity::NeverScrubbed {},
    }
}
