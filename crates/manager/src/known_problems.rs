//! The problems as they were when they were last worked out, and whether they may have changed since.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use api::{Problem, ProblemKey};
use task::{Io, Notify};

/// See the header of this file.
pub(crate) struct KnownProblems {
    /// The problems as they were at the last look.
    pub(crate) known: RefCell<BTreeMap<ProblemKey, Problem>>,
    /// Problems may be others by now.
    pub(crate) due: Cell<bool>,
    pub(crate) wake: Notify,
    pub(crate) has_looked: Cell<bool>,
}

impl KnownProblems {
    pub(crate) fn new(io: &Io) -> KnownProblems {
        KnownProblems {
            known: RefCell::default(),
            due: Cell::new(true),
            wake: Notify::new(io),
            has_looked: Cell::new(false),
        }
    }

    /// Adds to each problem when it began, where this is known.
    pub(crate) fn date(&self, problems: &mut [Problem]) {
        let known = self.known.borrow();
        for problem in problems.iter_mut().filter(|problem| problem.since_ms.is_none()) {
            problem.since_ms = known.get(&problem.key()).and_then(|known| known.since_ms);
        }
    }
}
