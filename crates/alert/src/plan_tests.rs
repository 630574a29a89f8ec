//! A channel through a simulated time.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{Health, Problem, ProblemFacts, ProblemKey, Subject};
use proptest::prelude::*;

use crate::channel::Channel;
use crate::plan::{Message, plan};
use crate::rules::{Clock, Quiet, Rules, Scope, View};
use crate::store::Kept;

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;

fn hot(drive: &str, celsius: i16) -> Problem {
    let facts =
        ProblemFacts::DriveHot { celsius, celsius_warning: 70, is_stated: true, celsius_critical: None };
    Problem::new(Subject::drive(drive), facts)
}

fn warm(drive: &str) -> Problem {
    let facts = ProblemFacts::DriveWarm { celsius: 67, celsius_warning: 70, is_stated: true };
    Problem::new(Subject::drive(drive), facts)
}

/// Data is at risk.
fn overheats() -> Problem {
    Problem::new(Subject::pool("fast"), ProblemFacts::PoolOverheats { drives: 3, survivable: 1 })
}

fn lost(bytes: u64) -> Problem {
    Problem::new(Subject::pool("fast"), ProblemFacts::DataLost { lost_bytes: bytes, drives_missing: false })
}

fn starting() -> Problem {
    Problem::new(Subject::Array, ProblemFacts::ArrayStarting {})
}

fn rules() -> Rules {
    Rules {
        repeat: Some(Duration::from_secs(86_400)),
        quiet: None,
        with_notices: false,
        health_every: Duration::from_secs(600),
    }
}

/// A channel and both clocks. Names of what it is told: `+` began, `-` ended, `~` changed, `=` lasts.
struct Lab {
    channel: Channel,
    rules: Rules,
    clock: Clock,
    scope: Scope,
}

impl Lab {
    fn new(rules: Rules) -> Lab {
        let clock = Clock { wall_ms: 20_000 * DAY_MS + 12 * HOUR_MS, steady_ms: 0 };
        Lab { channel: Channel::default(), rules, clock, scope: Scope::Whole }
    }

    /// The next message within some seconds, which is delivered if there is one.
    fn within(&mut self, seconds: u64, problems: &[Problem]) -> String {
        let until = self.clock.steady_ms + seconds * 1_000;
        loop {
            if let Some(message) = self.look(problems) {
                self.channel.attempt(&message, self.clock);
                self.channel.delivered(&message, self.clock);
                return words(&message);
            }
            if self.clock.steady_ms >= until {
                return String::new();
            }
            self.pass(500);
        }
    }

    fn look(&mut self, problems: &[Problem]) -> Option<Message> {
        let view = View { scope: self.scope, problems: problems.to_vec() };
        self.channel.observe(&view, self.clock, &self.rules);
        plan(&self.channel, &view, self.clock, &self.rules)
    }

    fn pass(&mut self, ms: u64) {
        self.clock.wall_ms += ms;
        self.clock.steady_ms += ms;
    }

    /// A new run, with what the last one has stored.
    fn restart(&mut self) {
        let kept = Kept::of(&self.channel, "");
        let told =
            kept.told.into_iter().map(|told| crate::channel::Told { is_seen: false, gone_ms: None, ..told });
        self.channel = Channel::restored(told.collect(), kept.sequence);
        self.clock.steady_ms = 0;
    }
}

