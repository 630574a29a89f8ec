//! What is wrong with the array: values, and the words for them.
//!
//! ```text
//!   manager ── Problem { subject, since, facts } ──► REST: code, facts, and the words ──► people, programs
//!                          │                                       ▲
//!                          └── code ──► TABLE (severity, data) ────┘── words.rs (reason, action)
//! ```
//!
//! A problem is a code with facts; code that compares problems compares these. All words come from `table.rs` and
//! `words.rs`. `docs/problems.md` is made from the same table. Code outside this folder may neither write nor read a
//! sentence about a problem.

mod cause;
mod code;
#[cfg(test)]
mod document;
#[cfg(test)]
mod examples;
mod facts;
mod failure;
mod io_error;
mod json;
mod parts;
mod row;
mod subject;
mod table;
mod table_drives;
mod table_health;
mod table_pools;
mod words;
mod words_health;
mod words_pools;

pub use cause::{CatalogFault, CatalogPlace, ScheduleFailure, StartFailure};
pub use code::ProblemCode;
pub use facts::ProblemFacts;
pub use failure::{Contradiction, LaneFailure, LanePart, NotStored, PoolFailure, StoreFailure};
pub use io_error::IoErrorName;
pub use parts::{
    DeviceTrouble, DriveGivenUp, DriveLoss, DriveTrouble, FileUse, JournalTrouble, KeptInService, LoginLimit,
    LostDrive, PoolOffline, PoolRoom, RefusedWrites, SpareObstacle,
};
pub use row::{DataSafety, Harm, ProblemRow};
pub use subject::Subject;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::Health;

/// Something wrong: with what, since when, and the facts of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "json::ProblemJson", from = "json::ProblemJson")]
pub struct Problem {
    pub subject: Subject,
    /// Milliseconds since 1970; `None` where it is not known.
    pub since_ms: Option<u64>,
    pub facts: ProblemFacts,
}

/// What two observations of one problem have in common: its numbers may differ.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProblemKey {
    pub code: ProblemCode,
    pub subject: Subject,
    /// The drives that it names: one more of them is news.
    drives: Vec<String>,
    /// Why a pool is offline: another reason is news.
    offline: Option<PoolOffline>,
}

impl Problem {
    /// A problem of which nobody knows when it began.
    pub fn new(subject: Subject, facts: ProblemFacts) -> Problem {
        Problem { subject, since_ms: None, facts }
    }

    pub fn code(&self) -> ProblemCode {
        self.facts.code()
    }

    pub fn key(&self) -> ProblemKey {
        let drives = self.facts.drives().iter().map(|drive| drive.drive.clone()).collect();
        let offline = match &self.facts {
            ProblemFacts::PoolOffline { why, .. } => Some(why.clone()),
            _ => None,
        };
        ProblemKey { code: self.code(), subject: self.subject.clone(), drives, offline }
    }

    /// How severe it is.
    pub fn health(&self) -> Health {
        self.code().row().health
    }

    pub fn harm(&self) -> Harm {
        self.code().row().harm
    }

    /// Why it is so: the facts in words.
    pub fn reason(&self) -> String {
        self.facts.reason()
    }

    /// What to do.
    pub fn action(&self) -> String {
        self.facts.action(&self.subject)
    }

    /// The worst first; what does the same harm stays in its order.
    pub fn sort(problems: &mut [Problem]) {
        problems.sort_by_key(|problem| (problem.harm(), Reverse(problem.health())));
    }

    /// The health of the whole that has these problems.
    pub fn health_of(problems: &[Problem]) -> Health {
        problems.iter().map(Problem::health).max().unwrap_or(Health::Healthy)
    }
}

#[cfg(test)]
mod tests;
