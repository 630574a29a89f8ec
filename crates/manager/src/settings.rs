//! The effective settings of a pool: the administrator's values, and the program's defaults for the rest.

use catalog::{POOL_SETTING_NAMES, POOL_SETTINGS};

use api::{NewSettings, PoolSettings, PoolStep};

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

/// What holds of each setting.
pub(crate) fn steps(pool: &str, settings: &catalog::PoolSettings) -> Vec<PoolStep> {
    let now = status(settings);
    let mut steps = Vec::new();
    for (index, setting) in POOL_SETTINGS.iter().enumerate() {
        let (set, value) = (settings.values()[index], now.values()[index]);
        let is_off = setting.may_be_off && value == 0;
        let words = if is_off { setting.line_off } else { setting.line };
        if !words.is_empty() {
            steps.push(PoolStep::SetPool {
                pool: pool.to_owned(),
                setting: POOL_SETTING_NAMES[index].to_owned(),
                value: (!is_off).then_some(value),
                is_default: set.is_none(),
            });
        }
        // it stands for the other settings about slow drives
        if setting.option == "slow-factor" && value > 0 {
            let set = settings.slow_factor.or(settings.slow_latency_ms).or(settings.slow_seconds);
            steps.push(PoolStep::SetSlowDrives {
                pool: pool.to_owned(),
                slow_factor: value,
                slow_latency_ms: now.slow_latency_ms,
                slow_seconds: now.slow_seconds,
                is_default: set.is_none(),
            });
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value of the time between scrubs, and whether it is the program's choice.
    fn scrub_of(settings: &catalog::PoolSettings) -> (Option<u32>, bool) {
        let scrub = |step| match step {
            PoolStep::SetPool { setting, value, is_default, .. } if setting == "scrub_every_seconds" => {
                Some((value, is_default))
            }
            _ => None,
        };
        steps("fast", settings).into_iter().find_map(scrub).expect("the setting has a step")
    }

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
        assert_eq!(scrub_of(&set), (Some(604_800), false));
        let off = changed(&set, &NewSettings { scrub_every_seconds: Some(0), ..NewSettings::default() });
        assert_eq!((off.read_errors, status(&off).scrub_every_seconds), (Some(9), None));
        assert_eq!(scrub_of(&off), (None, false));
        assert_eq!(scrub_of(&defaults), (Some(30 * 86_400), true));
        assert_eq!(changed(&set, &NewSettings { defaults: true, ..NewSettings::default() }), defaults);
    }
}
