//! What is wrong with a drive, by what it says of itself. Pure: what was before and what is now give what is wrong.
//!
//! ```text
//!   temperature    warning-10   warning-5   warning        critical-3
//!        fine ──────────────────► warm ──────► hot            near shutdown
//!             ◄── 2 readings ─────   ◄─ 2 readings at warning-5
//! ```

use std::collections::VecDeque;

use api::{DriveFault, DriveLink, DriveSelfTest, ProblemFacts};

use crate::sysfs::Heat;
use crate::wear::{Basis, DAY_MS, RunsOut};
use crate::{Protocol, Reading};

/// Degrees below a threshold at which a notice begins, and by which it must fall to end.
const MARGIN: i16 = 5;
/// Degrees below the critical temperature at which a drive may soon shut itself off.
const NEAR: i16 = 3;
/// Readings in a row that a change to the better needs, and a first notice.
const READINGS: u8 = 2;
const WEARS_PERCENT: u16 = 80;
const WORN_PERCENT: u16 = 95;
const WEARS_MS: u64 = 365 * DAY_MS;
const WORN_MS: u64 = 90 * DAY_MS;
/// Increases of the media errors that are remembered one by one.
const INCREASES_MAX: usize = 64;

/// What is known at one time. A look at the temperature alone has no reading.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observation {
    pub reading: Option<Reading>,
    pub heat: Option<Heat>,
    pub link: Option<DriveLink>,
    pub runs_out: Option<RunsOut>,
    /// The media errors that were known before the first reading of this run.
    pub earlier_media_errors: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Level {
    #[default]
    Fine,
    Notice,
    Bad,
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    heat: Level,
    temperature: Option<Temperature>,
    /// Readings in a row that were warm, cooler than the present level, and away from the critical temperature.
    warm_readings: u8,
    cool_readings: u8,
    away_readings: u8,
    pub near_shutdown: bool,
    wear: Level,
    wear_facts: Option<(u16, Option<u64>)>,
    /// What it says of itself, and when it last said so.
    failing: Option<(Vec<DriveFault>, u64)>,
    /// The count of media errors, and its increases: when, and by how much.
    media_errors: Option<u64>,
    increases: VecDeque<(u64, u64)>,
    failed_test: Option<DriveSelfTest>,
    slow_readings: u8,
    link: Option<DriveLink>,
}

/// A temperature and what it is measured by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temperature {
    pub celsius: i16,
    pub warning: i16,
    pub is_stated: bool,
    /// As the drive says.
    pub critical: Option<i16>,
}

/// Whoever states a threshold is believed: the drive, else the kernel, which has asked it; else what is usual.
fn temperature(
    before: Option<Temperature>,
    protocol: Option<Protocol>,
    now: &Observation,
) -> Option<Temperature> {
    let reading = now.reading.as_ref();
    let celsius = reading.and_then(|reading| reading.celsius).or_else(|| Some(now.heat?.celsius))?;
    let stated = |of_reading: Option<i16>, of_kernel: Option<i16>, earlier: Option<i16>| {
        of_reading.or(of_kernel).or(earlier)
    };
    let (own_warning, own_critical) =
        reading.map_or((None, None), |reading| (reading.celsius_warning, reading.celsius_critical));
    let (warning, critical) =
        now.heat.map_or((None, None), |heat| (heat.celsius_warning, heat.celsius_critical));
    let earlier = before.filter(|before| before.is_stated).map(|before| before.warning);
    let critical = stated(own_critical, critical, before.and_then(|before| before.critical));
    let usual = match protocol {
        Some(Protocol::Nvme) | None => 70,
        Some(Protocol::Ata) => 65,
        Some(Protocol::Scsi) => 60,
    };
    // a warning behind the end is none
    let warning = stated(own_warning, warning, earlier)
        .filter(|warning| critical.is_none_or(|critical| *warning < critical));
    let usual = critical.map_or(usual, |critical| usual.min(critical.saturating_sub(MARGIN)));
    Some(Temperature { celsius, warning: warning.unwrap_or(usual), is_stated: warning.is_some(), critical })
}

/// What is wrong now. `protocol`: of the last reading, for a look at the temperature alone.
pub fn judge(before: &Judged, now: &Observation, protocol: Option<Protocol>, clock_ms: u64) -> Judged {
    let mut judged = before.clone();
    judged.observe_heat(temperature(before.temperature, protocol, now));
    judged.observe_link(now.link);
    if let Some(reading) = &now.reading {
        judged.observe_wear(reading, now.runs_out, clock_ms);
        judged.observe_faults(reading, clock_ms);
        judged.observe_media(reading, now.earlier_media_errors, clock_ms);
        judged.failed_test = reading.self_test.filter(|test| !test.has_passed);
    }
    judged
}

fn count(readings: &mut u8, holds: bool) -> u8 {
    *readings = if holds { readings.saturating_add(1) } else { 0 };
    *readings
}

impl Judged {
    pub fn temperature(&self) -> Option<Temperature> {
        self.temperature
    }

