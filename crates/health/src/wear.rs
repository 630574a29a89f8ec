//! When the endurance of a drive is used up, at the rate of lately. Pure.

use serde::{Deserialize, Serialize};

use crate::Reading;

pub const DAY_MS: u64 = 86_400_000;
/// No forecast goes further.
const YEARS_MAX: u64 = 20;
/// Below that, a percentage is too coarse to reckon with.
const USED_PERCENT_MIN: u16 = 3;

/// What a drive said at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WearPoint {
    pub at_ms: u64,
    pub used_percent: Option<u16>,
    pub written_bytes: Option<u64>,
    pub media_errors: Option<u64>,
}

/// What a forecast stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// Bytes written a day, in the last 30 days.
    Written,
    /// The percentage, over the last 180 days.
    Percent,
    /// All of its life, in which it may have been used otherwise: only a hint.
    WholeLife,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunsOut {
    pub at_ms: u64,
    pub basis: Basis,
}

/// `points`: what was noted earlier, the oldest first. `None`: nothing is known, or it lasts longer than anybody plans.
pub fn runs_out(points: &[WearPoint], now: &Reading, clock_ms: u64) -> Option<RunsOut> {
    let used = now.used_percent.filter(|used| *used < 100)?;
    let by_rate =
        [(Basis::Written, written(points, now, clock_ms)), (Basis::Percent, percent(points, now, clock_ms))];
    let by_rate = by_rate.into_iter().filter_map(|(basis, per_day)| Some((basis, per_day?)));
    let (basis, per_day) = by_rate
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .or_else(|| Some((Basis::WholeLife, whole_life(now)?)))?;
    let days = f64::from(100 - used) / per_day;
    let is_near = days.is_finite() && days < (YEARS_MAX * 365) as f64;
    is_near.then(|| RunsOut { at_ms: clock_ms + (days * DAY_MS as f64) as u64, basis })
}

/// Points of the last so many days, and how many days the oldest of them is old.
fn since(points: &[WearPoint], clock_ms: u64, days: u64) -> impl Iterator<Item = (f64, &WearPoint)> {
    let from = clock_ms.saturating_sub(days * DAY_MS);
    let lately = points.iter().filter(move |point| point.at_ms >= from && point.at_ms < clock_ms);
    lately.map(move |point| ((clock_ms - point.at_ms) as f64 / DAY_MS as f64, point))
}

/// Percent a day.
fn written(points: &[WearPoint], now: &Reading, clock_ms: u64) -> Option<f64> {
    let used = now.used_percent.filter(|used| *used >= USED_PERCENT_MIN)?;
    let all = now.written_bytes.filter(|bytes| *bytes > 0)?;
    let (days, before) =
        since(points, clock_ms, 30).find_map(|(days, point)| Some((days, point.written_bytes?)))?;
    let lately = all.checked_sub(before).filter(|bytes| *bytes > 0 && days >= 7.0)?;
    // the percentage is rounded down
    let per_byte = (f64::from(used) + 0.5) / all as f64;
    Some(per_byte * lately as f64 / days)
}

/// Percent a day.
fn percent(points: &[WearPoint], now: &Reading, clock_ms: u64) -> Option<f64> {
    let used = now.used_percent?;
    let (days, before) =
        since(points, clock_ms, 180).find_map(|(days, point)| Some((days, point.used_percent?)))?;
    let steps = used.checked_sub(before).filter(|steps| *steps >= 2 && days >= 14.0)?;
    Some(f64::from(steps) / days)
}

/// Percent a day.
fn whole_life(now: &Reading) -> Option<f64> {
    let used = now.used_percent.filter(|used| *used >= USED_PERCENT_MIN)?;
    let hours = now.power_on_hours.filter(|hours| *hours >= 30 * 24)?;
    Some(f64::from(used) * 24.0 / hours as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reading;

    const NOW: u64 = 1_000 * DAY_MS;

    fn point(days_ago: u64, used_percent: u16, written_bytes: Option<u64>) -> WearPoint {
        WearPoint {
            at_ms: NOW - days_ago * DAY_MS,
            used_percent: Some(used_percent),
            written_bytes,
            media_errors: None,
        }
    }

    /// Days until it runs out, and what that stands on.
    fn days(points: &[WearPoint], now: &Reading) -> Option<(u64, Basis)> {
        runs_out(points, now, NOW).map(|out| ((out.at_ms - NOW) / DAY_MS, out.basis))
    }

    #[test]
    fn the_rate_of_lately_counts() {
        let now = Reading {
            used_percent: Some(50),
            written_bytes: Some(505_000),
            power_on_hours: Some(10_000),
            ..reading()
        };
        // 50.5 % for 505,000 bytes; 1,000 bytes a day: 0.1 % a day
        let lately = [point(20, 49, Some(485_000)), point(10, 50, Some(500_000))];
        assert_eq!(days(&lately, &now), Some((500, Basis::Written)));
        // a week is needed
        assert_eq!(
            days(&lately[1..], &Reading { power_on_hours: None, ..now.clone() }).map(|(_, basis)| basis),
            Some(Basis::Written)
        );
        let short = [point(6, 50, Some(500_000))];
        assert_eq!(days(&short, &now), Some((416, Basis::WholeLife)));
        // the faster one of two rates
        let steep = [point(100, 30, None), point(20, 49, Some(485_000))];
        assert_eq!(days(&steep, &now), Some((250, Basis::Percent)));
        // one step of 1 % says nothing
        let flat = [point(100, 49, None)];
        assert_eq!(days(&flat, &now), Some((416, Basis::WholeLife)));
    }

    #[test]
    fn nobody_plans_for_more_than_twenty_years_or_by_nothing() {
        let now = Reading { used_percent: Some(3), power_on_hours: Some(60_000), ..reading() };
        assert_eq!(days(&[], &now), None);
        for used_percent in [None, Some(2), Some(100), Some(255)] {
            let now = Reading { used_percent, power_on_hours: Some(1_000), ..reading() };
            assert_eq!(days(&[], &now), None, "{used_percent:?}");
        }
        // idle, and points of the future
        let idle = Reading { used_percent: Some(50), written_bytes: Some(1_000), ..reading() };
        assert_eq!(days(&[point(20, 50, Some(1_000))], &idle), None);
        let future = WearPoint { at_ms: NOW + DAY_MS, ..point(0, 1, Some(1)) };
        assert_eq!(days(&[future], &idle), None);
    }
}
