//! What REST adds to the vocabulary of `api`: the bodies of requests whose subject is in the path, and answers with the
//! version of the schema.
//!
//! docs/openapi.json is generated from these types and those of `api`. Requests refuse unknown fields; answers may gain
//! fields within a schema. Requests may contain secrets; no answer has a field for one.

mod answers;
mod bodies;
mod one;
mod users;

pub use answers::{
    AlertList, AlertTested, Bin, Changed, DriveList, EventList, Exported, HostList, MappingList, Pair,
    PoolList, ScheduleList, SnapshotList, Status, Summary, VolumeList,
};
pub use bodies::{
    Converting, DriveClear, DriveRemoval, DriveReplacement, DriveWipe, Locating, NewClone, NewDrives,
    NewMapping, NewName, NewSchedule, NewSnapshot, NewSnapshots, Refresh, Scrubbing, Spares, VolumeUpdate,
};
pub use one::{OneDrive, OneHost, OneMapping, OnePool, OneSchedule, OneSnapshot, OneVolume};
pub use users::{
    Me, NewPassword, NewToken, NewUser, SessionList, SessionOfUser, TokenList, TokenMade, TokenStatus,
    UserList, UserStatus, UserUpdate, WebCertificateStatus, WebStatus,
};

/// The version of every answer's shape. Raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 2;
