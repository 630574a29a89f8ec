//! When something is told: what does not depend on a channel's past.

use std::time::Duration;

use api::{DataSafety, Health, Problem, ProblemCode};

/// Both clocks at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Milliseconds since 1970; it may be set.
    pub wall_ms: u64,
    /// Milliseconds since some moment of this run; it never goes back.
    pub steady_ms: u64,
}

/// A time of each day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quiet {
    /// Minutes of the day, 0 to 1439. It goes over midnight if it ends before it begins.
    pub from: u16,
    pub to: u16,
    /// What local time is ahead of UTC.
    pub offset_minutes: i16,
}

impl Quiet {
    pub fn contains(&self, wall_ms: u64) -> bool {
        let minutes = (wall_ms / 60_000) as i64 + i64::from(self.offset_minutes);
        let of_day = minutes.rem_euclid(24 * 60) as u16;
        match self.from <= self.to {
            true => (self.from..self.to).contains(&of_day),
            false => of_day >= self.from || of_day < self.to,
        }
    }
}

/// What the administrator wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// What lasts is told again this often; `None`: never.
    pub repeat: Option<Duration>,
    pub quiet: Option<Quiet>,
    /// Notices are told, too.
    pub with_notices: bool,
    /// Each drive is asked for its health this often.
    pub health_every: Duration,
}

impl Rules {
    /// Whether its beginning is told at all.
    pub(crate) fn tells(&self, problem: &Problem) -> bool {
        self.with_notices || problem.health() != Health::Healthy
    }

    /// Whether it waits for the end of the quiet hours. What puts data at risk never does, nor does what is not served.
    pub(crate) fn holds_back(&self, problem: &Problem, wall_ms: u64) -> bool {
        self.quiet.is_some_and(|quiet| quiet.contains(wall_ms)) && !is_urgent(problem)
    }

    /// How long a problem that was told by an earlier run, and is not seen by this one, has not ended. Some are found only some time after
    /// a start.
    pub(crate) fn patience_ms(&self, code: ProblemCode) -> u64 {
        let every_ms = self.health_every.as_millis() as u64;
        // what drives say is asked for after a start, one drive after the other
        START_MS + if code.is_of_drive_health() { every_ms } else { 0 }
    }
}

/// A start that takes longer is told.
pub(crate) const START_MS: u64 = 120_000;

pub(crate) fn is_urgent(problem: &Problem) -> bool {
    problem.code().row().data != DataSafety::Safe || problem.health() == Health::Offline
}

/// What each head tells of itself, whether it has the array or not.
pub(crate) fn is_of_head(code: ProblemCode) -> bool {
    use ProblemCode::*;
    matches!(code, PairMaintenance | FenceUnusable | HeadNotFenced | AlertsNotDelivered)
}

/// How much of the array's problems is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All of them.
    Whole,
    /// Those of this head only: the array has not answered in time.
    Unanswered,
    /// Those of this head only: the array runs on the other one, which tells the rest.
    Head,
}

/// What is wrong at one moment, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    pub scope: Scope,
    pub problems: Vec<Problem>,
}

impl View {
    /// The array is there, and does not yet know what is wrong with it, or does not any more.
    pub(crate) fn is_between(&self) -> bool {
        let codes = [ProblemCode::ArrayStarting, ProblemCode::ArrayStopping, ProblemCode::ArrayFailed];
        self.problems.iter().any(|problem| codes.contains(&problem.code()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn quiet_hours_go_over_midnight_and_have_an_offset() {
        let quiet =
            |from: u16, to: u16, offset_minutes| Quiet { from: from * 60, to: to * 60, offset_minutes };
        let hours = |quiet: Quiet| -> Vec<u64> {
            (0..24).filter(|hour| quiet.contains(hour * HOUR_MS + 20_000 * 24 * HOUR_MS)).collect()
        };
        assert_eq!(hours(quiet(22, 2, 0)), [0, 1, 22, 23]);
        assert_eq!(hours(quiet(22, 2, 60)), [0, 21, 22, 23]);
        assert_eq!(hours(quiet(1, 3, -120)), [3, 4]);
        assert_eq!(hours(quiet(1, 3, 120)), [0, 23]);
        assert_eq!(hours(quiet(5, 5, 0)), [0; 0]);
        // a clock that was never set
        assert!(quiet(22, 2, -60).contains(0));
    }
}
