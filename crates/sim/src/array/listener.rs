//! A reader of the array's events, as the control plane is one. What events tell must be what the array answers when it
//! is asked: their numbers have no gap, and the problems that have begun and not ended are the problems that it has.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use api::{Command, Event, EventFacts, EventPage, Problem, ProblemKey, Reply};
use base::Nanos;
use task::Io;

use super::engine_shard::{ask, command};
use super::set_up::ToArray;
use crate::counts::counted;
use crate::workload::{Failure, Shared};

counted! {
    /// What events told.
    Heard: "events: " {
        Event = "told",
        Began = "problem began",
        Changed = "problem changed",
        Ended = "problem ended",
        Compared = "problems compared",
        ComparedSome = "problems compared that were there",
    }
}

/// How often the reader looks for an answer.
const LOOK: Nanos = Nanos::from_millis(100);
/// Within this time without changes, everything has been told: the keeper looks at least every five seconds.
const QUIET: Nanos = Nanos::from_secs(60);

/// What a reader knows.
#[derive(Default)]
pub struct Known {
    /// The number of the last event; survives the array's program.
    pub newest: u64,
    problems: BTreeMap<ProblemKey, Problem>,
}

impl Known {
    /// Takes over a page; an error where a number lacks.
    fn take(&mut self, page: EventPage) -> Result<(), String> {
        self.newest += page.dropped;
        for event in page.events {
            if event.sequence != self.newest + 1 {
                return Err(format!("event {} follows event {}", event.sequence, self.newest));
            }
            self.newest = event.sequence;
            self.take_event(event)?;
        }
        Ok(())
    }

    fn take_event(&mut self, event: Event) -> Result<(), String> {
        Heard::Event.seen();
        match event.facts {
            EventFacts::DaemonStarted { .. } => self.problems.clear(),
            EventFacts::ProblemBegan { problem } => {
                Heard::Began.seen();
                self.begin(*problem)?;
            }
            EventFacts::ProblemEnded { problem } => {
                Heard::Ended.seen();
                self.end(&problem)?;
            }
            EventFacts::ProblemChanged { before, problem } => {
                Heard::Changed.seen();
                self.end(&before)?;
                self.begin(*problem)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, problem: Problem) -> Result<(), String> {
        match self.problems.insert(problem.key(), problem) {
            None => Ok(()),
            Some(problem) => Err(format!("a problem began twice: {problem:?}")),
        }
    }

    fn end(&mut self, problem: &Problem) -> Result<(), String> {
        let known = self.problems.remove(&problem.key());
        known.map(drop).ok_or_else(|| format!("a problem ended that had not begun: {problem:?}"))
    }
}

/// See the module's words.
#[derive(Clone)]
pub struct Listener {
    pub io: Io,
    pub outside: ToArray,
    pub shared: Rc<Shared>,
    pub known: Rc<RefCell<Known>>,
}

impl Listener {
    /// Reads events until its machine ends.
    pub async fn run(self) {
        loop {
            let after = self.known.borrow().newest;
            let wanted = Command::Events { after, limit: 64, wait: true };
            let Ok(Reply::Events(page)) = ask(&self.io, &self.outside, wanted, LOOK).await else {
                // the array is stopping
                self.io.sleep(LOOK).await;
                continue;
            };
            if let Err(what) = self.known.borrow_mut().take(page) {
                self.shared.fail(Failure::Broken(what));
                return;
            }
        }
    }

    /// Compares what was told with what the array answers.
    pub async fn compare(self) {
        match self.agrees().await {
            Ok(()) => {}
            Err(Apart::NoAnswer(what)) | Err(Apart::Differs(what)) => self.shared.fail(Failure::Broken(what)),
        }
    }

    /// The same again and again while hosts are at work, until the array stops.
    pub async fn keep_comparing(self) {
        loop {
            match self.agrees().await {
                Ok(()) => {}
                Err(Apart::NoAnswer(_)) => return,
                Err(Apart::Differs(what)) => return self.shared.fail(Failure::Broken(what)),
            }
        }
    }

    /// Waits until what was told is what the array answers, or it takes too long.
    async fn agrees(&self) -> Result<(), Apart> {
        let deadline = self.io.now() + QUIET;
        loop {
            self.io.sleep(Nanos::from_secs(1)).await;
            let told: BTreeSet<ProblemKey> = self.known.borrow().problems.keys().cloned().collect();
            let answer = command(&self.io, &self.outside, Command::Problems).await;
            let Ok(Reply::Problems(problems)) = answer else {
                return Err(Apart::NoAnswer(format!("no problems, but {answer:?}")));
            };
            let there: BTreeSet<ProblemKey> = problems.iter().map(Problem::key).collect();
            if told == there {
                Heard::Compared.seen();
                if !there.is_empty() {
                    Heard::ComparedSome.seen();
                }
                return Ok(());
            }
            if self.io.now() >= deadline {
                let not_told: Vec<&ProblemKey> = there.difference(&told).collect();
                let not_ended: Vec<&ProblemKey> = told.difference(&there).collect();
                return Err(Apart::Differs(format!(
                    "events did not tell that these began: {not_told:?}, or ended: {not_ended:?}"
                )));
            }
        }
    }
}

/// Why what was told was not found to be what the array answers.
enum Apart {
    NoAnswer(String),
    Differs(String),
}
