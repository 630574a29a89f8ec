//! Snapshots of the hosts' volumes that a schedule takes and deletes automatically.
//!
//! The moment of such a snapshot is known only as an interval: from the time at which it is due until it is found in
//! the list. A start may find snapshots that were taken before it, and some that have been taken since.

use std::collections::BTreeMap;

use api::Command;
use api::{CopyOrder, ScheduleOrder, SnapshotStatus};
use base::{BLOCK_BYTES, Nanos};

use super::administrator::Administrator;
use super::counts::{Kind, Sight};
use super::records::Records;
use super::state::{KEPT, Order, SCHEDULE, State};
use crate::array::engine_shard::command;
use crate::oracle::SnapshotTicket;

pub const HOUR_MS: u64 = 3_600_000;
const LOOK_AGAIN: Nanos = Nanos::from_millis(20);
/// At the end.
const TRIES: u32 = 3000;

/// What is known of the schedule's snapshots.
pub struct Scheduled {
    /// Whether the run has a schedule at all.
    pub any: bool,
    pub taken: Vec<Taken>,
    spans: Vec<Span>,
}

/// Snapshots of one moment that are there.
pub struct Taken {
    pub name: String,
    pub created_ms: u64,
    /// Of which of the hosts' volumes, its number, and its size in blocks.
    pub copies: Vec<(u32, u32, u64)>,
}

/// A time in which snapshots may be taken, by the clock on the wall.
struct Span {
    ticket: SnapshotTicket,
    copies: Vec<(u32, u32)>,
    from_ms: u64,
    until_ms: Option<u64>,
}

impl Scheduled {
    pub fn new(any: bool) -> Scheduled {
        Scheduled { any, taken: Vec::new(), spans: Vec::new() }
    }

    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let taken = self.taken.iter().flat_map(|taken| taken.copies.iter().map(|(_, number, _)| *number));
        taken.chain(self.spans.iter().flat_map(|span| span.copies.iter().map(|(_, number)| *number)))
    }

    /// Whether there is one of this hour.
    fn has_hour(&self, now_ms: u64) -> bool {
        self.taken.iter().any(|taken| taken.created_ms / HOUR_MS == now_ms / HOUR_MS)
    }
}

impl Records {
    /// From now on snapshots may be taken.
    pub fn begin_span(&self) {
        if !self.scheduled.borrow().any {
            return;
        }
        let copies: Vec<(u32, u32)> =
            self.hosts.iter().map(|volume| (volume.volume, self.new_number())).collect();
        let ticket = self.shared.oracle.borrow_mut().begin_snapshots(copies.clone());
        let from_ms = self.shared.world.wall_clock_ms();
        self.scheduled.borrow_mut().spans.push(Span { ticket, copies, from_ms, until_ms: None });
    }

    /// The array has ended.
    pub fn cut_off_spans(&self) {
        let now_ms = self.shared.world.wall_clock_ms();
        let mut scheduled = self.scheduled.borrow_mut();
        scheduled.spans.iter_mut().for_each(|span| span.until_ms = span.until_ms.or(Some(now_ms)));
    }

    /// Nothing is due any more.
    fn end_spans(&self) {
        let spans = std::mem::take(&mut self.scheduled.borrow_mut().spans);
        let mut oracle = self.shared.oracle.borrow_mut();
        spans.iter().for_each(|span| oracle.end_snapshots(span.ticket));
        drop(oracle);
        self.forget_numbers();
    }

    /// Looks at a list of all snapshots for those of the schedule.
    pub fn see_scheduled(&self, list: &[SnapshotStatus]) -> Result<(), String> {
        let mut by_name: BTreeMap<&str, Vec<&SnapshotStatus>> = BTreeMap::new();
        for one in list.iter().filter(|one| one.schedule.is_some()) {
            by_name.entry(&one.name).or_default().push(one);
        }
        if by_name.len() > KEPT as usize {
            return Err(format!("of a schedule that keeps {KEPT} there are {:?}", by_name.keys()));
        }
        let mut scheduled = self.scheduled.borrow_mut();
        let before = scheduled.taken.len();
        scheduled.taken.retain(|taken| by_name.contains_key(taken.name.as_str()));
        (scheduled.taken.len()..before).for_each(|_| Sight::Expired.seen());
        for (name, group) in by_name {
            let same_moment = group.iter().all(|one| one.created_ms == group[0].created_ms);
            if group.len() != self.hosts.len() || !same_moment {
                return Err(format!("snapshots {name} are not of all volumes at one moment: {group:?}"));
            }
            if scheduled.taken.iter().all(|taken| taken.name != name) {
                let taken = self.take_over(&mut scheduled, &group);
                scheduled.taken.push(taken);
            }
        }
        drop(scheduled);
        self.forget_numbers();
        Ok(())
    }

