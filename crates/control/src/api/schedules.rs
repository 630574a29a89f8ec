//! Schedules: snapshots that are taken by themselves.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do with schedules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScheduleOrder {
    Create(NewSchedule),
    Delete { name: String },
}

/// A schedule to be made. Snapshots are taken as often as one is kept, of all its volumes at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    pub name: String,
    /// 1 to 64, in pools.
    pub volumes: Vec<String>,
    pub keep: Keep,
}

/// How many snapshots are kept, up to 1000 of each kind: the first of each of the last so many hours, days, weeks (from Monday
/// on) and months, by UTC.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    pub hourly: u32,
    pub daily: u32,
    pub weekly: u32,
    pub monthly: u32,
}

/// A schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    pub name: String,
    /// Without those in the bin, of which none are taken.
    pub volumes: Vec<String>,
    pub keep: Keep,
    /// When it has last taken snapshots, milliseconds since 1970; null: never.
    pub last_ms: Option<u64>,
    /// When it takes the next.
    pub next_ms: u64,
    /// How many that it has taken are there.
    pub snapshots: u64,
}

/// Schedules, in order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    pub schema: u32,
    pub schedules: Vec<Schedule>,
}
