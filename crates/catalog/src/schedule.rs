//! Schedules: automatic snapshots of some volumes at one moment, and how many of them are kept.
//!
//! What always holds: a schedule keeps at least one snapshot; its volumes exist, in the bin or outside. A schedule
//! deletes only snapshots that were taken by a schedule of its name.

use std::collections::BTreeMap;

use base::VolumeId;
use base::calendar::{CLOCK_STEP_MS, Date, Period};
use base::limits::{NAME_BYTES_MAX, SCHEDULE_KEEPS_MAX, SCHEDULES_MAX, SNAPSHOTS_AT_ONCE_MAX};
use serde::{Deserialize, Serialize};

use crate::error::{CatalogError, check_room};
use crate::model::{Catalog, Volume};
use crate::name::Name;
use crate::snapshot::Snapshot;

/// The suffix that a schedule's name gets to name a snapshot.
const MOMENT_BYTES: usize = "-20000101T0000Z".len();

/// How many snapshots are kept: the first of each of the last N hours, days, weeks and months (UTC).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    pub hourly: u32,
    pub daily: u32,
    /// From Monday on.
    pub weekly: u32,
    pub monthly: u32,
}

/// A schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub name: Name,
    /// In order, each once.
    #[serde(with = "crate::fields::volumes")]
    pub volumes: Vec<VolumeId>,
    pub keep: Retention,
    /// When snapshots were last taken: wall clock, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<u64>,
}

impl Retention {
    fn of(&self) -> [(Period, u32); 4] {
        [
            (Period::Hour, self.hourly),
            (Period::Day, self.daily),
            (Period::Week, self.weekly),
            (Period::Month, self.monthly),
        ]
    }

    /// How often snapshots are taken: as often as one is kept.
    fn period(&self) -> Option<Period> {
        self.of().into_iter().find(|(_, keeps)| *keeps > 0).map(|(period, _)| period)
    }

    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        if self.period().is_none() {
            return Err(CatalogError::KeepsNothing);
        }
        match self.of().iter().find(|(_, keeps)| *keeps > SCHEDULE_KEEPS_MAX) {
            None => Ok(()),
            Some(&(_, value)) => {
                let what = "the number of snapshots that are kept";
                Err(CatalogError::Setting { what, value, min: 0, max: SCHEDULE_KEEPS_MAX })
            }
        }
    }

    /// Of moments at which snapshots were taken, in that order, as the clock told them: which are not kept. The last one always is.
    fn expired(&self, taken_ms: &[u64]) -> Vec<usize> {
        let mut kept = vec![false; taken_ms.len()];
        kept.last_mut().into_iter().for_each(|newest| *newest = true);
        for (period, keeps) in self.of() {
            // the clock may have been set back: what counts is that it told another period than before
            let is_first =
                |&at: &usize| at == 0 || period.index(taken_ms[at - 1]) != period.index(taken_ms[at]);
            let firsts = (0..taken_ms.len()).rev().filter(is_first).take(keeps as usize);
            firsts.for_each(|first| kept[first] = true);
        }
        (0..kept.len()).filter(|&at| !kept[at]).collect()
    }
}

impl Schedule {
    pub fn is_due(&self, now_ms: u64) -> bool {
        let Some(period) = self.keep.period() else { return false };
        // a clock that was set back a little has not begun another period; one that was far ahead is believed now
        let set_back = |last: u64| last > now_ms && last - now_ms < CLOCK_STEP_MS;
        self.last_ms.is_none_or(|last| period.index(last) != period.index(now_ms) && !set_back(last))
    }

    /// When it is due next.
    pub fn next_ms(&self, now_ms: u64) -> u64 {
        match (self.keep.period(), self.last_ms) {
            (Some(period), Some(last)) if !self.is_due(now_ms) => period.next(last),
            _ => now_ms,
        }
    }
}

impl Catalog {
    /// In order of their names.
    pub fn schedules(&self) -> &[Schedule] {
        &self.schedules
    }

    pub fn find_schedule(&self, name: &str) -> Option<&Schedule> {
        self.schedules.iter().find(|schedule| schedule.name.as_str() == name)
    }

