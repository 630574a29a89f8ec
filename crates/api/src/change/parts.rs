//! The values in the facts of steps, and the words of each.

use std::fmt;

use catalog::UnitNumber;
use env::IoError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::IoErrorName;

/// Names, of which only the first are listed.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct NameList {
    pub first: Vec<String>,
    /// How many there are, with these.
    pub total: u64,
}

impl NameList {
    /// All names, of which at most `listed_max` are listed.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>, listed_max: usize) -> NameList {
        let (mut first, mut total) = (Vec::new(), 0);
        for name in names {
            total += 1;
            if first.len() < listed_max {
                first.push(name.into());
            }
        }
        NameList { first, total }
    }

    /// With what they are names of, such as `volume` and `volumes`.
    pub(super) fn of(&self, one: &str, several: &str) -> String {
        format!("{} {self}", if self.total == 1 { one } else { several })
    }
}

impl fmt::Display for NameList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.total.saturating_sub(self.first.len() as u64) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// What a drive holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DriveHolds {
    Nothing,
    /// Something that is not ours, such as a file system.
    Foreign {
        what: String,
    },
    /// It is a drive of a pool, of the array with this id where that is known.
    Member {
        pool: String,
        array: Option<String>,
    },
    /// It is a drive of a pool of this array that is offline, with its volumes.
    OfflineMember {
        pool: String,
        volumes: NameList,
    },
    /// It is a drive of a pool of a newer version.
    OtherVersion,
    /// It is a drive of a pool, and its label cannot be read.
    Damaged,
    Unreadable {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
}

impl fmt::Display for DriveHolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveHolds::Nothing => f.write_str("nothing"),
            DriveHolds::Foreign { what } => f.write_str(what),
            DriveHolds::Member { pool, array: None } => write!(f, "a drive of pool {pool}"),
            DriveHolds::Member { pool, array: Some(array) } => {
                write!(f, "a drive of pool {pool} (array {array})")
            }
            DriveHolds::OfflineMember { pool, volumes } if volumes.total == 0 => {
                write!(f, "a drive of pool {pool}, which is offline")
            }
            DriveHolds::OfflineMember { pool, volumes } => {
                let volumes = volumes.of("volume", "volumes");
                write!(f, "a drive of pool {pool}, which is offline and has {volumes}")
            }
            DriveHolds::OtherVersion => f.write_str("a drive of a pool of another version of Tangelo"),
            DriveHolds::Damaged => f.write_str("a drive of a Tangelo pool whose label is damaged"),
            DriveHolds::Unreadable { error } => write!(f, "something that cannot be read ({error})"),
        }
    }
}

/// The number under which a volume was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WasMapped {
    Lun(u16),
    Namespace(u32),
}

impl From<UnitNumber> for WasMapped {
    fn from(number: UnitNumber) -> WasMapped {
        match number {
            UnitNumber::Lun(lun) => WasMapped::Lun(lun),
            UnitNumber::Namespace(namespace) => WasMapped::Namespace(namespace),
        }
    }
}

impl fmt::Display for WasMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WasMapped::Lun(lun) => UnitNumber::Lun(*lun).fmt(f),
            WasMapped::Namespace(namespace) => UnitNumber::Namespace(*namespace).fmt(f),
        }
    }
}

/// Why a volume that comes back from the bin is not mapped to a host again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotMapped {
    /// Another volume has its number now.
    Taken(WasMapped),
    HostDeleted,
}

/// What a fence agent says of the other head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FencePower {
    On,
    Off,
    /// It cannot tell; why, in its words.
    Unknown {
        why: String,
    },
}
