//! The effective settings of a pool: the administrator's values, and the program's defaults for the rest.

use catalog::POOL_SETTINGS;

use api::{NewSettings, PoolSettings};

pub(crate) use catalog::period;

/// The settings as they are shown.
pub(crate) fn status(settings: &catalog::PoolSettings) -> PoolSettings {
    settings.into()
}

/// The settings after a change.
pub(crate) fn changed(before: &catalog::PoolSettings, new: &NewSettings) -> catalog::PoolSettings {
    let before = if new.defaults { catalog::PoolSettings::default() } else { *before };
    let (mut values, new) = (before.values(), new.values());
    values.iter_mut().zip(new).for_each(|(value, new)| *value = new.or(*value));
    catalog::PoolSettings::from_values(values)
}

/// The settings for people, one a line.
pub(crate) fn lines(settings: &catalog::PoolSettings) -> Vec<String> {
    let now = status(settings);
    let choice = |set: bool| if set { "" } else { " (default)" };
    let mut lines = Vec::new();
    for ((setting, set), value) in POOL_SETTINGS.iter().zip(settings.values()).zip(now.values()) {
        match (setting.may_be_off && value == 0, setting.line) {
            (true, _) => lines.push(setting.line_off.to_owned()),
            (false, "") => {}
            (false, line) => {
                lines.push(line.replace("{}", &setting.unit.show(value)) + choice(set.is_some()))
            }
        }
        if setting.option == "slow-factor" && value > 0 {
            lines.push(format!(
                "slow drives: emptied when {value} times slower than their siblings, at {} ms or more, for {}{}",
                now.slow_latency_ms,
                period(now.slow_seconds),
                choice(settings.slow_factor.or(settings.slow_latency_ms).or(settings.slow_seconds).is_some())
            ));
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn what_is_not_set_is_the_programs_choice() {
        let defaults = catalog::PoolSettings::default();
        assert_eq!(status(&defaults), PoolSettings::default());
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
