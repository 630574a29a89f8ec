//! Two heads of one array: how they are, and what they can be asked for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::FenceStatus;

/// What a head of a pair is asked for by an administrator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairOrder {
    Status,
    /// The other head becomes the owner.
    HandOver,
    /// Maintenance begins or ends.
    Maintenance(bool),
}

/// Whether there is to be maintenance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PairMaintenance {
    pub on: bool,
}

/// How the other head is to be forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PairForgetting {
    /// Even if it is in sync.
    #[serde(default)]
    pub force: bool,
}

/// What a head is to the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeadRole {
    /// It has just started, and the register has not answered it yet.
    Starting,
    /// It serves the array.
    Owner,
    /// It holds a copy, and takes over if the owner dies.
    Partner,
    /// The register names two other heads.
    Outside,
}

/// How the owner stands to its partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartnerState {
    /// The owner goes on without it.
    Away,
    /// It gets what its copy lacks.
    Catching,
    /// It has nearly everything: what is written waits for it.
    Joining,
    /// It holds everything that is acknowledged.
    InSync,
    /// It is silent; the register is told that the owner goes on alone.
    Leaving,
}

/// One of the two heads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PairHead {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Where it listens for the other one.
    pub addresses: Vec<String>,
}

/// A member of etcd.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PairMember {
    pub address: String,
    /// Whether it answered this head lately.
    pub answers: bool,
}

/// The pair, as one of its heads sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PairStatus {
    /// The head that answers.
    pub head: PairHead,
    pub role: HeadRole,
    pub other: PairHead,
    /// Whether this head hears the other one now.
    pub hears_the_other: bool,
    /// Which of the two owns the array, as far as this head knows.
    pub owner: Option<String>,
    /// Counts the owners; 0 as long as nothing is known.
    pub term: u64,
    /// What the register says: the head that is not the owner holds everything that is acknowledged, so it may take over.
    pub in_sync: bool,
    /// Since when there is maintenance, in milliseconds since 1970: the partner does not take over meanwhile.
    pub maintenance_since_ms: Option<u64>,
    /// How the owner stands to its partner; only the owner knows.
    pub partner: Option<PartnerState>,
    /// Members of etcd, which holds the register.
    pub members: Vec<PairMember>,
    /// Why the register does not answer; empty while it does.
    pub register_trouble: String,
    /// What has ended the newest connection with the other head, if none has come up since; empty if nothing is known to be wrong.
    pub link_trouble: String,
    /// How this head fences the other one; `None`: it does not.
    pub fence: Option<FenceStatus>,
    /// What would happen if the owner died now.
    pub loss_of_the_owner: LossOfTheOwner,
}

/// What would happen if the owner died now, as far as the head that answers knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossOfTheOwner {
    /// The partner takes over; nothing that was acknowledged is lost.
    Survived,
    /// The partner lacks something: the array is not served until the owner is back.
    NotInSync,
    /// The partner does not see drives that both heads are to see.
    DrivesNotSeen,
    /// There is maintenance: the partner does not take over.
    Maintenance,
    /// The two heads do not hear each other.
    NoLink,
    /// The register does not answer: nobody can take over.
    NoRegister,
    /// Without the votes of the owner's server, too few members of etcd would be left.
    TooFewVotes,
    /// This head has not heard from the register yet.
    Unknown,
}

impl LossOfTheOwner {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            LossOfTheOwner::Survived => {
                "the other head would take over; nothing that was acknowledged would be lost"
            }
            LossOfTheOwner::DrivesNotSeen => {
                "the array would not be served until the owner is back: the other head does not see a drive that both are to see; look at its cables, and at its [drives] paths"
            }
            LossOfTheOwner::NotInSync => {
                "the array would not be served until the owner is back: the other head does not hold everything yet"
            }
            LossOfTheOwner::Maintenance => {
                "the array would not be served: there is maintenance, so the other head does not take over; `tangelo pair maintenance off` ends it"
            }
            LossOfTheOwner::NoLink => {
                "not known: the two heads do not hear each other; look at the network between them"
            }
            LossOfTheOwner::NoRegister => {
                "nobody could take over: the register does not answer; look at the members of etcd"
            }
            LossOfTheOwner::TooFewVotes => {
                "nobody could take over if its whole server were lost: too few members of etcd would be left; see that all three run"
            }
            LossOfTheOwner::Unknown => "not known: the register has not answered this head yet",
        }
    }
}
