//! What a pool's settings come to: what the administrator has set, and the program's choice for the rest.

use shard::effective;

use api::{NewSettings, PoolSettings};

/// As they are shown.
pub(crate) fn status(settings: &catalog::PoolSettings) -> PoolSettings {
    let (repair_share_percent, patience) = effective(settings);
    PoolSettings {
        repair_share_percent,
        write_errors: patience.write_errors,
        read_errors: patience.read_errors,
        checksum_errors: patience.checksum_errors,
        error_window_seconds: (patience.window.0 / 1_000_000_000) as u32,
        slow_factor: patience.slow_factor,
        slow_latency_ms: (patience.slow_latency.0 / 1_000_000) as u32,
        slow_seconds: (patience.slow_time.0 / 1_000_000_000) as u32,
        hung_seconds: (patience.hung_time.0 / 1_000_000_000) as u32,
        scrub_every_seconds: settings.scrub_every_seconds(),
        bin_seconds: settings.bin_seconds(),
    }
}

/// The settings after a change.
pub(crate) fn changed(before: &catalog::PoolSettings, new: &NewSettings) -> catalog::PoolSettings {
    let before = if new.defaults { catalog::PoolSettings::default() } else { *before };
    catalog::PoolSettings {
        repair_share_percent: new.repair_share_percent.or(before.repair_share_percent),
        write_errors: new.write_errors.or(before.write_errors),
        read_errors: new.read_errors.or(before.read_errors),
        checksum_errors: new.checksum_errors.or(before.checksum_errors),
        error_window_seconds: new.error_window_seconds.or(before.error_window_seconds),
        slow_factor: new.slow_factor.or(before.slow_factor),
        slow_latency_ms: new.slow_latency_ms.or(before.slow_latency_ms),
        slow_seconds: new.slow_seconds.or(before.slow_seconds),
        hung_seconds: new.hung_seconds.or(before.hung_seconds),
        scrub_every_seconds: new.scrub_every_seconds.or(before.scrub_every_seconds),
        bin_seconds: new.bin_seconds.or(before.bin_seconds),
    }
}

/// For people to read, one a line.
pub(crate) fn lines(settings: &catalog::PoolSettings) -> Vec<String> {
    let now = status(settings);
    let choice = |set: bool| if set { "" } else { " (default)" };
    let mut lines = vec![
        format!(
            "repair share: {} %{}",
            now.repair_share_percent,
            choice(settings.repair_share_percent.is_some())
        ),
        format!(
            "write errors until a drive is out: {}{}",
            now.write_errors,
            choice(settings.write_errors.is_some())
        ),
        format!(
            "read errors until a drive is out: {}{}",
            now.read_errors,
            choice(settings.read_errors.is_some())
        ),
        format!(
            "checksum errors until a drive is out: {}{}",
            now.checksum_errors,
            choice(settings.checksum_errors.is_some())
        ),
        format!(
            "within: {}{}",
            period(now.error_window_seconds),
            choice(settings.error_window_seconds.is_some())
        ),
    ];
    lines.push(match now.slow_factor {
        0 => "slow drives: stay".to_owned(),
        factor => format!(
            "slow drives: emptied when {factor} times slower than their siblings, at {} ms or more, for {}{}",
            now.slow_latency_ms,
            period(now.slow_seconds),
            choice(settings.slow_factor.or(settings.slow_latency_ms).or(settings.slow_seconds).is_some())
        ),
    });
    let hung_choice = choice(settings.hung_seconds.is_some());
    lines.push(match now.hung_seconds {
        0 => "drives that do not answer: waited for".to_owned(),
        seconds => format!("drives that do not answer: given up after {}{hung_choice}", period(seconds)),
    });
    lines.push(match now.scrub_every_seconds {
        Some(seconds) => {
            format!("scrub: every {}{}", period(seconds), choice(settings.scrub_every_seconds.is_some()))
        }
        None => "scrub: by hand only".to_owned(),
    });
    let bin_choice = choice(settings.bin_seconds.is_some());
    lines.push(match now.bin_seconds {
        0 => "deleted volumes: gone at once".to_owned(),
        seconds => format!("deleted volumes: in the bin for {}{bin_choice}", period(seconds)),
    });
    lines
}

/// A length of time in the largest unit that says it exactly.
pub(crate) fn period(seconds: u32) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.iter().find(|(length, _)| seconds > 0 && seconds.is_multiple_of(*length));
    unit.map_or(format!("{seconds} s"), |(length, name)| format!("{} {name}", seconds / length))
}

#[cfg(test)]
mod tests {
    use pool::LaneOptions;

    use super::*;

    #[test]
    fn what_is_not_set_is_the_programs_choice() {
        let defaults = catalog::PoolSettings::default();
        assert_eq!(status(&defaults).repair_share_percent, LaneOptions::default().repair_share_percent);
        let new = NewSettings {
            read_errors: Some(9),
            scrub_every_seconds: Some(604_800),
            ..NewSettings::default()
        };
        let set = changed(&defaults, &new);
        assert_eq!((status(&set).read_errors, set.scrub_every_seconds), (9, Some(604_800)));
        assert!(lines(&set).contains(&"scrub: every 7 d".to_owned()), "{:?}", lines(&set));
        let off = changed(&set, &NewSettings { scrub_every_seconds: Some(0), ..NewSettings::default() });
        assert_eq!((off.read_errors, status(&off).scrub_every_seconds), (Some(9), None));
        assert!(lines(&off).contains(&"scrub: by hand only".to_owned()), "{:?}", lines(&off));
        assert!(
            lines(&defaults).contains(&"scrub: every 30 d (default)".to_owned()),
            "{:?}",
            lines(&defaults)
        );
        assert_eq!(changed(&set, &NewSettings { defaults: true, ..NewSettings::default() }), defaults);
    }
}
