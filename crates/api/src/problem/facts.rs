//! The facts of each problem: numbers and names, no sentences. Units stand last in a field's name; `table.rs` describes
//! every field.

use env::IoError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ProblemCode;
use super::cause::{ScheduleFailure, StartFailure};
use super::failure::StoreFailure;
use super::io_error::IoErrorName;
use super::parts::*;
use crate::{DriveFault, DriveLink, HealthUnread, RepairStatus};

/// A code with its facts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", content = "facts", rename_all = "kebab-case")]
pub enum ProblemFacts {
    ArrayFailed {
        cause: StartFailure,
    },
    ArrayStarting {},
    ArrayStopping {},
    StartIncomplete {
        cause: StoreFailure,
    },
    EventsNotKept(JournalTrouble),
    AlertsNotDelivered {
        error: String,
        failing_since_ms: u64,
        untold: u64,
    },
    ProblemsLeftOut {
        left_out: u64,
    },
    PairMaintenance {
        since_ms: u64,
    },
    FenceUnusable {
        agent: String,
        detail: String,
    },
    HeadNotFenced {
        agent: String,
        detail: String,
    },
    PortalNotListening {
        #[serde(with = "IoErrorName")]
        #[schema(value_type = IoErrorName)]
        error: IoError,
    },
    LoginsRefused {
        initiator: String,
        logins: u64,
        limit: LoginLimit,
        sessions_max: u64,
    },
    ClockDoubted {
        says_ms: u64,
        expected_ms: u64,
        at_start: bool,
    },
    SnapshotsFromFuture {
        snapshots: u64,
        latest: String,
        latest_ms: u64,
    },
    ScheduleFailed {
        cause: ScheduleFailure,
    },
    ScheduleIncomplete {
        volume: String,
    },
    VolumeDeviceUnusable {
        trouble: DeviceTrouble,
    },
    VolumeDeviceSmaller {
        left_bytes: u64,
        volume_bytes: u64,
    },
    PoolOffline {
        why: PoolOffline,
        drives: Vec<LostDrive>,
        needs_reload: bool,
    },
    NoSpaceBelow {
        paths: Vec<String>,
    },
    PoolDegraded {
        drives: Vec<LostDrive>,
        repair: Option<RepairStatus>,
        lost_bytes: u64,
    },
    RebuildLacksDrives {
        drives: Vec<LostDrive>,
    },
    RebuildLacksSpace {
        drives: Vec<LostDrive>,
        short_bytes: u64,
    },
    SegmentsIncomplete {
        segments: u64,
    },
    DataLost {
        lost_bytes: u64,
        drives_missing: bool,
    },
    DataDoubted {
        unreadable_batches: u64,
    },
    WritesRefused {
        full_percent: u64,
        writers: Vec<RefusedWrites>,
        room: PoolRoom,
    },
    PoolNearlyFull {
        full_percent: u64,
        room: PoolRoom,
    },
    PoolFilling {
        full_percent: u64,
        room: PoolRoom,
    },
    RebuildWouldLackSpace {
        short_bytes: u64,
        room: PoolRoom,
    },
    BinGivesWay {
        full_percent: u64,
        gives_way_percent: u64,
        volumes: u64,
    },
    NoSpareLeft {
        drive: String,
    },
    DriveGivenUp(DriveGivenUp),
    DriveErrors {
        read: u64,
        write: u64,
        checksum: u64,
        all_rebuilt: bool,
        kept: Option<KeptInService>,
    },
    DriveSlow {
        factor: Option<u32>,
        emptying: bool,
    },
    DriveOfAnotherArray {
        /// 32 hexadecimal digits.
        array: String,
    },
    DriveFileRemoved {
        used_by: FileUse,
    },
    SpareUnusable {
        pool: String,
        obstacle: SpareObstacle,
    },
    HealthUnwatched {
        program: String,
    },
    DriveHealthUnknown {
        why: HealthUnread,
    },
    DriveWarm {
        celsius: i16,
        celsius_warning: i16,
        is_stated: bool,
    },
    DriveHot {
        celsius: i16,
        celsius_warning: i16,
        is_stated: bool,
        celsius_critical: Option<i16>,
    },
    PoolOverheats {
        drives: u64,
        survivable: u64,
    },
    DriveWears {
        used_percent: u16,
        runs_out_ms: Option<u64>,
    },
    DriveWorn {
        used_percent: u16,
        runs_out_ms: Option<u64>,
    },
    DriveFailing {
        faults: Vec<DriveFault>,
    },
    DriveMediaErrors {
        new: u64,
        all: u64,
    },
    DriveTestFailed {
        at_hours: Option<u64>,
    },
    DriveLinkSlow(DriveLink),
}

impl ProblemFacts {
    pub fn code(&self) -> ProblemCode {
        macro_rules! code_of {
            ($($name:ident)*) => {
                match self {
                    $(ProblemFacts::$name { .. } => ProblemCode::$name,)*
                }
            };
        }
        code_of! {
            ArrayFailed ArrayStarting ArrayStopping StartIncomplete EventsNotKept AlertsNotDelivered ProblemsLeftOut PairMaintenance FenceUnusable HeadNotFenced PortalNotListening LoginsRefused ClockDoubted
            SnapshotsFromFuture ScheduleFailed ScheduleIncomplete VolumeDeviceUnusable VolumeDeviceSmaller PoolOffline
            NoSpaceBelow PoolDegraded RebuildLacksDrives RebuildLacksSpace SegmentsIncomplete DataLost DataDoubted
            WritesRefused PoolNearlyFull PoolFilling RebuildWouldLackSpace BinGivesWay NoSpareLeft DriveGivenUp
            DriveErrors DriveSlow DriveOfAnotherArray DriveFileRemoved SpareUnusable
            HealthUnwatched DriveHealthUnknown DriveWarm DriveHot PoolOverheats DriveWears
            DriveWorn DriveFailing DriveMediaErrors DriveTestFailed DriveLinkSlow
        }
    }

    /// The drives of a pool that it names as lost.
    pub(super) fn drives(&self) -> &[LostDrive] {
        match self {
            ProblemFacts::PoolOffline { drives, .. }
            | ProblemFacts::PoolDegraded { drives, .. }
            | ProblemFacts::RebuildLacksDrives { drives }
            | ProblemFacts::RebuildLacksSpace { drives, .. } => drives,
            _ => &[],
        }
    }
}
