//! The management vocabulary: the commands that the control plane sends to the array, and the answers. All are plain
//! values and `Send`. Those that REST uses also have their JSON form and their schema here.
//!
//! Every command goes to shard 0 and is answered exactly once through its [`ReplyChannel`]. A command with `dry_run` checks everything and changes nothing; its answer describes what
//! would have changed. Commands may contain secrets; answers never do.

mod activity;
mod alerts;
mod change;
mod command;
mod drive_health;
mod drive_note;
mod drives;
mod error;
mod event;
mod fencing;
mod health;
mod metrics;
mod names;
mod pair;
mod pools;
mod problem;
mod reply;
mod role;
mod settings;
mod snapshots;
#[cfg(test)]
mod sources;
mod status;
mod transfer;
mod upkeep;
mod volume_condition;
pub mod worded;

pub use activity::PoolActivity;
pub use alerts::{AlertChannel, AlertTest, AlertTestResult};
pub use change::{
    AccessStep, ArrayStep, ChangeStep, DriveHolds, DriveStep, FencePower, HostStep, LabelLeft, NameList,
    NotMapped, PairStep, PoolStep, SnapshotStep, VolumeStep, WasMapped,
};
pub use command::{
    Command, HeadCall, HeadSource, NewBacking, NewChap, NewHost, NewPool, NewVolume, PortalOptions,
};
pub use drive_health::{DriveFault, DriveHealth, DriveLink, DriveSelfTest, HealthUnread};
pub use drive_note::DriveNote;
pub use drives::{DriveContent, DriveErrors, DriveState, DriveStatus};
pub use env::IoError;
pub use error::{CommandError, CommandErrorKind, CommandRefusal};
pub use event::{
    AskedChange, CommandKind, Event, EventCode, EventFacts, EventPage, EventRow, EventSeverity, Expiry,
    LoginRefusal, Origin, RepairKind, SessionEnd, SignInRefusal,
};
pub use fencing::{FenceCause, FenceOutcome, FenceRecord, FenceStatus, FenceTest, FenceTrust};
pub use health::Health;
pub use metrics::{
    DriveOperations, LaneMetrics, Load, Metrics, Operations, PoolDriveMetrics, SessionsLoad, ShardMetrics,
    Traffic, VolumeMetrics,
};
pub use names::{HostUpdate, Named};
pub use pair::{
    HeadRole, LossOfTheOwner, PairForgetting, PairHead, PairMaintenance, PairMember, PairOrder, PairStatus,
    PartnerState,
};
pub use pools::{NextFailure, PoolMap, PoolReferences, PoolStatus, PoolWrites};
pub use problem::{
    CatalogFault, CatalogPlace, Contradiction, DataSafety, DeviceTrouble, DriveGivenUp, DriveLoss,
    DriveTrouble, FileUse, Harm, IoErrorName, JournalTrouble, KeptInService, LaneFailure, LanePart,
    LoginLimit, LostDrive, NotStored, PoolFailure, PoolOffline, PoolRoom, Problem, ProblemCode, ProblemFacts,
    ProblemKey, ProblemRow, RefusedWrites, ScheduleFailure, SpareObstacle, StartFailure, StoreFailure,
    Subject,
};
pub use reply::{Caller, Change, KnownDrive, Made, Reply, ReplyChannel, patient_caller};
pub use reservation::AccessState;
pub use role::Role;
pub use settings::{NewSettings, PoolSettings};
pub use snapshots::{
    BinnedStatus, CopyOrder, CopySpace, Keep, ScheduleOrder, ScheduleStatus, SnapshotStatus,
};
pub use status::{
    ArrayStatus, GroupAccess, HostStatus, MappingStatus, PortalStatus, SessionStatus, VolumeBacking,
    VolumeStatus,
};
pub use transfer::{
    Bulk, BulkError, BulkOutput, BulkReply, BulkRequest, BulkResult, Credit, Extents, Lease, LeaseHolder,
    TransferGrant, TransferId, TransferOrder,
};
pub use upkeep::{LastScrub, RepairStatus, ScrubStatus, Upkeep};
pub use volume_condition::VolumeCondition;
pub use worded::{InWords, Worded};
