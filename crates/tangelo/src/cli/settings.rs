//! The options of `tangelo pool set`, which follow from the table of settings.

use catalog::{POOL_SETTINGS, PoolSetting, Unit};
use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// What was given for each setting, in the order of the table; 0: off.
#[derive(Debug)]
pub struct Settings(pub [Option<u32>; POOL_SETTINGS.len()]);

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        POOL_SETTINGS.into_iter().filter(|setting| !setting.option.is_empty()).fold(
            command,
            |command, setting| {
                let argument = Arg::new(setting.option).long(setting.option).help(setting.help);
                let value = move |text: &str| value(&setting, text);
                command.arg(argument.value_name(value_name(setting.unit)).value_parser(value))
            },
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Settings::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Settings, Error> {
        let given = |setting: PoolSetting| match setting.option {
            "" => None,
            option => matches.get_one::<u32>(option).copied(),
        };
        Ok(Settings(POOL_SETTINGS.map(given)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Settings::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What stands for the value in the help.
fn value_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "PERCENT",
        Unit::Count | Unit::Times => "N",
        Unit::Milliseconds => "MS",
        Unit::Seconds => "TIME",
    }
}

/// What was typed, in the setting's unit. Bounds are the array's to check, except where a number is no percentage.
fn value(setting: &PoolSetting, text: &str) -> Result<u32, String> {
    let number = || text.parse::<u32>().map_err(|error| error.to_string());
    match setting.unit {
        Unit::Percent => {
            let PoolSetting { min, max, .. } = *setting;
            let percent = number()?;
            let fits = (min..=max).contains(&percent);
            if fits { Ok(percent) } else { Err(format!("{percent} is not in {min}..={max}")) }
        }
        Unit::Times if setting.may_be_off => factor_or_off(text),
        Unit::Seconds if setting.may_be_off => period_or_off(text),
        Unit::Seconds => period(text),
        Unit::Count | Unit::Times | Unit::Milliseconds => number(),
    }
}

/// 0 for off.
fn factor_or_off(text: &str) -> Result<u32, String> {
    let factor = if text == "off" { Some(0) } else { text.parse().ok().filter(|&factor| factor >= 2) };
    factor.ok_or_else(|| "give a number from 2 on, or off".to_owned())
}

/// A time in seconds: a number with s, min, h or d.
fn period(text: &str) -> Result<u32, String> {
    let wrong = || "give a number with s, min, h or d, such as 10min or 7d".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds: u32 = match unit {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).filter(|&seconds| seconds > 0).ok_or_else(wrong)
}

/// 0 for off.
pub(super) fn period_or_off(text: &str) -> Result<u32, String> {
    if text == "off" { Ok(0) } else { period(text).map_err(|why| format!("{why}; or off")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page for administrators has a row for each option, with its default.
    #[test]
    fn each_option_is_documented_with_its_default() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap();
        for setting in POOL_SETTINGS.iter().filter(|setting| !setting.option.is_empty()) {
            let default = match setting.unit {
                Unit::Seconds => catalog::period(setting.default).replace(' ', ""),
                _ => setting.default.to_string(),
            };
            let row = format!("| `--{} {}` | {default} | ", setting.option, value_name(setting.unit));
            assert!(page.contains(&row), "docs/configuration.md lacks {row:?}");
        }
    }
}
