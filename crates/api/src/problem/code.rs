//! The codes of problems. A code never changes its meaning or its name: programs rely on them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! codes {
    ($($code:ident,)*) => {
        /// What is wrong, as a word for programs. `docs/problems.md` explains each.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum ProblemCode {
            $($code,)*
        }

        impl ProblemCode {
            pub const ALL: &[ProblemCode] = &[$(ProblemCode::$code,)*];
        }
    };
}

// in the order of the table
codes! {
    ArrayFailed,
    ArrayStarting,
    ArrayStopping,
    StartIncomplete,
    EventsNotKept,
    AlertsNotDelivered,
    ProblemsLeftOut,
    PairMaintenance,
    FenceUnusable,
    HeadNotFenced,
    PortalNotListening,
    LoginsRefused,
    ClockDoubted,
    SnapshotsFromFuture,
    ScheduleFailed,
    ScheduleIncomplete,
    VolumeDeviceUnusable,
    VolumeDeviceSmaller,
    PoolOffline,
    NoSpaceBelow,
    PoolDegraded,
    RebuildLacksDrives,
    RebuildLacksSpace,
    SegmentsIncomplete,
    DataLost,
    DataDoubted,
    WritesRefused,
    PoolNearlyFull,
    PoolFilling,
    RebuildWouldLackSpace,
    BinGivesWay,
    NoSpareLeft,
    DriveGivenUp,
    DriveErrors,
    DriveSlow,
    DriveOfAnotherArray,
    DriveFileRemoved,
    SpareUnusable,
    HealthUnwatched,
    DriveHealthUnknown,
    DriveWarm,
    DriveHot,
    PoolOverheats,
    DriveWears,
    DriveWorn,
    DriveFailing,
    DriveMediaErrors,
    DriveTestFailed,
    DriveLinkSlow,
}

impl std::fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}