    /// The volumes of a schedule of which snapshots can be taken: those that are not in the bin.
    pub fn scheduled<'a>(&'a self, schedule: &'a Schedule) -> impl Iterator<Item = &'a Volume> + 'a {
        schedule.volumes.iter().filter_map(|&volume| self.volume(volume))
    }

    /// Expired snapshots of a schedule, of volumes that are not in the bin. If the time of a snapshot is in the future, the clock was wrong
    /// then or is wrong now: such snapshots are not deleted, and do not cause others to expire.
    fn expired(&self, schedule: &Schedule, now_ms: u64) -> Vec<&Snapshot> {
        let mut taken: BTreeMap<VolumeId, Vec<&Snapshot>> = BTreeMap::new();
        let by_it = |one: &&Snapshot| one.schedule.as_ref() == Some(&schedule.name);
        let past = |one: &&Snapshot| one.created_ms <= now_ms + CLOCK_STEP_MS;
        for snapshot in self.snapshots.iter().filter(by_it).filter(past) {
            taken.entry(snapshot.volume).or_default().push(snapshot);
        }
        let mut expired = Vec::new();
        for taken in taken.into_values() {
            // in the order in which they were taken, whatever the clock said then
            let moments: Vec<u64> = taken.iter().map(|snapshot| snapshot.created_ms).collect();
            expired.extend(schedule.keep.expired(&moments).into_iter().map(|at| taken[at]));
        }
        expired
    }

    pub(crate) fn create_schedule(
        &mut self,
        name: &Name,
        volumes: &[String],
        keep: Retention,
    ) -> Result<(), CatalogError> {
        if self.find_schedule(name.as_str()).is_some() {
            return Err(CatalogError::Exists { kind: "schedule", name: name.clone() });
        }
        check_room("schedule", self.schedules.len(), SCHEDULES_MAX)?;
        check_schedule_name(name)?;
        keep.check()?;
        if !(1..=SNAPSHOTS_AT_ONCE_MAX).contains(&volumes.len()) {
            return Err(CatalogError::SnapshotCount { count: volumes.len() });
        }
        let mut ids = Vec::new();
        for wanted in volumes {
            let volume = &self.volumes[self.volume_index(wanted)?];
            if volume.place().is_none() {
                return Err(CatalogError::NotInPool { volume: volume.name.clone() });
            }
            if ids.contains(&volume.id) {
                return Err(CatalogError::SnapshotTwice { volume: wanted.clone() });
            }
            ids.push(volume.id);
        }
        ids.sort_unstable();
        let place = self.schedules.partition_point(|other| other.name < *name);
        self.schedules.insert(place, Schedule { name: name.clone(), volumes: ids, keep, last_ms: None });
        Ok(())
    }

    pub(crate) fn schedule_index(&self, name: &str) -> Result<usize, CatalogError> {
        let found = self.schedules.iter().position(|schedule| schedule.name.as_str() == name);
        found.ok_or_else(|| CatalogError::NotFound { kind: "schedule", name: name.to_owned() })
    }

    pub(crate) fn delete_schedule(&mut self, name: &str) -> Result<(), CatalogError> {
        let index = self.schedule_index(name)?;
        self.schedules.remove(index);
        Ok(())
    }

    /// Takes snapshots of these volumes of a schedule, notes when, and deletes those that it keeps no longer.
    pub(crate) fn run_schedule(
        &mut self,
        name: &str,
        volumes: &[VolumeId],
        now_ms: u64,
        keep_all: bool,
    ) -> Result<(), CatalogError> {
        let index = self.schedule_index(name)?;
        let schedule = self.schedules[index].name.clone();
        let Date { year, month, day, hour, minute } = Date::of(now_ms);
        let snapshot =
            format!("{schedule}-{year:04}{month:02}{day:02}T{hour:02}{minute:02}Z").parse::<Name>()?;
        let name_of = |&id: &VolumeId| Some((self.volume(id)?.name.to_string(), snapshot.clone()));
        let snapshots: Vec<_> = volumes.iter().filter_map(name_of).collect();
        self.take_snapshots(&snapshots, now_ms)?;
        let taken = self.snapshots.len() - snapshots.len();
        self.snapshots[taken..].iter_mut().for_each(|one| one.schedule = Some(schedule.clone()));
        self.schedules[index].last_ms = Some(now_ms);
        if !keep_all {
            self.expire(index, now_ms);
        }
        Ok(())
    }

    fn expire(&mut self, index: usize, now_ms: u64) {
        let expired = self.expired(&self.schedules[index], now_ms);
        let expired: Vec<Snapshot> = expired.into_iter().cloned().collect();
        // the newest first: what stood on it stands on the one below, which may go next
        for gone in expired.iter().rev() {
            self.snapshots.retain(|other| other.layer != gone.layer);
            self.stand_lower(gone);
        }
    }

    /// A volume is gone for good.
    pub(crate) fn unschedule(&mut self, volume: VolumeId) {
        self.schedules.iter_mut().for_each(|schedule| schedule.volumes.retain(|&other| other != volume));
    }

    /// Of a decoded catalog: what is wrong with its schedules.
    pub(crate) fn check_schedules(&self) -> Result<(), String> {
        if !self.schedules.is_sorted_by(|a, b| a.name < b.name) {
            return Err("schedules out of order".to_owned());
        }
        for schedule in &self.schedules {
            let in_pool = |id: &VolumeId| {
                let mut found = self.all_volumes().filter(|volume| volume.id == *id);
                found.any(|volume| volume.place().is_some())
            };
            let sound = schedule.volumes.is_sorted_by(|a, b| a < b)
                && schedule.volumes.len() <= SNAPSHOTS_AT_ONCE_MAX
                && schedule.volumes.iter().all(in_pool)
                && schedule.keep.check().is_ok();
            if !sound {
                return Err(format!("schedule {} is impossible", schedule.name));
            }
        }
        Ok(())
    }
}

