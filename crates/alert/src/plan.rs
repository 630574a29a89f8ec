//! What a channel is to be told now: worked out from what it was told and from what is there. Nothing is queued, so a channel that was away
//! for a day gets one message.

use api::{Health, Problem, ProblemCode};

use crate::channel::{COUNTED_MAX, COUNTED_MS, Channel, Told};
use crate::rules::{Clock, Rules, START_MS, View, is_urgent};

/// What begins or ends together is one message.
const SETTLE_MS: u64 = 3_000;
/// A clock that is set back by more than this has a repeat come early, and not years late.
const CLOCK_BACK_MS: u64 = 600_000;
/// After many messages within an hour: the time between two.
const PAUSE_MS: u64 = 300_000;
/// The same where data is at risk.
const PAUSE_URGENT_MS: u64 = 60_000;

/// What one message tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub began: Vec<Problem>,
    /// A problem that has given way to another one of the same thing.
    pub changed: Vec<(Told, Problem)>,
    /// What was told before and is still there, if it is time to repeat that.
    pub lasting: Vec<Problem>,
    pub ended: Vec<Told>,
    /// Of everything.
    pub health: Health,
    /// 1 for the first message of a channel; the next one is delivered after this one.
    pub sequence: u64,
}

impl Message {
    /// Every problem whose beginning it tells.
    pub(crate) fn begun(&self) -> impl Iterator<Item = &Problem> {
        self.began.iter().chain(self.changed.iter().map(|(_, problem)| problem))
    }

    /// Every problem whose end it tells.
    pub(crate) fn over(&self) -> impl Iterator<Item = &Told> {
        self.ended.iter().chain(self.changed.iter().map(|(before, _)| before))
    }

    fn is_empty(&self) -> bool {
        self.began.is_empty() && self.changed.is_empty() && self.lasting.is_empty() && self.ended.is_empty()
    }
}

/// What to tell now, if anything. The channel has observed the view.
pub fn plan(channel: &Channel, view: &View, clock: Clock, rules: &Rules) -> Option<Message> {
    let mut begins: Vec<&Problem> = view
        .problems
        .iter()
        .filter(|problem| rules.tells(problem) && begins(channel, problem, clock))
        .collect();
    let mut message = Message {
        began: Vec::new(),
        changed: Vec::new(),
        lasting: lasting(channel, view, clock, rules),
        ended: Vec::new(),
        health: Problem::health_of(&view.problems),
        sequence: channel.sequence + 1,
    };
    for told in channel.told().filter(|told| has_ended(told, clock)) {
        let same = |problem: &&Problem| {
            problem.subject == told.problem.subject && problem.harm() == told.problem.harm()
        };
        match begins.iter().position(same) {
            // until the new one is told, the old one stands for it
            Some(place) if rules.holds_back(begins[place], clock.wall_ms) => _ = begins.remove(place),
            Some(place) => message.changed.push((told.clone(), begins.remove(place).clone())),
            None => message.ended.push(told.clone()),
        }
    }
    let told_now = begins.into_iter().filter(|problem| !rules.holds_back(problem, clock.wall_ms));
    message.began = told_now.cloned().collect();
    (!message.is_empty() && is_in_time(channel, &message, clock)).then_some(message)
}

/// Whether its beginning is due.
fn begins(channel: &Channel, problem: &Problem, clock: Clock) -> bool {
    let key = problem.key();
    let settle_ms = match problem.code() {
        // an orderly stop is no problem, and a start is none for a while
        ProblemCode::ArrayStopping => return false,
        ProblemCode::ArrayStarting => START_MS,
        _ => SETTLE_MS,
    };
    let is_settled = channel.seen.get(&key).is_some_and(|seen_ms| clock.steady_ms - seen_ms >= settle_ms);
    is_settled && channel.told.get(&key).is_none_or(|told| !told.is_sure)
}

fn has_ended(told: &Told, clock: Clock) -> bool {
    told.gone_ms.is_some_and(|gone_ms| clock.steady_ms - gone_ms >= SETTLE_MS)
}

/// What was told and lasts, with the notices beside it, if it is time for that.
fn lasting(channel: &Channel, view: &View, clock: Clock, rules: &Rules) -> Vec<Problem> {
    let Some(repeat) = rules.repeat else { return Vec::new() };
    let repeat_ms = repeat.as_millis() as u64;
    let is_due = |told: &Told| {
        clock.wall_ms.saturating_sub(told.told_ms) >= repeat_ms
            || told.told_ms > clock.wall_ms + CLOCK_BACK_MS
    };
    let sure = |problem: &Problem| channel.told.get(&problem.key()).filter(|told| told.is_sure);
    let is_time = view
        .problems
        .iter()
        .any(|problem| sure(problem).is_some_and(is_due) && !rules.holds_back(problem, clock.wall_ms));
    if !is_time {
        return Vec::new();
    }
    let told_by_this_alone = |problem: &Problem| !rules.tells(problem);
    let told = |problem: &&Problem| sure(problem).is_some() || told_by_this_alone(problem);
    view.problems.iter().filter(told).cloned().collect()
}

/// What comes and goes all the time must not fill a mailbox.
fn is_in_time(channel: &Channel, message: &Message, clock: Clock) -> bool {
    let recent = channel.deliveries.iter().filter(|at| clock.steady_ms - **at < COUNTED_MS).count();
    let Some(last_ms) = channel.deliveries.back().filter(|_| recent >= COUNTED_MAX) else { return true };
    let pause_ms = if message.begun().any(is_urgent) { PAUSE_URGENT_MS } else { PAUSE_MS };
    clock.steady_ms - last_ms >= pause_ms
}
