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
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    moment(text, now.as_millis() as u64)
}

fn moment(text: &str, now_ms: u64) -> Result<u64, String> {
    if let Some(ms) = parse_moment(text) {
        return Ok(ms);
    }
    let unit_ms = match text.chars().last() {
        Some('s') => 1_000,
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        Some('w') => 7 * 86_400_000,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1)).and_then(|number| number.parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(unit_ms)).filter(|_| unit_ms > 0) {
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
