//! `tangelo events`, and the points in time that it accepts.

use std::time::{SystemTime, UNIX_EPOCH};

use base::calendar::parse_moment;
use clap::Args;

#[derive(Args, Debug)]
pub struct Events {
    /// Go on, and show each further event when it happens
    #[arg(short, long)]
    pub follow: bool,
    /// Only events since then: a time ago (90m, 2h, 3d), or a moment in UTC (2026-11-27, "2026-11-27 02:04")
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<u64>,
    /// The newest so many events, where no --since is given
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, conflicts_with = "since", value_parser = clap::value_parser!(u64).range(..=base::limits::EVENTS_AT_ONCE_MAX as u64))]
    pub limit: u64,
}

/// Milliseconds since 1970.
fn since(text: &str) -> Result<u64, String> {
    moment(text, now_ms())
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Milliseconds of a time with its unit: s, m, h, d or w.
pub(super) fn time_ms(text: &str) -> Option<u64> {
    let unit_ms = match text.chars().last()? {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        'w' => 7 * 86_400_000,
        _ => return None,
    };
    text.get(..text.len() - 1)?.parse::<u64>().ok()?.checked_mul(unit_ms)
}

fn moment(text: &str, now_ms: u64) -> Result<u64, String> {
    if let Some(ms) = parse_moment(text) {
        return Ok(ms);
    }
    match time_ms(text) {
        Some(ago_ms) => Ok(now_ms.saturating_sub(ago_ms)),
        None => {
            Err("not a time ago (90m, 2h, 3d) and not a moment (2026-11-27, \"2026-11-27 02:04\")".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let now_ms = 1_700_000_000_000;
        let table = [
            ("0s", Some(now_ms)),
            ("90m", Some(now_ms - 5_400_000)),
            ("2h", Some(now_ms - 7_200_000)),
            ("1w", Some(now_ms - 604_800_000)),
            ("99999999w", Some(0)),
            ("2023-11-14", Some(1_699_920_000_000)),
            ("2023-11-14 22:13:20Z", Some(now_ms)),
            ("", None),
            ("h", None),
            ("2", None),
            ("-2h", None),
            ("2ä", None),
            ("99999999999999999999h", None),
            ("18446744073709551615w", None),
        ];
        for (text, expected) in table {
            assert_eq!(moment(text, now_ms).ok(), expected, "{text}");
        }
    }
}
