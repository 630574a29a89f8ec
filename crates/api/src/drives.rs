//! Drives, as answers describe them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DriveHealth, DriveNote, Worded};

/// A drive: a block device or a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveStatus {
    pub path: String,
    pub size_bytes: u64,
    /// Empty where unknown, as for a file.
    pub model: String,
    pub serial: String,
    /// Where it is plugged in, or was: the enclosure's slot, or the PCI slot's name. Empty where nobody says.
    pub bay: String,
    pub state: DriveState,
    pub content: DriveContent,
    /// More about the content: what is foreign, which pool, what is damaged.
    pub detail: String,
    /// Name of the pool that it is a member of.
    pub pool: Option<String>,
    pub errors: DriveErrors,
    /// Median latency of reads and writes lately; `null` where there were too few.
    #[serde(default)]
    pub read_latency_us: Option<u64>,
    #[serde(default)]
    pub write_latency_us: Option<u64>,
    /// Its id in its pool, 32 hexadecimal digits; empty for a drive of no pool.
    #[serde(default)]
    pub id: String,
    /// What there is to know beside that; null if there is nothing.
    #[serde(default, with = "crate::worded::optional")]
    #[schema(value_type = Option<Worded<DriveNote>>)]
    pub note: Option<DriveNote>,
    /// `null` if its health is not watched, or was not read since the start.
    #[serde(default)]
    pub health: Option<DriveHealth>,
}

/// What went wrong with a drive for as long as it has been in its pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveErrors {
    pub read: u64,
    pub write: u64,
    /// Reads that came back with the wrong content.
    pub checksum: u64,
}

/// How a drive is doing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriveState {
    /// Belongs to no pool.
    Unused,
    /// Joins a pool by itself when that has lost a drive.
    Spare,
    /// Served to hosts as it is, as a raw volume.
    Exported,
    /// In its pool, and up to date.
    Online,
    /// In its pool's label, but not found.
    Missing,
    /// Taken out of service because of errors, or because it missed writes.
    Failed,
    /// Being emptied, so that it can be taken away.
    Draining,
}

/// What a drive was found to hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriveContent {
    /// Nothing that is known.
    Blank,
    /// Something that is not ours, such as a file system.
    Foreign,
    /// A drive of a pool.
    Member,
    /// Ours, from a newer version of the program: left untouched.
    FutureVersion,
    /// Ours, with no readable label.
    Damaged,
    /// It could not be opened or read.
    Unreadable,
}