fn words(message: &Message) -> String {
    let name = |sign: &str, problem: &Problem| format!("{sign}{} {}", problem.code(), problem.subject.name());
    let began = message.began.iter().map(|problem| name("+", problem));
    let changed = message.changed.iter().map(|(_, problem)| name("~", problem));
    let lasting = message.lasting.iter().map(|problem| name("=", problem));
    let ended = message.ended.iter().map(|told| name("-", &told.problem));
    began.chain(changed).chain(lasting).chain(ended).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_begins_and_ends_is_told_once_and_together() {
    let mut lab = Lab::new(rules());
    assert_eq!(lab.within(2, &[hot("a", 74)]), "");
    assert_eq!(lab.within(30, &[hot("a", 74), hot("b", 74)]), "+drive-hot a");
    assert_eq!(lab.within(30, &[hot("a", 75), hot("b", 74)]), "+drive-hot b");
    assert_eq!(lab.within(30, &[hot("a", 79), hot("b", 74)]), "");
    assert_eq!(lab.within(30, &[]), "-drive-hot a, -drive-hot b");
    assert_eq!(lab.within(60, &[]), "");
    // what ends before it is told is never told, and a short gap is no end
    assert_eq!(lab.within(2, &[hot("a", 74)]), "");
    assert_eq!(lab.within(30, &[]), "");
    assert_eq!(lab.within(30, &[hot("a", 74)]), "+drive-hot a");
    assert_eq!(lab.within(2, &[]), "");
    assert_eq!(lab.within(30, &[hot("a", 74)]), "");
    // a notice is none of them, and the end of what was told is told although a notice follows
    assert_eq!(lab.within(30, &[warm("a")]), "-drive-hot a");
    assert_eq!(lab.within(2 * 86_400, &[warm("a")]), "");
    lab.rules.with_notices = true;
    assert_eq!(lab.within(30, &[warm("a")]), "+drive-warm a");
    assert_eq!(lab.within(30, &[hot("a", 74)]), "~drive-hot a");
}

#[test]
fn what_lasts_is_repeated_each_day_with_the_notices() {
    let mut lab = Lab::new(rules());
    let all = [hot("a", 74), warm("b")];
    assert_eq!(lab.within(30, &all), "+drive-hot a");
    assert_eq!(lab.within(86_000, &all), "");
    assert_eq!(lab.within(600, &all), "=drive-hot a, =drive-warm b");
    assert_eq!(lab.within(86_000, &all), "");
    assert_eq!(lab.within(600, &all), "=drive-hot a, =drive-warm b");
    // a clock that is set back by years has it come early once, and not years late
    lab.clock.wall_ms -= 1_000 * DAY_MS;
    assert_eq!(lab.within(30, &all), "=drive-hot a, =drive-warm b");
    assert_eq!(lab.within(86_000, &all), "");
    assert_eq!(lab.within(600, &all), "=drive-hot a, =drive-warm b");
    lab.clock.wall_ms += 1_000 * DAY_MS;
    assert_eq!(lab.within(30, &all), "=drive-hot a, =drive-warm b");
    lab.rules.repeat = None;
    assert_eq!(lab.within(3 * 86_400, &all), "");
}

#[test]
fn quiet_hours_hide_no_data_at_risk() {
    let quiet = Quiet { from: 22 * 60, to: 7 * 60, offset_minutes: 0 };
    let mut lab = Lab::new(Rules { quiet: Some(quiet), ..rules() });
    assert_eq!(lab.within(30, &[hot("a", 74)]), "+drive-hot a");
    lab.pass(11 * HOUR_MS);
    // the end of what was told comes; what begins waits unless it is urgent
    assert_eq!(lab.within(30, &[hot("b", 74)]), "-drive-hot a");
    assert_eq!(lab.within(3_600, &[hot("b", 74)]), "");
    assert_eq!(lab.within(30, &[hot("b", 74), overheats()]), "+pool-overheats fast");
    let offline = Problem::new(Subject::Array, ProblemFacts::ArrayFailed { cause: failure() });
    assert_eq!(lab.within(30, &[hot("b", 74), overheats(), offline.clone()]), "+array-failed ");
    assert_eq!(lab.within(30, &[hot("b", 74), overheats()]), "-array-failed ");
    assert_eq!(lab.within(8 * 3_600, &[hot("b", 74), overheats()]), "+drive-hot b");
    // by day a repeat of what is safe is due, and by night it waits
    lab.clock.wall_ms += 16 * HOUR_MS;
    lab.pass(8 * 60_000);
    assert_eq!(lab.within(60, &[hot("b", 74)]), "-pool-overheats fast");
    lab.clock.wall_ms += 24 * HOUR_MS;
    assert_eq!(lab.within(60, &[hot("b", 74)]), "");
    assert_eq!(lab.within(10 * 3_600, &[hot("b", 74)]), "=drive-hot b");
}

fn failure() -> api::StartFailure {
    let problem = api::PoolOffline::NoUsableDrive;
    api::StartFailure::CatalogOffline { pool: "fast".to_owned(), why: problem }
}

#[test]
fn one_problem_gives_way_to_another_and_waits_with_it_through_the_night() {
    let wears = |facts| Problem::new(Subject::drive("a"), facts);
    let worn = wears(ProblemFacts::DriveWorn { used_percent: 97, runs_out_ms: None });
    let mut lab = Lab::new(rules());
    assert_eq!(lab.within(30, std::slice::from_ref(&worn)), "+drive-worn a");
    assert_eq!(lab.within(30, &[hot("a", 74)]), "~drive-hot a");
    lab.rules.quiet = Some(Quiet { from: 0, to: 1439, offset_minutes: 0 });
    assert_eq!(lab.within(3_600, std::slice::from_ref(&worn)), "", "the old one stands for the new one");
    lab.rules.quiet = None;
    assert_eq!(lab.within(30, &[worn]), "~drive-worn a");
}

#[test]
fn a_restart_tells_nothing_anew_and_ends_nothing_too_early() {
    let mut lab = Lab::new(rules());
    let all = [hot("a", 74), overheats()];
    let told = lab.within(30, &all);
    assert!(told.contains("+drive-hot a") && told.contains("+pool-overheats fast"), "{told}");
    lab.restart();
    // a start does not know its problems at once, and those of drives only when all were asked
    assert_eq!(lab.within(60, &[starting()]), "");
    assert_eq!(lab.within(60, &[]), "");
    assert_eq!(lab.within(86, &all), "");
    // seen again, it ends as ever
    assert_eq!(lab.within(30, &[hot("a", 74)]), "-pool-overheats fast");
    lab.restart();
    assert_eq!(lab.within(600, &[]), "");
    assert_eq!(lab.within(240, &[]), "-drive-hot a", "it has ended while nobody was here");
    // a start that takes long is told
    assert_eq!(lab.within(115, &[starting()]), "");
    assert_eq!(lab.within(10, &[starting()]), "+array-starting ");
    assert_eq!(lab.within(10, &[]), "-array-starting ");
    // a stop is not
    let stopping = Problem::new(Subject::Array, ProblemFacts::ArrayStopping {});
    assert_eq!(lab.within(600, &[stopping]), "");
}

#[test]
fn an_array_that_does_not_answer_or_is_elsewhere_has_ended_nothing() {
    let mut lab = Lab::new(rules());
    assert_eq!(lab.within(30, &[lost(1)]), "+data-lost fast");
    lab.scope = Scope::Unanswered;
    let own = Problem::new(
        Subject::Channel("mail".to_owned()),
        ProblemFacts::AlertsNotDelivered { error: String::new(), failing_since_ms: 0, untold: 0 },
    );
    assert_eq!(lab.within(600, std::slice::from_ref(&own)), "+alerts-not-delivered mail");
    lab.scope = Scope::Whole;
    assert_eq!(lab.within(600, &[lost(1), own.clone()]), "");
    // the other head has it, and tells it: this one forgets what is no longer its own
    lab.scope = Scope::Head;
    assert_eq!(lab.within(30, std::slice::from_ref(&own)), "");
    lab.scope = Scope::Whole;
    assert_eq!(lab.within(30, &[lost(1), own.clone()]), "");
    lab.scope = Scope::Head;
    assert_eq!(lab.within(120, &[own]), "");
    assert_eq!(lab.within(120, &[]), "-alerts-not-delivered mail");
    lab.scope = Scope::Whole;
    assert_eq!(lab.within(30, &[lost(1)]), "+data-lost fast");
}

#[test]
fn what_comes_and_goes_fills_no_mailbox() {
    let mut lab = Lab::new(rules());
    let mut messages = 0;
    let began = lab.clock.steady_ms;
    while lab.clock.steady_ms < began + 6 * HOUR_MS {
        messages += u64::from(!lab.within(4, &[hot("a", 74)]).is_empty());
        messages += u64::from(!lab.within(4, &[]).is_empty());
    }
    assert!((20..=6 * 24).contains(&messages), "{messages} messages");
    // it is known how it ended
    assert!(["", "-drive-hot a"].contains(&lab.within(600, &[]).as_str()));
    assert_eq!(lab.channel.told().count(), 0);
}

#[test]
fn an_attempt_whose_outcome_is_not_known_leaves_nobody_with_a_problem_that_never_ends() {
    for arrives in [false, true] {
        let mut lab = Lab::new(rules());
        lab.look(&[hot("a", 74)]);
        lab.pass(4_000);
        let message = lab.look(&[hot("a", 74)]).unwrap();
        let new = lab.channel.attempt(&message, lab.clock);
        if !arrives {
            // surely not
            lab.channel.undo(new);
            assert_eq!(lab.within(60, &[]), "");
            continue;
        }
        lab.restart();
        assert_eq!(lab.within(60, &[hot("a", 74)]), "+drive-hot a", "told again");
        lab.restart();
        let message = Lab::new(rules()).look(&[]);
        assert!(message.is_none());
        assert_eq!(lab.within(1_000, &[]), "-drive-hot a");
    }
    // it may have arrived, and has ended since
    let mut lab = Lab::new(rules());
    lab.look(&[hot("a", 74)]);
    lab.pass(4_000);
    let message = lab.look(&[hot("a", 74)]).unwrap();
    lab.channel.attempt(&message, lab.clock);
    assert_eq!(lab.within(60, &[]), "-drive-hot a");
}

#[test]
fn storms_are_cut_in_words_and_counted() {
    let mut lab = Lab::new(rules());
    let all: Vec<Problem> = (0..600).map(|n| hot(&format!("/dev/{n}"), 74)).collect();
    lab.look(&all);
    lab.pass(4_000);
    let message = lab.look(&all).unwrap();
    let letter = crate::letter::Letter::of(&message, "box");
    assert_eq!(letter.health, Health::Degraded);
    assert!(
        letter.subject.starts_with("[tangelo box] degraded: drive /dev/0: ")
            && letter.subject.ends_with("(and 599 more)")
    );
    assert!(letter.text.contains("... and 550 more: tangelo status") && letter.text.len() < 50_000);
    let json: serde_json::Value = serde_json::from_slice(&letter.json).unwrap();
    assert_eq!((json["began"].as_array().unwrap().len(), &json["left_out"]), (50, &550.into()));
    // the key is that of what is told, whatever its numbers are
    let again = |message: &Message| crate::letter::Letter::of(message, "box").key;
    let mut other = message.clone();
    other.began[0] = hot("/dev/0", 79);
    assert_eq!(again(&other), letter.key);
    other.began.pop();
    assert_ne!(again(&other), letter.key);
}

/// What one who has got all messages believes.
fn learn(known: &mut BTreeMap<ProblemKey, Problem>, message: &Message) {
    for told in message.over() {
        known.remove(&told.problem.key());
    }
    known.extend(message.begun().map(|problem| (problem.key(), problem.clone())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happens, and however often it is restarted, or an attempt fails: when it has been calm for a while, the reader knows exactly
    /// what there is; and was never told what was told already, or the end of what was not.
    #[test]
    fn a_reader_knows_what_there_is(steps in prop::collection::vec((0u8..16, 0u64..40, 0u8..8), 1..60)) {
        let mut lab = Lab::new(rules());
        let candidates = [hot("a", 74), hot("b", 80), overheats(), lost(9)];
        let mut known = BTreeMap::new();
        let mut deliver = |lab: &mut Lab, problems: &[Problem], fails: bool, is_known: bool| {
            let Some(message) = lab.look(problems) else { return Ok(()) };
            let new = lab.channel.attempt(&message, lab.clock);
            match (fails, is_known) {
                (true, true) => lab.channel.undo(new),
                // it has arrived, and nobody here knows
                (true, false) => learn(&mut known, &message),
                (false, _) => {
                    for problem in &message.began {
                        let told = known.get(&problem.key());
                        prop_assert!(told.is_none() || lab.channel.told[&problem.key()].told_ms <= lab.clock.wall_ms);
                    }
                    lab.channel.delivered(&message, lab.clock);
                    learn(&mut known, &message);
                }
            }
            Ok(())
        };
        let mut problems = Vec::new();
        for (present, seconds, event) in steps {
            problems = candidates.iter().enumerate().filter(|(n, _)| present & 1 << n != 0).map(|(_, p)| p.clone()).collect();
            for _ in 0..seconds {
                deliver(&mut lab, &problems, event == 1 || event == 2, event == 1)?;
                lab.pass(1_000);
            }
            if event == 3 {
                lab.restart();
            }
        }
        for _ in 0..1_500 {
            deliver(&mut lab, &problems, false, false)?;
            lab.pass(1_000);
        }
        let believed: Vec<&ProblemKey> = known.keys().collect();
        let mut there: Vec<ProblemKey> = problems.iter().map(Problem::key).collect();
        there.sort();
        prop_assert_eq!(believed, there.iter().collect::<Vec<_>>());
    }
}
