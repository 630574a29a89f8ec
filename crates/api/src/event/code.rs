//! The codes of events. A code never changes its meaning or its name: programs rely on them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! codes {
    ($($code:ident,)*) => {
        /// What has happened, as a word for programs. `docs/events.md` explains each.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum EventCode {
            $($code,)*
        }

        impl EventCode {
            pub const ALL: &[EventCode] = &[$(EventCode::$code,)*];
        }
    };
}

// in the order of the table
codes! {
    ProblemBegan,
    ProblemChanged,
    ProblemEnded,
    ChangeMade,
    ChangeRefused,
    ApiRefused,
    SignedIn,
    SignInRefused,
    SignedOut,
    SessionBegan,
    SessionEnded,
    LoginRefused,
    AddressBlocked,
    EventsHeldBack,
    DaemonStarted,
    DaemonStopped,
    PoolOpened,
    PoolClosed,
    PoolFailed,
    DriveGivenUp,
    DriveReturned,
    DriveJoined,
    DriveEmptying,
    DriveKept,
    DriveLeft,
    RepairBegan,
    RepairEnded,
    ScrubBegan,
    ScrubEnded,
    SnapshotsTaken,
    VolumeExpired,
}

impl std::fmt::Display for EventCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}
