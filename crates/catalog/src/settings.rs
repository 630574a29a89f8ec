//! The settings of a pool: the table of all settings, the values that the administrator has set, and the result of the
//! last scrub.
//!
//! A setting is a row of [`pool_settings`]. What stores, checks, asks for and shows settings follows from the rows; what a
//! setting does is in the code that reads it, and `docs/configuration.md` tells people about it.

use serde::{Deserialize, Serialize};

use crate::error::CatalogError;

/// The table. A row: what REST says of it, its name there and in the catalog, how it is answered (`Option`: null if it
/// is off), and the rest of its [`PoolSetting`]. New rows go to the end.
#[macro_export]
macro_rules! pool_settings {
    ($callback:ident) => {
        $callback! {
            /// The share of time that rebuilding and scrubbing may take while hosts are served: 1 to 100.
            repair_share_percent: u32 = PoolSetting {
                unit: Unit::Percent,
                default: 50, min: 1, max: 100, may_be_off: false,
                what: "the repair share, in percent",
                option: "repair-share",
                help: "The share of time that rebuilding and scrubbing may take while hosts are served",
                label: "repair share",
                line: "repair share: {}", line_off: "",
            };
            /// Failed writes of a drive, within the window, that are borne before it is taken out.
            write_errors: u32 = PoolSetting {
                unit: Unit::Count,
                default: 4, min: 1, max: 1_000_000, may_be_off: false,
                what: "the limit of write errors",
                option: "write-errors",
                help: "Failed writes within the window after which a drive is taken out",
                label: "",
                line: "write errors until a drive is out: {}", line_off: "",
            };
            /// Failed reads.
            read_errors: u32 = PoolSetting {
                unit: Unit::Count,
                default: 64, min: 1, max: 1_000_000, may_be_off: false,
                what: "the limit of read errors",
                option: "read-errors",
                help: "Failed reads within the window after which a drive is taken out",
                label: "",
                line: "read errors until a drive is out: {}", line_off: "",
            };
            /// Blocks that came back with the wrong content.
            checksum_errors: u32 = PoolSetting {
                unit: Unit::Count,
                default: 256, min: 1, max: 1_000_000, may_be_off: false,
                what: "the limit of checksum errors",
                option: "checksum-errors",
                help: "Blocks with the wrong content within the window after which a drive is taken out",
                label: "",
                line: "checksum errors until a drive is out: {}", line_off: "",
            };
            /// Errors that are older are forgiven.
            error_window_seconds: u32 = PoolSetting {
                unit: Unit::Seconds,
                default: 600, min: 1, max: 30 * DAY, may_be_off: false,
                what: "the window of errors, in seconds",
                option: "error-window",
                help: "The window; errors that are older are forgiven",
                label: "",
                line: "within: {}", line_off: "",
            };
            /// A drive so many times slower than its siblings is emptied; 0: none is.
            slow_factor: u32 = PoolSetting {
                unit: Unit::Times,
                default: 16, min: 2, max: 10_000, may_be_off: true,
                what: "the times slower than its siblings",
                option: "slow-factor",
                help: "A drive so many times slower than its siblings is emptied; or off",
                label: "",
                line: "", line_off: "slow drives: stay",
            };
            /// What is faster than this is not slow, in milliseconds.
            slow_latency_ms: u32 = PoolSetting {
                unit: Unit::Milliseconds,
                default: 2, min: 1, max: 60_000, may_be_off: false,
                what: "the latency of a slow drive, in milliseconds",
                option: "slow-latency",
                help: "What is faster than this, in milliseconds, is not slow",
                label: "",
                line: "", line_off: "",
            };
            /// For how long it must have been, without a break.
            slow_seconds: u32 = PoolSetting {
                unit: Unit::Seconds,
                default: 60, min: 1, max: DAY, may_be_off: false,
                what: "the time that a drive must have been slow, in seconds",
                option: "slow-time",
                help: "For how long a drive must have been slow",
                label: "",
                line: "", line_off: "",
            };
            /// A drive that does not answer for so long is given up, if its siblings answer; 0: never.
            hung_seconds: u32 = PoolSetting {
                unit: Unit::Seconds,
                default: 15, min: 1, max: 3600, may_be_off: true,
                what: "the time that a drive may take to answer, in seconds",
                option: "hung-time",
                help: "A drive that does not answer for so long is given up, if its siblings answer; or off",
                label: "hung drive",
                line: "drives that do not answer: given up after {}",
                line_off: "drives that do not answer: waited for",
            };
            /// Time from one scrub to the next. Where it is off: 0 in a request, null in an answer.
            scrub_every_seconds: Option<u32> = PoolSetting {
                unit: Unit::Seconds,
                default: 30 * DAY, min: 60, max: 366 * DAY, may_be_off: true,
                what: "the time between scrubs, in seconds",
                option: "",
                help: "",
                label: "",
                line: "scrub: every {}", line_off: "scrub: by hand only",
            };
            /// How long a deleted volume stays in the bin; 0: not at all.
            bin_seconds: u32 = PoolSetting {
                unit: Unit::Seconds,
                default: DAY, min: 60, max: 366 * DAY, may_be_off: true,
                what: "the time in the bin, in seconds",
                option: "bin-time",
                help: "How long a deleted volume stays in the bin, such as 1d; or off",
                label: "bin",
                line: "deleted volumes: in the bin for {}", line_off: "deleted volumes: gone at once",
            };
        }
    };
}

