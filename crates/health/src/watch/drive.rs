//! What is known of one drive that is watched.

use std::time::Duration;

use api::{DriveHealth, DriveLink, HealthUnread, ProblemFacts};
use tokio::time::Instant;

use crate::ask::Gate;
use crate::judge::{Judged, Observation, judge};
use crate::sysfs::Heat;
use crate::wear::RunsOut;
use crate::{Protocol, Reading};

/// Rounds without an answer, in a row, until that is a problem.
const UNREAD_MAX: u32 = 3;
/// The logs of a SATA drive are read in each of so many rounds.
const LOGS_EVERY: u32 = 6;

pub(super) struct Drive {
    pub is_used: bool,
    pub is_virtual: bool,
    pub gate: Gate,
    /// When the next round is.
    pub due: Instant,
    pub heat_read: Instant,
    pub runs_out: Option<RunsOut>,
    pub earlier_media_errors: Option<u64>,
    rounds: u32,
    /// Rounds without an answer, in a row.
    unread_rounds: u32,
    unread: Option<HealthUnread>,
    /// Rounds without a temperature, in a row.
    cold_rounds: u32,
    read_ms: Option<u64>,
    reading: Option<Reading>,
    link: Option<DriveLink>,
    judged: Judged,
}

impl Drive {
    pub fn new(due: Instant) -> Drive {
        Drive {
            is_used: false,
            // until it is known
            is_virtual: true,
            gate: Gate::default(),
            due,
            heat_read: Instant::now(),
            runs_out: None,
            earlier_media_errors: None,
            rounds: 0,
            unread_rounds: 0,
            unread: None,
            cold_rounds: 0,
            read_ms: None,
            reading: None,
            link: None,
            judged: Judged::default(),
        }
    }

    /// When it is to be asked next; `heat_every`: the temperature alone.
    pub fn next(&self, heat_every: Duration) -> Instant {
        match self.is_virtual {
            true => self.due,
            false => self.due.min(self.heat_read + heat_every),
        }
    }

    pub fn last_reading(&self) -> Option<&Reading> {
        self.reading.as_ref().filter(|_| self.unread.is_none())
    }

    fn is_sata(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.protocol == Protocol::Ata)
    }

    pub fn wants_logs(&self) -> bool {
        !self.is_sata() || self.rounds.is_multiple_of(LOGS_EVERY)
    }

    pub fn on_unread(&mut self, why: HealthUnread) {
        self.unread_rounds = self.unread_rounds.saturating_add(1);
        self.cold_rounds = self.cold_rounds.saturating_add(1);
        self.unread = Some(why);
    }

    /// smartctl is not asked for it any more: what it has said is forgotten.
    pub fn on_not_asked(&mut self) {
        if self.reading.is_some() || self.unread.is_some() {
            (self.reading, self.read_ms, self.runs_out, self.judged) = (None, None, None, Judged::default());
            (self.unread, self.unread_rounds) = (None, 0);
        }
    }

    /// `reading`: the answer of smartctl if it was asked. What the system says counts in any case.
    pub fn on_answer(
        &mut self,
        reading: Option<Result<Reading, HealthUnread>>,
        heat: Option<Heat>,
        link: Option<DriveLink>,
        clock_ms: u64,
    ) {
        let mut observation = Observation { heat, link, ..Observation::default() };
        self.link = link.or(self.link);
        match reading {
            None => {}
            Some(Err(why)) => self.on_unread(why),
            Some(Ok(reading)) => {
                let reading = self.completed(reading);
                (self.unread, self.unread_rounds, self.read_ms) = (None, 0, Some(clock_ms));
                self.rounds = self.rounds.wrapping_add(1);
                observation.runs_out = self.runs_out;
                observation.earlier_media_errors = self.earlier_media_errors;
                observation.reading = Some(reading.clone());
                self.reading = Some(reading);
            }
        }
        if heat.is_some() || observation.reading.as_ref().is_some_and(|reading| reading.celsius.is_some()) {
            self.cold_rounds = 0;
        }
        let protocol = self.reading.as_ref().map(|reading| reading.protocol);
        self.judged = judge(&self.judged, &observation, protocol, clock_ms);
    }

    /// Another drive at this path is judged anew. A reading without logs keeps what the last one with logs has said.
    fn completed(&mut self, reading: Reading) -> Reading {
        let is_same =
            |before: &&Reading| (&before.model, &before.serial) == (&reading.model, &reading.serial);
        let before = self.reading.as_ref().filter(is_same);
        let Some(before) = before else {
            (self.judged, self.rounds) = (Judged::default(), 0);
            return reading;
        };
        if self.wants_logs() {
            return reading;
        }
        Reading {
            used_percent: before.used_percent,
            is_wear_guessed: before.is_wear_guessed,
            celsius_warning: reading.celsius_warning.or(before.celsius_warning),
            celsius_critical: reading.celsius_critical.or(before.celsius_critical),
            self_test: before.self_test,
            ..reading
        }
    }

    pub fn problems(&self) -> Vec<ProblemFacts> {
        let mut problems = self.judged.problems();
        // nobody knows whether it is hot still
        let is_heat = |facts: &ProblemFacts| {
            matches!(facts, ProblemFacts::DriveWarm { .. } | ProblemFacts::DriveHot { .. })
        };
        problems.retain(|facts| self.knows_heat() || !is_heat(facts));
        let is_problem = |why: &&HealthUnread| {
            !matches!(why, HealthUnread::NotInstalled | HealthUnread::NoSmart | HealthUnread::Asleep)
        };
        let unread = self.unread.as_ref().filter(|_| self.unread_rounds >= UNREAD_MAX).filter(is_problem);
        problems.extend(unread.map(|why| ProblemFacts::DriveHealthUnknown { why: why.clone() }));
        problems
    }

    fn knows_heat(&self) -> bool {
        self.cold_rounds < UNREAD_MAX
    }

    /// `None`: nothing is known, and nothing was tried.
    pub fn health(&self) -> Option<DriveHealth> {
        let temperature = self.judged.temperature();
        if self.reading.is_none() && self.unread.is_none() && temperature.is_none() && self.link.is_none() {
            return None;
        }
        let mut health = DriveHealth {
            read_ms: self.read_ms,
            unread: self.unread.clone(),
            celsius: temperature.filter(|_| self.knows_heat()).map(|now| now.celsius),
            celsius_warning: temperature.filter(|now| now.is_stated).map(|now| now.warning),
            celsius_critical: temperature.and_then(|now| now.critical),
            near_shutdown: self.judged.near_shutdown && self.knows_heat(),
            link: self.link,
            ..DriveHealth::default()
        };
        if let Some(reading) = &self.reading {
            health.firmware = reading.firmware.clone();
            health.used_percent = reading.used_percent;
            health.runs_out_ms = self.runs_out.map(|out| out.at_ms);
            health.spare_percent = reading.spare_percent;
            health.media_errors = reading.media_errors;
            health.unsafe_shutdowns = reading.unsafe_shutdowns;
            health.power_on_hours = reading.power_on_hours;
            health.written_bytes = reading.written_bytes;
            health.self_test = reading.self_test;
        }
        Some(health)
    }
}
