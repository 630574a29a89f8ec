//! Steps about pools.

use base::units::size;
use catalog::{POOL_SETTING_NAMES, POOL_SETTINGS, period};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::NameList;
use crate::InWords;

/// A step about a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum PoolStep {
    CreatePool {
        pool: String,
        protection: String,
        drives: u64,
    },
    DeletePool {
        pool: String,
    },
    OpenPool {
        pool: String,
    },
    /// The pool gets the newest disk format. Earlier versions of the program cannot open it then.
    UpgradePool {
        pool: String,
        before_format: u16,
        after_format: u16,
    },
    /// The volumes in the bin of a pool that is deleted are deleted for good.
    EmptyBin {
        pool: String,
        volumes: u64,
    },
    /// A pool that is offline loses a drive, and may be lost with these volumes.
    RiskPool {
        pool: String,
        drive: String,
        volumes: NameList,
    },
    ScrubPool {
        pool: String,
        /// A scrub that runs is stopped.
        stop: bool,
    },
    /// What holds of a setting; it need not have changed.
    SetPool {
        pool: String,
        /// The name of the setting in requests.
        setting: String,
        /// In the unit of the setting; null where it is off.
        value: Option<u32>,
        /// It is the program's choice.
        is_default: bool,
    },
    /// The same of the three settings about slow drives.
    SetSlowDrives {
        pool: String,
        slow_factor: u32,
        slow_latency_ms: u32,
        slow_seconds: u32,
        is_default: bool,
    },
    /// A deletion frees space.
    FreeSpace {
        bytes: u64,
        /// More comes back later: what only copies by reference have kept.
        at_least: bool,
    },
}

impl InWords for PoolStep {
    fn text(&self) -> String {
        use PoolStep::*;
        match self {
            CreatePool { pool, protection, drives } => {
                format!("create pool {pool}, {protection}, on {drives} drives")
            }
            DeletePool { pool } => format!("delete pool {pool}"),
            OpenPool { pool } => format!("open pool {pool}"),
            UpgradePool { pool, before_format, after_format } => format!(
                "move pool {pool} from format {before_format} to format {after_format}, which earlier versions of Tangelo cannot open"
            ),
            EmptyBin { volumes: 1, .. } => "delete 1 volume in its bin for good".to_owned(),
            EmptyBin { volumes, .. } => format!("delete {volumes} volumes in its bin for good"),
            RiskPool { pool, drive, volumes } => {
                format!("pool {pool}, which is offline, loses {drive}: {}", at_stake(volumes))
            }
            ScrubPool { pool, stop: false } => format!("scrub pool {pool}"),
            ScrubPool { pool, stop: true } => format!("stop scrubbing pool {pool}"),
            SetPool { setting, value, is_default, .. } => set(setting, *value, *is_default),
            SetSlowDrives { slow_factor, slow_latency_ms, slow_seconds, is_default, .. } => {
                let (seconds, choice) = (period(*slow_seconds), choice(*is_default));
                format!(
                    "slow drives: emptied when {slow_factor} times slower than their siblings, at \
                     {slow_latency_ms} ms or more, for {seconds}{choice}"
                )
            }
            FreeSpace { bytes, at_least: false } => format!("{} are given back", size(*bytes)),
            // only a walk of the map could tell which of them keeps what
            FreeSpace { bytes, at_least: true } => format!(
                "at least {} are given back; what only its copies by reference have kept comes back some seconds later",
                size(*bytes)
            ),
        }
    }
}

fn at_stake(volumes: &NameList) -> String {
    match volumes.total {
        0 => "what it holds is lost if it cannot do without it".to_owned(),
        1 => format!("volume {volumes} is lost if the pool cannot do without it"),
        _ => format!("volumes {volumes} are lost if the pool cannot do without it"),
    }
}

fn choice(is_default: bool) -> &'static str {
    if is_default { " (default)" } else { "" }
}

/// The words are those of the table; a setting that it does not have is one of another version.
fn set(setting: &str, value: Option<u32>, is_default: bool) -> String {
    let row = POOL_SETTING_NAMES.iter().position(|name| *name == setting).map(|index| POOL_SETTINGS[index]);
    match (row, value) {
        (Some(row), Some(value)) if !row.line.is_empty() => {
            row.line.replace("{}", &row.unit.show(value)) + choice(is_default)
        }
        (Some(row), None) if !row.line_off.is_empty() => row.line_off.to_owned(),
        (_, Some(value)) => format!("{setting}: {value}{}", choice(is_default)),
        (_, None) => format!("{setting}: off"),
    }
}
