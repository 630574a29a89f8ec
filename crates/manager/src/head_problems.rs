//! Problems that only the head can see: of its pair, and of the health of its drives. Each source of a head says all of its own at once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use api::{HeadSource, Problem, ProblemFacts, Subject};
use base::limits::HEAD_PROBLEMS_MAX;

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

fn problem((subject, facts): (Subject, ProblemFacts)) -> Problem {
    let since_ms = match &facts {
        // the register knows it, however often the array has started since
        ProblemFacts::PairMaintenance { since_ms } => Some(*since_ms),
        _ => None,
    };
    Problem { since_ms, ..Problem::new(subject, facts) }
}
