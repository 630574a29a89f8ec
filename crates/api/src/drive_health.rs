//! What is known of a drive's health: by what it says of itself, and by what the system says of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The health of a drive. What is `null` is not known.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveHealth {
    /// When it was last asked with success, in milliseconds since 1970; the temperature may be newer.
    pub read_ms: Option<u64>,
    /// Why it was not read the last time that it was asked: the values below are older then, and have the age of `read_ms`.
    pub unread: Option<HealthUnread>,
    /// The version of the firmware; empty where it is not known.
    pub firmware: String,
    pub celsius: Option<i16>,
    /// From this temperature on it is too hot, as the drive says.
    pub celsius_warning: Option<i16>,
    /// From this temperature on it may shut itself off, as the drive says.
    pub celsius_critical: Option<i16>,
    /// It is so close to that temperature that it may soon shut itself off.
    pub near_shutdown: bool,
    /// Part of the rated endurance that is used, in percent; may be more than 100.
    pub used_percent: Option<u16>,
    /// When the endurance is used up at the present rate, in milliseconds since 1970.
    pub runs_out_ms: Option<u64>,
    /// Spare blocks that are left, in percent.
    pub spare_percent: Option<u8>,
    /// Media errors in its life.
    pub media_errors: Option<u64>,
    /// Power cuts without a warning in its life.
    pub unsafe_shutdowns: Option<u64>,
    pub power_on_hours: Option<u64>,
    /// Written to it in its life, in bytes.
    pub written_bytes: Option<u64>,
    pub link: Option<DriveLink>,
    pub self_test: Option<DriveSelfTest>,
}

/// A PCIe link: what it runs at, and what both the drive and its slot can.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveLink {
    /// Number of lanes.
    pub width: u8,
    pub width_max: u8,
    /// Of each lane, in 10^6 transfers per second.
    pub megatransfers: u32,
    pub megatransfers_max: u32,
}

impl DriveLink {
    pub fn is_slow(&self) -> bool {
        self.width < self.width_max || self.megatransfers < self.megatransfers_max
    }
}

/// As `x2 8.0 GT/s`.
fn link(f: &mut fmt::Formatter<'_>, width: u8, megatransfers: u32) -> fmt::Result {
    write!(f, "x{width} {}.{} GT/s", megatransfers / 1000, megatransfers % 1000 / 100)
}

impl fmt::Display for DriveLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        link(f, self.width, self.megatransfers)?;
        if self.is_slow() {
            f.write_str("; drive and slot can ")?;
            link(f, self.width_max, self.megatransfers_max)?;
        }
        Ok(())
    }
}

/// The newest self-test of a drive that was not aborted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveSelfTest {
    pub has_passed: bool,
    /// Hours of power-on when it ended.
    pub at_hours: Option<u64>,
}

/// Why the health of a drive was not read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum HealthUnread {
    NotInstalled,
    TimedOut {
        seconds: u64,
    },
    NotPermitted,
    /// The drive has nothing to say of its health.
    NoSmart,
    /// It sleeps, and is not woken for this.
    Asleep,
    /// What smartctl has said is no health of a drive.
    NotUnderstood {
        why: String,
    },
    /// A question to the drive from before has not ended: the drive, or the kernel's driver, hangs.
    StillRunning,
}

impl fmt::Display for HealthUnread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HealthUnread::NotInstalled => f.write_str("smartctl is not installed"),
            HealthUnread::TimedOut { seconds } => write!(f, "smartctl has not answered within {seconds} s"),
            HealthUnread::NotPermitted => f.write_str("smartctl may not open the drive"),
            HealthUnread::NoSmart => f.write_str("the drive says nothing of its health"),
            HealthUnread::Asleep => f.write_str("the drive sleeps"),
            HealthUnread::NotUnderstood { why } => write!(f, "smartctl: {why}"),
            HealthUnread::StillRunning => f.write_str("an earlier question to the drive has not ended"),
        }
    }
}

/// Why a drive says of itself that it fails, or is about to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum DriveFault {
    /// Fewer spare blocks are left than it needs (NVMe).
    Spare,
    /// Many media or internal errors (NVMe).
    Reliability,
    /// It takes no writes any more (NVMe).
    ReadOnly,
    /// What saves its volatile memory at a power cut has failed (NVMe).
    MemoryBackup,
    /// Its persistent memory region is unreliable (NVMe).
    PersistentMemory,
    /// Its own verdict, without a reason (SATA, SAS).
    SelfAssessment,
    /// An attribute that foretells failures is below its threshold (SATA).
    Attribute { name: String },
}

impl fmt::Display for DriveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriveFault::Spare => "too few spare blocks are left",
            DriveFault::Reliability => "it has many internal errors",
            DriveFault::ReadOnly => "it takes no writes any more",
            DriveFault::MemoryBackup => "its backup of volatile memory has failed",
            DriveFault::PersistentMemory => "its persistent memory is unreliable",
            DriveFault::SelfAssessment => "its own test of its state has failed",
            DriveFault::Attribute { name } => {
                return write!(f, "its attribute {name} is below the vendor's threshold");
            }
        })
    }
}
