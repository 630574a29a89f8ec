//! What one channel was told, and what it has seen.
//!
//! What always holds: a problem is in `told` from before the first attempt to tell it until its end is delivered. An attempt whose outcome is
//! not known leaves it there as unsure: if the problem lasts, it is told again; if it has ended, the end is told. So nobody is left with a
//! problem that never ends.

use std::collections::{BTreeMap, VecDeque};

use api::{Problem, ProblemCode, ProblemKey};

use crate::plan::Message;
use crate::rules::{Clock, Rules, Scope, View, is_of_head};

/// Deliveries within this time are counted.
pub(crate) const COUNTED_MS: u64 = 3_600_000;
/// How many of them are remembered.
pub(crate) const COUNTED_MAX: usize = 20;
/// After that time without the array, the other head has told what this one had told of it.
const ELSEWHERE_MS: u64 = 60_000;

/// A problem that the channel was told, and not yet its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// As it was then.
    pub problem: Problem,
    pub told_ms: u64,
    /// That it began is known there, and not its end; else nobody knows whether an attempt to tell one of them has arrived.
    pub is_sure: bool,
    /// This run has seen it.
    pub is_seen: bool,
    /// Since when it is gone, by the steady clock.
    pub gone_ms: Option<u64>,
}

/// What an attempt has changed before anybody knows how it ends.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Attempt {
    new: Vec<ProblemKey>,
    doubted: Vec<ProblemKey>,
}

impl Attempt {
    /// It may leave nothing that has to be stored.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.doubted.is_empty()
    }
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Channel {
    pub(crate) told: BTreeMap<ProblemKey, Told>,
    /// Of the last message that was delivered.
    pub(crate) sequence: u64,
    /// What lasts and was not told: since when it is seen, by the steady clock.
    pub(crate) seen: BTreeMap<ProblemKey, u64>,
    /// When the last messages were delivered, by the steady clock.
    pub(crate) deliveries: VecDeque<u64>,
    /// Since when the array has answered, or has not been here, by the steady clock.
    scope: Option<(Scope, u64)>,
}

impl Channel {
    /// As an earlier run has left it.
    pub fn restored(told: Vec<Told>, sequence: u64) -> Channel {
        let told = told.into_iter().map(|told| (told.problem.key(), told)).collect();
        Channel { told, sequence, ..Channel::default() }
    }

    pub fn told(&self) -> impl Iterator<Item = &Told> {
        self.told.values()
    }

    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Takes note of what is there now.
    pub fn observe(&mut self, view: &View, clock: Clock, rules: &Rules) {
        let now: BTreeMap<ProblemKey, &Problem> =
            view.problems.iter().map(|problem| (problem.key(), problem)).collect();
        self.seen.retain(|key, _| now.contains_key(key));
        for key in now.keys() {
            self.seen.entry(key.clone()).or_insert(clock.steady_ms);
        }
        let since_ms = self.note_scope(view, clock);
        if view.scope == Scope::Head && clock.steady_ms - since_ms >= ELSEWHERE_MS {
            self.told.retain(|key, _| is_of_head(key.code) || now.contains_key(key));
        }
        for (key, told) in &mut self.told {
            if now.contains_key(key) {
                (told.is_seen, told.gone_ms) = (true, None);
                continue;
            }
            let is_known = match view.scope {
                Scope::Whole => !view.is_between() || is_of_start(key.code),
                Scope::Unanswered => false,
                Scope::Head => is_of_head(key.code),
            };
            let waited_ms = clock.steady_ms - since_ms;
            if is_known && (told.is_seen || waited_ms >= rules.patience_ms(key.code)) {
                told.gone_ms.get_or_insert(clock.steady_ms);
            }
        }
    }

    /// Gives since when the view has had this scope. An array that starts, or has come here, has to find its problems first.
    fn note_scope(&mut self, view: &View, clock: Clock) -> u64 {
        if view.scope == Scope::Unanswered {
            return self.scope.map_or(clock.steady_ms, |(_, since_ms)| since_ms);
        }
        let is_same = self.scope.is_some_and(|(scope, _)| scope == view.scope);
        if !is_same || view.is_between() {
            self.scope = Some((view.scope, clock.steady_ms));
            for told in self.told.values_mut().filter(|told| told.gone_ms.is_none()) {
                told.is_seen = is_of_start(told.problem.code());
            }
        }
        self.scope.map_or(clock.steady_ms, |(_, since_ms)| since_ms)
    }

    /// An attempt to deliver begins: whatever becomes of it, what it tells may be known from now on. Gives what to undo if it surely fails.
    pub fn attempt(&mut self, message: &Message, clock: Clock) -> Attempt {
        let mut attempt = Attempt::default();
        for problem in message.begun() {
            let key = problem.key();
            if !self.told.contains_key(&key) {
                self.told.insert(key.clone(), told(problem, clock, false));
                attempt.new.push(key);
            }
        }
        // one that comes back meanwhile has to be told again
        for key in message.over().map(|told| told.problem.key()) {
            if let Some(told) = self.told.get_mut(&key).filter(|told| told.is_sure) {
                told.is_sure = false;
                attempt.doubted.push(key);
            }
        }
        attempt
    }

    /// Nobody got anything of an attempt.
    pub fn undo(&mut self, attempt: Attempt) {
        for key in attempt.new {
            self.told.remove(&key);
        }
        for key in attempt.doubted {
            if let Some(told) = self.told.get_mut(&key) {
                told.is_sure = true;
            }
        }
    }

    /// The message is delivered.
    pub fn delivered(&mut self, message: &Message, clock: Clock) {
        for problem in message.begun() {
            self.told.insert(problem.key(), told(problem, clock, true));
        }
        for ended in message.over() {
            self.told.remove(&ended.problem.key());
        }
        for problem in &message.lasting {
            if let Some(told) = self.told.get_mut(&problem.key()) {
                told.told_ms = clock.wall_ms;
            }
        }
        self.sequence = message.sequence;
        self.deliveries.push_back(clock.steady_ms);
        if self.deliveries.len() > COUNTED_MAX {
            self.deliveries.pop_front();
        }
    }
}

fn told(problem: &Problem, clock: Clock, is_sure: bool) -> Told {
    Told { problem: problem.clone(), told_ms: clock.wall_ms, is_sure, is_seen: true, gone_ms: None }
}

/// These end with the start itself.
fn is_of_start(code: ProblemCode) -> bool {
    matches!(code, ProblemCode::ArrayStarting | ProblemCode::ArrayFailed)
}
