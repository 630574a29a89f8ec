//! What a command changes, step by step: values, and the words for them.
//!
//! ```text
//!   manager, heads ── ChangeStep ──► answer, event ──► REST: code, facts, and the words ──► people, programs
//!                                                                   ▲
//!   pool.rs, drive.rs, ... (one match over the steps of each kind) ─┘
//! ```
//!
//! A step is a code with facts. Each file has the steps about one kind of thing, and the words of these. Code outside
//! this folder may neither write nor read a sentence about a step.

mod access;
mod array;
mod drive;
#[cfg(test)]
mod examples;
mod host;
mod pair;
mod parts;
mod pool;
pub(crate) mod recorded;
mod snapshot;
mod volume;

pub use access::AccessStep;
pub use array::ArrayStep;
pub use drive::{DriveStep, LabelLeft};
pub use host::HostStep;
pub use pair::PairStep;
pub use parts::{DriveHolds, FencePower, NameList, NotMapped, WasMapped};
pub use pool::PoolStep;
pub use snapshot::SnapshotStep;
pub use volume::VolumeStep;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::InWords;

/// One step of a change. Its `code` tells the kind; codes do not change their meaning, and none is used twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ChangeStep {
    Pool(PoolStep),
    Drive(DriveStep),
    Volume(VolumeStep),
    Snapshot(SnapshotStep),
    Host(HostStep),
    Array(ArrayStep),
    Pair(PairStep),
    Access(AccessStep),
}

impl InWords for ChangeStep {
    fn text(&self) -> String {
        match self {
            ChangeStep::Pool(step) => step.text(),
            ChangeStep::Drive(step) => step.text(),
            ChangeStep::Volume(step) => step.text(),
            ChangeStep::Snapshot(step) => step.text(),
            ChangeStep::Host(step) => step.text(),
            ChangeStep::Array(step) => step.text(),
            ChangeStep::Pair(step) => step.text(),
            ChangeStep::Access(step) => step.text(),
        }
    }
}

macro_rules! from_steps {
    ($($kind:ident($step:ident))*) => {
        $(impl From<$step> for ChangeStep {
            fn from(step: $step) -> ChangeStep {
                ChangeStep::$kind(step)
            }
        })*
    };
}

from_steps! {
    Pool(PoolStep) Drive(DriveStep) Volume(VolumeStep) Snapshot(SnapshotStep) Host(HostStep) Array(ArrayStep)
    Pair(PairStep) Access(AccessStep)
}

#[cfg(test)]
mod tests;