const DAY: u32 = 24 * 60 * 60;

/// What a setting counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Percent,
    Count,
    /// A factor.
    Times,
    Milliseconds,
    Seconds,
}

impl Unit {
    /// A value with its unit, for people.
    pub fn show(self, value: u32) -> String {
        match self {
            Unit::Percent => format!("{value} %"),
            Unit::Count | Unit::Times => value.to_string(),
            Unit::Milliseconds => format!("{value} ms"),
            Unit::Seconds => period(value),
        }
    }
}

/// A length of time in the largest unit that says it exactly.
pub fn period(seconds: u32) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.iter().find(|(length, _)| seconds > 0 && seconds.is_multiple_of(*length));
    unit.map_or(format!("{seconds} s"), |(length, name)| format!("{} {name}", seconds / length))
}

/// What is known of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSetting {
    pub unit: Unit,
    /// The program's choice.
    pub default: u32,
    pub min: u32,
    pub max: u32,
    /// 0 stands for off, below `min`.
    pub may_be_off: bool,
    /// How it is called where a value is refused.
    pub what: &'static str,
    /// The option of `tangelo pool set` without its dashes, and its help; empty if another command sets it.
    pub option: &'static str,
    pub help: &'static str,
    /// How `tangelo pool show` calls it; empty if it stands in the line of others.
    pub label: &'static str,
    /// The line about it after a change, with `{}` for the value, and the one where it is off; empty if it stands in the
    /// line of others.
    pub line: &'static str,
    pub line_off: &'static str,
}

macro_rules! stored {
    ($($(#[$doc:meta])* $name:ident: $answer:ty = $setting:expr;)*) => {
        /// What is known of each setting, in the order of the table.
        pub const POOL_SETTINGS: [PoolSetting; POOL_SETTING_NAMES.len()] = [$($setting),*];

        /// The name of each in requests and in the catalog, in the order of the table.
        pub const POOL_SETTING_NAMES: &[&str] = &[$(stringify!($name)),*];

        /// What the administrator has set of a pool; what is not set is the program's choice.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct PoolSettings {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<u32>,)*
        }

        impl PoolSettings {
            /// In the order of the table.
            pub fn values(&self) -> [Option<u32>; POOL_SETTINGS.len()] {
                [$(self.$name),*]
            }

            /// In the order of the table.
            pub fn from_values(values: [Option<u32>; POOL_SETTINGS.len()]) -> PoolSettings {
                let [$($name),*] = values;
                PoolSettings { $($name),* }
            }
        }
    };
}

pool_settings!(stored);

impl PoolSettings {
    pub(crate) fn is_default(&self) -> bool {
        *self == PoolSettings::default()
    }

    /// The same with the program's choice for what is not set.
    pub fn completed(&self) -> PoolSettings {
        let (mut values, defaults) = (self.values(), POOL_SETTINGS.map(|setting| setting.default));
        values.iter_mut().zip(defaults).for_each(|(value, default)| *value = value.or(Some(default)));
        PoolSettings::from_values(values)
    }

    /// How long a deleted volume stays in the bin; 0: not at all.
    pub fn bin_seconds(&self) -> u32 {
        self.completed().bin_seconds.unwrap_or_default()
    }

    /// Time from one scrub to the next; `None`: none by itself.
    pub fn scrub_every_seconds(&self) -> Option<u32> {
        self.completed().scrub_every_seconds.filter(|&seconds| seconds > 0)
    }

    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        for (PoolSetting { what, min, max, may_be_off, .. }, value) in
            POOL_SETTINGS.into_iter().zip(self.values())
        {
            let value = value.filter(|&value| !(may_be_off && value == 0));
            if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
                return Err(CatalogError::Setting { what, value, min, max });
            }
        }
        Ok(())
    }
}

/// What came of a scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScrubRecord {
    /// Wall clock, milliseconds since 1970.
    pub ended_ms: u64,
    /// `false` where it was stopped before it had read everything.
    pub complete: bool,
    /// Batches in which something was wrong and was written anew.
    pub repaired: u64,
    /// Batches of which something can neither be read nor rebuilt.
    pub unreadable: u64,
}
