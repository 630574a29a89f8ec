//! Steps about the two heads of a pair.

use base::units::size;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FencePower;
use crate::{FenceOutcome, InWords};

/// A step about a pair. `drive` is a drive of this head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum PairStep {
    /// Both heads see the drive.
    ShareDrive {
        drive: String,
    },
    /// The drive is held by a reservation, if the other head sees it.
    ReserveDrive {
        drive: String,
    },
    /// The drive has a twin.
    TwinDrive {
        drive: String,
        /// Of the other head.
        twin: String,
    },
    /// The drive gets a twin.
    MakeTwin {
        drive: String,
        /// Of the other head.
        twin: String,
        copied_bytes: u64,
    },
    /// Hosts notice a pause of about a second.
    RestartArray {
        /// On this head, without the other one.
        alone: bool,
    },
    /// The other head is of the pair no longer.
    ForgetHead {
        /// Empty where it has not joined.
        addresses: Vec<String>,
    },
    EndTwin {
        drive: String,
    },
    EndReservation {
        drive: String,
    },
    /// A drive that is not there has a record of its twin: that is erased when the drive is back.
    LeaveTwinRecord {
        drive: String,
        pool: String,
    },
    EndRegisterMember {},
    /// To be done afterwards on this head.
    DisableRegister {},
    /// To be done afterwards on the other servers.
    DisableOthers {},
    /// A fence agent accepts its parameters.
    TryFenceAgent {
        agent: String,
    },
    AskFenceAgent {
        says: FencePower,
        /// The other head is heard meanwhile.
        is_heard: bool,
    },
    FenceHead {
        /// It is not switched on again.
        stays_off: bool,
    },
    EndFencing {
        outcome: FenceOutcome,
    },
}

impl InWords for PairStep {
    fn text(&self) -> String {
        use PairStep::*;
        match self {
            ShareDrive { drive } => format!("both heads see {drive}"),
            ReserveDrive { drive } => format!("hold {drive} by a reservation, if the other head sees it"),
            TwinDrive { drive, twin } => format!("the twin of {drive} is {twin} of the other head"),
            MakeTwin { drive, twin, copied_bytes } => format!(
                "make {twin} of the other head the twin of {drive}; {} are copied",
                size(*copied_bytes)
            ),
            RestartArray { alone } => {
                let place = if *alone { " on this head alone" } else { "" };
                format!("start the array again{place}, which hosts notice as a pause of about a second")
            }
            ForgetHead { addresses } => {
                let place = match addresses.as_slice() {
                    [] => "the other head, which has not joined,".to_owned(),
                    addresses => format!("the head at {}", addresses.join(", ")),
                };
                format!("{place} owns nothing and takes over nothing any more")
            }
            EndTwin { drive } => format!("{drive} has no twin any more"),
            EndReservation { drive } => format!("{drive} is not reserved any more"),
            LeaveTwinRecord { drive, pool } => format!(
                "{drive} of pool {pool} is not there: its record of the other head is erased when it comes back"
            ),
            EndRegisterMember {} => "end this server's member of etcd, and remove its data".to_owned(),
            DisableRegister {} => "afterwards, here: `systemctl disable tangelo-register`".to_owned(),
            DisableOthers {} => "on the other head and the witness: `systemctl disable --now tangelo \
                                 tangelo-register`, then move the state directory away"
                .to_owned(),
            TryFenceAgent { agent } => format!("{agent} takes what it is given"),
            AskFenceAgent { says, is_heard } => power(says, *is_heard),
            FenceHead { stays_off: true } => "switch the other head off".to_owned(),
            FenceHead { stays_off: false } => "switch the other head off and on again".to_owned(),
            EndFencing { outcome } => outcome_text(*outcome).to_owned(),
        }
    }
}

fn power(says: &FencePower, is_heard: bool) -> String {
    match (says, is_heard) {
        (FencePower::On, true) => "it says \"on\" of the other head, which is heard: its word counts",
        (FencePower::On, false) => "it says \"on\"; the other head is not heard, so that proves nothing",
        (FencePower::Off, true) => "it says \"off\"; the other head is heard",
        (FencePower::Off, false) => "it says \"off\"; the other head is not heard",
        (FencePower::Unknown { why }, _) => {
            return format!("nobody will know whether it has fenced: {why}");
        }
    }
    .to_owned()
}

fn outcome_text(outcome: FenceOutcome) -> &'static str {
    match outcome {
        FenceOutcome::Running => "it is still under way: `tangelo pair status` tells its outcome",
        FenceOutcome::Fenced => "it was off",
        FenceOutcome::WasOff => "it was off already",
        FenceOutcome::Asked => "the agent was asked; it has no way to tell whether it has",
        FenceOutcome::NotNeeded => "the other head is heard again: it is not fenced",
        FenceOutcome::Maintenance => "there is maintenance: the other head is not fenced",
        FenceOutcome::Failed => "the other head is not fenced",
    }
}
