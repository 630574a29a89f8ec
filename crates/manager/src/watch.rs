//! Watches the problems: what begins, changes and ends becomes an event.
//!
//! The problems are worked out when something has changed and after each round of the keeper, not by a clock of their
//! own. What changes at the same time is one look.

use std::collections::BTreeMap;
use std::rc::Rc;

use api::{EventFacts, Problem, ProblemKey};
use base::Nanos;
use task::race;

use crate::manager::Manager;

/// The shortest time between two looks.
const PAUSE: Nanos = Nanos::from_millis(250);
/// A start that takes longer is a problem; a shorter one is not.
const START_PATIENCE: Nanos = Nanos::from_secs(2);

impl Manager {
    /// Something has changed that may be, or may have been, a problem.
    pub(crate) fn problems_may_differ(&self) {
        self.watch.due.set(true);
        self.watch.wake.notify();
    }

    /// Runs until the array stops: an orderly stop is no problem.
    pub(crate) async fn watch_problems(self: Rc<Self>) {
        let _ = race(self.ready.pass(), self.context.io.sleep(START_PATIENCE)).await;
        loop {
            while !self.watch.due.replace(false) {
                self.watch.wake.wait().await;
            }
            let problems = self.all_problems().await;
            if self.stopping.get() {
                return;
            }
            self.compare_problems(problems);
            self.context.io.sleep(PAUSE).await;
        }
    }

    fn compare_problems(&self, mut problems: Vec<Problem>) {
        // what was there at the first look began at a time that nobody knows
        let now_ms = self.watch.has_looked.replace(true).then(|| self.context.io.wall_clock_ms());
        self.watch.date(&mut problems);
        let mut known = self.watch.known.borrow_mut();
        for problem in &mut problems {
            if !known.contains_key(&problem.key()) {
                problem.since_ms = problem.since_ms.or(now_ms);
            }
        }
        let news = news(&known, &problems);
        *known = by_key(&problems);
        drop(known);
        for facts in news {
            let subject = match &facts {
                EventFacts::ProblemBegan { problem }
                | EventFacts::ProblemChanged { problem, .. }
                | EventFacts::ProblemEnded { problem } => problem.subject.clone(),
                other => unreachable!("{other:?} is not about a problem"),
            };
            self.record(subject, facts);
        }
    }
}

fn by_key(problems: &[Problem]) -> BTreeMap<ProblemKey, Problem> {
    problems.iter().map(|problem| (problem.key(), problem.clone())).collect()
}

/// What is new since the problems were `known`.
fn news(known: &BTreeMap<ProblemKey, Problem>, problems: &[Problem]) -> Vec<EventFacts> {
    let now = by_key(problems);
    let mut ended: Vec<&Problem> =
        known.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, problem)| problem).collect();
    let mut begun: Vec<&Problem> = Vec::new();
    for problem in problems {
        let is_new = |problem: &Problem| !known.contains_key(&problem.key());
        if is_new(problem) && !begun.iter().any(|other| other.key() == problem.key()) {
            begun.push(problem);
        }
    }
    let mut news = Vec::new();
    begun.retain(|problem| match predecessor(&ended, problem) {
        Some(index) => {
            let before = Box::new(ended.remove(index).clone());
            news.push(EventFacts::ProblemChanged { before, problem: Box::new((*problem).clone()) });
            false
        }
        None => true,
    });
    let boxed = |problem: &&Problem| Box::new((*problem).clone());
    let over = ended.iter().map(|problem| EventFacts::ProblemEnded { problem: boxed(problem) });
    let fresh = begun.iter().map(|problem| EventFacts::ProblemBegan { problem: boxed(problem) });
    over.chain(news).chain(fresh).collect()
}

/// Which of the problems that have ended has become this one: of the same subject, with the same code or the same harm.
fn predecessor(ended: &[&Problem], problem: &Problem) -> Option<usize> {
    let of_subject = |other: &&Problem| other.subject == problem.subject;
    let same_code = |other: &&Problem| of_subject(other) && other.code() == problem.code();
    let same_harm = |other: &&Problem| of_subject(other) && other.harm() == problem.harm();
    ended.iter().position(same_code).or_else(|| ended.iter().position(same_harm))
}

#[cfg(test)]
mod tests {
    use api::{DriveLoss, LostDrive, PoolRoom, ProblemFacts, Subject};

    use super::*;

    fn full(full_percent: u64) -> Problem {
        let room = PoolRoom::default();
        let facts = match full_percent {
            90.. => ProblemFacts::PoolNearlyFull { full_percent, room },
            _ => ProblemFacts::PoolFilling { full_percent, room },
        };
        Problem::new(Subject::pool("fast"), facts)
    }

    fn degraded(drives: &[&str]) -> Problem {
        let lost = |drive: &&str| LostDrive {
            drive: drive.to_string(),
            bay: String::new(),
            how: DriveLoss::Missing,
        };
        let drives = drives.iter().map(lost).collect();
        let facts = ProblemFacts::PoolDegraded { drives, repair: None, lost_bytes: 0 };
        Problem::new(Subject::pool("fast"), facts)
    }

    fn told(before: &[Problem], after: &[Problem]) -> Vec<String> {
        let news = news(&by_key(before), after);
        let words = |facts: &EventFacts| match facts {
            EventFacts::ProblemBegan { problem } => format!("{} began", problem.code()),
            EventFacts::ProblemChanged { before, problem } => {
                format!("{} became {}", before.code(), problem.code())
            }
            EventFacts::ProblemEnded { problem } => format!("{} ended", problem.code()),
            other => unreachable!("{other:?}"),
        };
        news.iter().map(words).collect()
    }

    #[test]
    fn what_begins_changes_and_ends_is_told() {
        use std::slice::from_ref;
        let (one, two) = (degraded(&["a"]), degraded(&["a", "b"]));
        let table: [(&[Problem], &[Problem], &[&str]); 7] = [
            (&[], &[], &[]),
            (&[], &[full(82)], &["pool-filling began"]),
            (&[full(82)], &[full(83)], &[]),
            (&[full(83)], &[full(91)], &["pool-filling became pool-nearly-full"]),
            (from_ref(&one), from_ref(&two), &["pool-degraded became pool-degraded"]),
            (
                &[one.clone(), full(91)],
                &[two.clone(), two.clone()],
                &["pool-nearly-full ended", "pool-degraded became pool-degraded"],
            ),
            (&[one.clone(), full(91)], &[], &["pool-degraded ended", "pool-nearly-full ended"]),
        ];
        for (before, after, expected) in table {
            let mut told = told(before, after);
            told.sort();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(told, expected, "{before:?} {after:?}");
        }
    }
}