    fn observe_heat(&mut self, now: Option<Temperature>) {
        // one that says nothing now is not cooler
        let Some(now) = now else { return };
        self.temperature = Some(now);
        let warm_from = now.warning - MARGIN;
        let is_warm = count(&mut self.warm_readings, now.celsius >= warm_from) >= READINGS;
        let ends_at = if self.heat == Level::Bad { warm_from } else { warm_from - MARGIN };
        let is_cool = count(&mut self.cool_readings, now.celsius <= ends_at) >= READINGS;
        self.heat = match self.heat {
            _ if now.celsius >= now.warning => Level::Bad,
            Level::Bad if is_cool && now.celsius >= warm_from => Level::Notice,
            Level::Bad | Level::Notice if is_cool => Level::Fine,
            Level::Fine if is_warm => Level::Notice,
            level => level,
        };
        let near_from = now.critical.map(|critical| critical - NEAR);
        let is_away = near_from.is_none_or(|from| now.celsius <= from - MARGIN);
        let is_away = count(&mut self.away_readings, is_away) >= READINGS;
        let is_near = near_from.is_some_and(|from| now.celsius >= from);
        self.near_shutdown = is_near || self.near_shutdown && !is_away;
    }

    fn observe_link(&mut self, link: Option<DriveLink>) {
        if let Some(link) = link {
            count(&mut self.slow_readings, link.is_slow());
            self.link = Some(link);
        }
    }

    fn observe_wear(&mut self, reading: &Reading, runs_out: Option<RunsOut>, clock_ms: u64) {
        let Some(used) = reading.used_percent else { return };
        let left_ms = runs_out.map(|out| (out.at_ms.saturating_sub(clock_ms), out.basis));
        let before = self.wear;
        // a date that moves to and fro ends nothing
        let within = |level: Level, limit_ms: u64, left_ms: u64| {
            left_ms < if before >= level { limit_ms + limit_ms / 4 } else { limit_ms }
        };
        let is_soon = left_ms
            .is_some_and(|(left, basis)| basis != Basis::WholeLife && within(Level::Bad, WORN_MS, left));
        let is_foreseen = left_ms.is_some_and(|(left, _)| within(Level::Notice, WEARS_MS, left));
        self.wear = match () {
            () if (used >= WORN_PERCENT || is_soon) && !reading.is_wear_guessed => Level::Bad,
            () if used >= WEARS_PERCENT || is_foreseen => Level::Notice,
            () => Level::Fine,
        };
        self.wear_facts = Some((used, runs_out.map(|out| out.at_ms)));
    }

    fn observe_faults(&mut self, reading: &Reading, clock_ms: u64) {
        match &mut self.failing {
            _ if !reading.says_failing.is_empty() => {
                self.failing = Some((reading.says_failing.clone(), clock_ms));
            }
            Some((_, said_ms)) if clock_ms.saturating_sub(*said_ms) >= DAY_MS => self.failing = None,
            // a clock that was set back: the day begins anew
            Some((_, said_ms)) => *said_ms = (*said_ms).min(clock_ms),
            None => {}
        }
    }

    fn observe_media(&mut self, reading: &Reading, earlier: Option<u64>, clock_ms: u64) {
        if let Some(count) = reading.media_errors {
            let before = self.media_errors.or(earlier).unwrap_or(count);
            // a smaller count is another way of counting
            let new = count.saturating_sub(before);
            let is_full = self.increases.len() == INCREASES_MAX;
            if new > 0 {
                match self.increases.back_mut() {
                    Some(last) if is_full => *last = (clock_ms, last.1 + new),
                    _ => self.increases.push_back((clock_ms, new)),
                }
            }
            self.media_errors = Some(count);
        }
        for (at_ms, _) in &mut self.increases {
            *at_ms = (*at_ms).min(clock_ms);
        }
        self.increases.retain(|(at_ms, _)| clock_ms - at_ms < DAY_MS);
    }

    /// Everything that is wrong.
    pub fn problems(&self) -> Vec<ProblemFacts> {
        let heat = self.temperature.and_then(|now| {
            let Temperature { celsius, warning: celsius_warning, is_stated, critical: celsius_critical } =
                now;
            match self.heat {
                Level::Fine => None,
                Level::Notice => Some(ProblemFacts::DriveWarm { celsius, celsius_warning, is_stated }),
                Level::Bad => {
                    Some(ProblemFacts::DriveHot { celsius, celsius_warning, is_stated, celsius_critical })
                }
            }
        });
        let wear = self.wear_facts.and_then(|(used_percent, runs_out_ms)| match self.wear {
            Level::Fine => None,
            Level::Notice => Some(ProblemFacts::DriveWears { used_percent, runs_out_ms }),
            Level::Bad => Some(ProblemFacts::DriveWorn { used_percent, runs_out_ms }),
        });
        let failing =
            self.failing.as_ref().map(|(faults, _)| ProblemFacts::DriveFailing { faults: faults.clone() });
        let new: u64 = self.increases.iter().map(|(_, new)| new).sum();
        let media = self.media_errors.filter(|_| new > 0);
        let media = media.map(|all| ProblemFacts::DriveMediaErrors { new, all });
        let test = self.failed_test.map(|test| ProblemFacts::DriveTestFailed { at_hours: test.at_hours });
        let link = self.link.filter(|_| self.slow_readings >= READINGS).map(ProblemFacts::DriveLinkSlow);
        [failing, media, heat, wear, test, link].into_iter().flatten().collect()
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