/// A snapshot's name is the schedule's with the moment behind it.
pub(crate) fn check_schedule_name(name: &Name) -> Result<(), CatalogError> {
    let (length, max) = (name.as_str().len(), NAME_BYTES_MAX - MOMENT_BYTES);
    if length > max {
        return Err(crate::name::NameError::TooLong { length, max }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    /// 2023-11-14 22:13:20, a Tuesday.
    const START: u64 = 1_700_000_000_000;

    /// What is left of snapshots that were taken for so many hours, as the hours at which they were.
    fn left_after(keep: Retention, hours: u64) -> Vec<u64> {
        let mut taken: Vec<u64> = Vec::new();
        for hour in 0..hours {
            taken.push(START + hour * HOUR);
            let expired = keep.expired(&taken);
            let kept = taken.iter().enumerate().filter(|(at, _)| !expired.contains(at));
            taken = kept.map(|(_, ms)| *ms).collect();
        }
        taken.into_iter().map(|ms| (ms - START) / HOUR).collect()
    }

    #[test]
    fn the_first_of_each_period_is_kept() {
        let hourly = Retention { hourly: 3, ..Retention::default() };
        assert_eq!(left_after(hourly, 10), [7, 8, 9]);
        let daily = Retention { hourly: 2, daily: 3, ..Retention::default() };
        // days begin at the hours 2, 26, 50 and 74
        assert_eq!(left_after(daily, 80), [26, 50, 74, 78, 79]);
        let all = Retention { hourly: 1, daily: 2, weekly: 2, monthly: 2 };
        // 375 days later it is the evening of a Saturday: two Mondays, two firsts of a month, and that day
        let left = left_after(all, 9000);
        let dates = left.iter().map(|hour| Date::of(START + hour * HOUR));
        let short: Vec<_> = dates.map(|date| (date.year, date.month, date.day, date.hour)).collect();
        let days = [(10, 1), (11, 1), (11, 11), (11, 18), (11, 22), (11, 23)];
        let firsts = days.map(|(month, day)| (2024, month, day, 0));
        assert_eq!(short, [firsts.as_slice(), &[(2024, 11, 23, 21)]].concat());
    }

    #[test]
    fn what_was_just_taken_is_kept_whatever_the_clock_said_before() {
        let keep = Retention { hourly: 2, daily: 2, ..Retention::default() };
        let year = 9000 * HOUR;
        // a year ahead, then right again; and a clock that is behind
        let taken =
            [START, START + HOUR, START + year, START + year + HOUR, START + 4 * HOUR, START + 5 * HOUR];
        assert_eq!(keep.expired(&taken), [0, 1, 3], "the first of that day a year ahead, and the last two");
        assert_eq!(keep.expired(&[START, START + HOUR, 0, HOUR]), [1]);
    }

    #[test]
    fn due_once_in_a_period() {
        let keep = Retention { daily: 2, ..Retention::default() };
        let mut schedule =
            Schedule { name: "nightly".parse().unwrap(), volumes: Vec::new(), keep, last_ms: None };
        assert!(schedule.is_due(START));
        schedule.last_ms = Some(START);
        assert!(!schedule.is_due(START + HOUR) && schedule.is_due(START + 2 * HOUR));
        assert_eq!(schedule.next_ms(START), START - START % (24 * HOUR) + 24 * HOUR);
        schedule.last_ms = Some(START + 2 * HOUR);
        assert!(!schedule.is_due(START + 2 * HOUR - HOUR / 2), "the clock was set back");
        schedule.last_ms = Some(START + 9000 * HOUR);
        assert!(schedule.is_due(START), "the clock had been far ahead");
        schedule.last_ms = Some(START);
        assert_eq!(schedule.next_ms(START + 50 * HOUR), START + 50 * HOUR, "at once");
    }
}
