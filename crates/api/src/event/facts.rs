//! The facts of each event: numbers and names, no sentences of our own. Units stand last in a field's name; `table.rs`
//! describes every field.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::parts::{Expiry, LoginRefusal, Origin, RepairKind, SessionEnd, SignInRefusal};
use super::{CommandKind, EventCode, EventSeverity};
use crate::{ChangeStep, CommandRefusal, DriveTrouble, PoolOffline, Problem, Worded};

/// A code with its facts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", content = "facts", rename_all = "kebab-case")]
pub enum EventFacts {
    ProblemBegan {
        problem: Box<Problem>,
    },
    ProblemChanged {
        before: Box<Problem>,
        problem: Box<Problem>,
    },
    ProblemEnded {
        problem: Box<Problem>,
    },
    ChangeMade {
        command: CommandKind,
        origin: Origin,
        #[serde(alias = "lines", with = "crate::change::recorded")]
        #[schema(value_type = Vec<Worded<ChangeStep>>)]
        steps: Vec<ChangeStep>,
        hosts_affected: Vec<String>,
    },
    ChangeRefused {
        command: CommandKind,
        origin: Origin,
        cause: CommandRefusal,
    },
    ApiRefused {},
    SignedIn {
        address: String,
    },
    SignInRefused {
        /// Only of a user that there is: who types the password into the wrong field does not find it in the log.
        user: Option<String>,
        why: SignInRefusal,
    },
    SignedOut {
        address: String,
    },
    SessionBegan {
        initiator: String,
        peer: String,
        portal: String,
    },
    SessionEnded {
        initiator: String,
        peer: String,
        portal: String,
        end: SessionEnd,
    },
    LoginRefused {
        initiator: Option<String>,
        peer: String,
        portal: String,
        refusal: LoginRefusal,
    },
    AddressBlocked {
        portal: String,
    },
    EventsHeldBack {
        of: EventCode,
    },
    DaemonStarted {
        version: String,
    },
    DaemonStopped {
        version: String,
    },
    PoolOpened {
        drives: u64,
        lost_drives: u64,
    },
    PoolClosed {
        why: PoolOffline,
    },
    PoolFailed {
        why: PoolOffline,
    },
    DriveGivenUp {
        pool: String,
        trouble: DriveTrouble,
    },
    DriveReturned {
        pool: String,
    },
    DriveJoined {
        pool: String,
    },
    DriveEmptying {
        pool: String,
        slow: bool,
    },
    DriveKept {
        pool: String,
    },
    DriveLeft {
        pool: String,
    },
    RepairBegan {
        what: RepairKind,
        bytes: u64,
    },
    RepairEnded {
        what: RepairKind,
        written_bytes: u64,
    },
    ScrubBegan {},
    ScrubEnded {
        complete: bool,
        repaired: u64,
        unreadable: u64,
    },
    SnapshotsTaken {
        volumes: Vec<String>,
        expired: u64,
    },
    VolumeExpired {
        pool: String,
        why: Expiry,
    },
}

impl EventFacts {
    pub fn code(&self) -> EventCode {
        macro_rules! code_of {
            ($($name:ident)*) => {
                match self {
                    $(EventFacts::$name { .. } => EventCode::$name,)*
                }
            };
        }
        code_of! {
            ProblemBegan ProblemChanged ProblemEnded ChangeMade ChangeRefused ApiRefused SignedIn SignInRefused SignedOut SessionBegan SessionEnded
            LoginRefused AddressBlocked EventsHeldBack DaemonStarted DaemonStopped PoolOpened PoolClosed PoolFailed
            DriveGivenUp DriveReturned DriveJoined DriveEmptying DriveKept DriveLeft RepairBegan RepairEnded ScrubBegan
            ScrubEnded SnapshotsTaken VolumeExpired
        }
    }

    /// That of the table, or what follows from the facts.
    pub fn severity(&self) -> EventSeverity {
        if let Some(severity) = self.code().row().severity {
            return severity;
        }
        match self {
            EventFacts::ProblemBegan { problem } | EventFacts::ProblemChanged { problem, .. } => {
                problem.health().into()
            }
            EventFacts::SessionEnded { end, .. } => end.severity(),
            EventFacts::ScrubEnded { unreadable: 1.., .. } => EventSeverity::Error,
            EventFacts::ScrubEnded { repaired: 1.., .. } => EventSeverity::Warning,
            _ => EventSeverity::Info,
        }
    }
}
