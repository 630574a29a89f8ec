//! The answers to commands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ArrayStatus, ChangeStep, CommandError, DriveStatus, EventPage, HostStatus, MappingStatus, Metrics,
    Origin, PoolStatus, Problem, SnapshotStatus, TransferGrant, VolumeStatus,
};

/// The answer to a command that was carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Drives(Vec<DriveStatus>),
    DrivePaths(Vec<KnownDrive>),
    Changed(Change),
    Snapshots(Vec<SnapshotStatus>),
    Status(Box<ArrayStatus>),
    Problems(Vec<Problem>),
    Metrics(Box<Metrics>),
    Events(EventPage),
    TransferBegan(TransferGrant),
    Stopped,
}

/// A drive that the array knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownDrive {
    pub path: String,
    /// It is of a pool, a spare of one, or a raw volume.
    pub is_used: bool,
}

/// What a command changed, or with `dry_run` would have changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub dry_run: bool,
    pub steps: Vec<ChangeStep>,
    /// Hosts that gained or lost something by it.
    pub hosts_affected: Vec<String>,
    /// What was made, as it is now; nothing for a removal or a dry run.
    pub made: Option<Made>,
}

/// A thing that a command made or changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    Pool(Box<PoolStatus>),
    Volume(Box<VolumeStatus>),
    Host(HostStatus),
    Mapping(MappingStatus),
    Snapshots(Vec<SnapshotStatus>),
}

/// How an answer finds its way back. Called once, on shard 0's thread; must not block.
pub type ReplyChannel = Box<dyn FnOnce(Result<Reply, CommandError>) + Send>;

/// Who asks.
pub struct Caller {
    pub origin: Origin,
    gone: Box<dyn Fn() -> bool + Send>,
}

impl Caller {
    /// `gone` tells whether whoever asked has gone: a command that has changed nothing by then changes nothing.
    pub fn new(origin: Origin, gone: impl Fn() -> bool + Send + 'static) -> Caller {
        Caller { origin, gone: Box::new(gone) }
    }

    pub fn is_gone(&self) -> bool {
        (self.gone)()
    }
}

/// One that waits until it is answered.
pub fn patient_caller() -> Caller {
    Caller::new(Origin::Daemon, || false)
}