    fn take_over(&self, scheduled: &mut Scheduled, group: &[&SnapshotStatus]) -> Taken {
        let created_ms = group[0].created_ms;
        let fits = |span: &&Span| {
            span.from_ms <= created_ms && span.until_ms.is_none_or(|until_ms| created_ms <= until_ms)
        };
        let mut copies = Vec::new();
        if let Some(span) = scheduled.spans.iter().find(fits) {
            let mut oracle = self.shared.oracle.borrow_mut();
            oracle.end_snapshots(span.ticket);
            for &(volume, number) in &span.copies {
                let name = format!("volume{volume}");
                let status = group.iter().find(|one| one.volume == name);
                let blocks = status.map_or(0, |one| one.size_bytes / BLOCK_BYTES as u64);
                oracle.cut_volume(number, blocks);
                copies.push((volume, number, blocks));
            }
        }
        let numbers: Vec<u32> = copies.iter().map(|(_, number, _)| *number).collect();
        scheduled.spans.retain(|span| span.copies.iter().all(|(_, number)| !numbers.contains(number)));
        Taken { name: group[0].name.clone(), created_ms, copies }
    }
}

impl Administrator {
    /// The schedule is made, if it is not there.
    pub async fn make_schedule(&self) {
        if !self.records.scheduled.borrow().any || self.records.state().schedule {
            return;
        }
        self.records.begin_span();
        let volumes = self.records.hosts.iter().map(|volume| format!("volume{}", volume.volume)).collect();
        self.execute(Order::CreateSchedule { volumes }).await;
        self.wait_for_schedule().await;
    }

    /// An hour passes.
    pub async fn let_an_hour_pass(&self) {
        self.records.begin_span();
        self.records.shared.world.suspend(HOUR_MS);
        self.wait_for_schedule().await;
    }

    /// Until this hour's snapshots are there.
    pub async fn wait_for_schedule(&self) {
        let records = &self.records;
        if !records.state().schedule {
            return;
        }
        records.begin(Kind::Scheduled, records.worlds.borrow().clone());
        loop {
            if let Some((_, list)) = self.look().await {
                if let Err(what) = records.see_scheduled(&list) {
                    return self.fail(what);
                }
                if records.scheduled.borrow().has_hour(records.shared.world.wall_clock_ms()) {
                    break;
                }
            }
            self.io.sleep(LOOK_AGAIN).await;
        }
        records.end(true);
        records.end_spans();
    }

    /// At the end: the schedule goes, and what it has taken.
    pub async fn end_schedule(&self) -> Result<(), String> {
        let was_there = |state: &mut State| std::mem::take(&mut state.schedule);
        if !self.records.worlds.borrow_mut().iter_mut().any(was_there) {
            return Ok(());
        }
        let order = ScheduleOrder::Delete { name: SCHEDULE.to_owned() };
        let mut commands = vec![Command::Schedule { order, dry_run: false }];
        for _ in 0..TRIES {
            let mut left = false;
            for asked in std::mem::take(&mut commands) {
                if command(&self.io, &self.outside, asked.clone()).await.is_err() {
                    commands.push(asked);
                    left = true;
                }
            }
            let Some((_, list)) = self.look().await else { continue };
            for one in list.iter().filter(|one| one.schedule.is_some()) {
                let (volume, snapshot) = (one.volume.clone(), one.name.clone());
                let order = CopyOrder::DeleteSnapshot { volume, snapshot };
                let asked = Command::Copy { order, dry_run: false };
                left = true;
                if !commands.contains(&asked) {
                    commands.push(asked);
                }
            }
            if !left {
                self.records.see_scheduled(&list)?;
                return Ok(());
            }
            self.io.sleep(LOOK_AGAIN).await;
        }
        Err("the schedule, or what it has taken, stays although nothing goes wrong any more".to_owned())
    }
}
