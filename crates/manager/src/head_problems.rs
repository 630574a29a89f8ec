//! What only the head can see: problems of its pair, of its drives and of its alerts, and the health of drives. Each source of a head says all
//! of its problems at once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use api::{HeadCall, HeadSource, Problem, ProblemFacts, Reply, Subject};
use base::limits::HEAD_PROBLEMS_MAX;

use crate::drive_commands::done;
use crate::manager::Manager;

/// What each source has said last.
#[derive(Default)]
pub(crate) struct HeadProblems(RefCell<BTreeMap<HeadSource, Vec<Problem>>>);

impl HeadProblems {
    /// Replaces what the source said before. If there are too many, the worst are kept, and the last says how many are left out.
    pub(crate) fn set(&self, source: HeadSource, problems: Vec<(Subject, ProblemFacts)>) {
        let mut problems: Vec<Problem> = problems.into_iter().map(problem).collect();
        if problems.len() > HEAD_PROBLEMS_MAX {
            Problem::sort(&mut problems);
            let left_out = problems.split_off(HEAD_PROBLEMS_MAX - 1).len() as u64;
            problems.push(Problem::new(Subject::Array, ProblemFacts::ProblemsLeftOut { left_out }));
        }
        self.0.borrow_mut().insert(source, problems);
    }

    pub(crate) fn all(&self) -> Vec<Problem> {
        self.0.borrow().values().flatten().cloned().collect()
    }
}

impl Manager {
    pub(crate) fn answer_head(&self, call: HeadCall) -> Reply {
        match call {
            HeadCall::Problems { source, problems } => self.head_problems.set(source, problems),
            HeadCall::DriveHealth(health) => _ = self.drive_health.replace(health),
            HeadCall::DrivePaths => return Reply::DrivePaths(self.drive_paths()),
        }
        self.problems_may_differ();
        done(Vec::new(), false, None)
    }
}

fn problem((subject, facts): (Subject, ProblemFacts)) -> Problem {
    let since_ms = match &facts {
        // the register, or the head, knows it, however often the array has started since
        ProblemFacts::PairMaintenance { since_ms } => Some(*since_ms),
        ProblemFacts::AlertsNotDelivered { failing_since_ms, .. } => Some(*failing_since_ms),
        _ => None,
    };
    Problem { since_ms, ..Problem::new(subject, facts) }
}
