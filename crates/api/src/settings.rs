//! The settings of a pool in commands and answers. The table in `catalog` alone lists the settings.

use catalog::{POOL_SETTINGS, pool_settings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! asked_and_told {
    ($($(#[$doc:meta])* $name:ident: $answer:ty = $setting:expr;)*) => {
        /// Settings of a pool to change; what is left out stays as it is.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct NewSettings {
            /// Everything else goes back to its default first.
            pub defaults: bool,
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<u32>,)*
        }

        /// What holds for a pool, set or not.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
        pub struct PoolSettings {
            $($(#[$doc])* pub $name: $answer,)*
        }

        impl NewSettings {
            /// In the order of the table.
            pub fn values(&self) -> [Option<u32>; POOL_SETTINGS.len()] {
                [$(self.$name),*]
            }

            /// In the order of the table.
            pub fn from_values(defaults: bool, values: [Option<u32>; POOL_SETTINGS.len()]) -> NewSettings {
                let [$($name),*] = values;
                NewSettings { defaults, $($name),* }
            }
        }

        impl PoolSettings {
            /// In the order of the table; 0: off.
            pub fn values(&self) -> [u32; POOL_SETTINGS.len()] {
                [$(self.$name.value()),*]
            }
        }

        impl From<&catalog::PoolSettings> for PoolSettings {
            fn from(set: &catalog::PoolSettings) -> PoolSettings {
                let set = set.completed();
                PoolSettings { $($name: Answer::answer(set.$name.unwrap_or_default())),* }
            }
        }
    };
}

pool_settings!(asked_and_told);

impl Default for PoolSettings {
    /// What holds where nothing was set.
    fn default() -> PoolSettings {
        PoolSettings::from(&catalog::PoolSettings::default())
    }
}

/// How a setting is told: as a number, or as none if it is off.
trait Answer {
    fn answer(value: u32) -> Self;
    fn value(self) -> u32;
}

impl Answer for u32 {
    fn answer(value: u32) -> u32 {
        value
    }

    fn value(self) -> u32 {
        self
    }
}

impl Answer for Option<u32> {
    fn answer(value: u32) -> Option<u32> {
        Some(value).filter(|&value| value > 0)
    }

    fn value(self) -> u32 {
        self.unwrap_or_default()
    }
}
