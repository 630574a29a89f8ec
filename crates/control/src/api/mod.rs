//! The vocabulary of the REST API: what is asked, what is answered, how it is refused.
//!
//! The command line knows the array through these types alone, and docs/openapi.json is generated from them.
//! Requests refuse unknown fields; answers may gain fields within a schema. Secrets travel towards the array
//! only: no answer has a field for one.

mod copies;
mod error;
mod names;
mod one;
mod request;
mod schedules;
mod status;
mod upkeep;

pub use copies::{
    Bin, Binned, CopyOrder, CopySpace, NewClone, NewSnapshot, NewSnapshots, Refresh, Snapshot, SnapshotList,
};
pub use error::{ApiError, ErrorCode};
pub use names::{DriveClear, DriveWipe, HostUpdate, Named, NewName};
pub use one::{OneDrive, OneHost, OneMapping, OnePool, OneSchedule, OneSnapshot, OneVolume};
pub use request::{
    Command, GroupAccess, NewBacking, NewChap, NewHost, NewMapping, NewPool, NewVolume, VolumeUpdate,
};
pub use schedules::{Keep, NewSchedule, Schedule, ScheduleList, ScheduleOrder};
pub use status::{
    AccessState, ArrayStatus, Backing, Changed, Content, Drive, DriveErrors, DriveList, DriveState, Health,
    Host, HostList, LastScrub, Made, Mapping, MappingList, NextFailure, Pool, PoolList, PoolMap,
    PoolReferences, PoolWrites, Portal, Problem, Repair, Scrub, Session, Settings, Status, Summary, Volume,
    VolumeList,
};
pub use upkeep::{
    DriveRemoval, DriveReplacement, Locating, NewDrives, NewSettings, Scrubbing, Spares, Upkeep,
};

/// The version of every answer's shape. Raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// What a command that was carried out is answered.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Drives(Vec<Drive>),
    Changed(Changed),
    Snapshots(Vec<Snapshot>),
    Status(Box<ArrayStatus>),
    Problems(Vec<Problem>),
}
