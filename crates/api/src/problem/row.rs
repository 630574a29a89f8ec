//! A row of the table of problems.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ProblemCode;
use crate::Health;

/// What is always true of a code.
#[derive(Clone, Copy, Debug)]
pub struct ProblemRow {
    pub code: ProblemCode,
    /// The code in a few words.
    pub title: &'static str,
    pub health: Health,
    pub harm: Harm,
    pub data: DataSafety,
    /// When it is reported and when it ends.
    pub meaning: &'static str,
    /// What to do, where the facts do not say more.
    pub action: &'static str,
    /// Each fact with its meaning and unit.
    pub facts: &'static [(&'static str, &'static str)],
}

/// What a problem does to data and hosts. Ordered: what does most harm comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Harm {
    /// Nothing is served or managed.
    Array,
    /// A pool is not served.
    Offline,
    /// Data is gone, or may be.
    Lost,
    /// Data has less redundancy than promised.
    Exposed,
    /// Writes are refused for want of space, or soon will be.
    Space,
    /// A raw volume is not served: it is one volume, and nobody counts on more.
    Raw,
    /// A drive does not do what it should; its data is safe for now.
    Drive,
    /// Hosts cannot log in somewhere.
    Portal,
    /// No spare would join.
    Spare,
    /// All else.
    Other,
}

/// Whether data is safe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataSafety {
    /// Nothing stored is at risk.
    Safe,
    /// It is complete, and a further failure could lose some of it.
    Exposed,
    /// Hosts cannot reach it; it is not known to be lost.
    Unreachable,
    /// Some of it is lost, or may be.
    Lost,
}

impl DataSafety {
    pub fn words(self) -> &'static str {
        match self {
            DataSafety::Safe => "The stored data is safe.",
            DataSafety::Exposed => "The data is complete, but a further failure could lose some of it.",
            DataSafety::Unreachable => "Hosts cannot reach the data. It is not known to be lost.",
            DataSafety::Lost => "Some data is lost, or may be.",
        }
    }
}
