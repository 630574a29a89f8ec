//! Where the CPU time of a target's server goes: each job runs once more after the measured rounds, and `perf` samples
//! the server.
//!
//! ```text
//!   job ─► run once more ──────────────► CPU per request of the measured rounds ─┐
//!            └ perf record -e cpu-clock ─► leaf symbols ─► classes, shares ──────┴─► us per request: tables, page
//! ```
//! What always holds: `perf` never runs during a measured round; shares are shares of all samples of the process; if a
//! target cannot be profiled, the report says so, and nothing else fails.

mod class;
mod data;
mod page;
mod perf;
mod report;

use self::perf::{Leaf, Sampler};
use crate::job::{Job, Limit};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::result::{Results, median};
use crate::run;

pub use class::Class;
pub use data::{Profile, Symbol};
pub use page::write as write_page;
pub use report::{report, top};

/// Shorter loads are lengthened to this, so that there are samples enough.
const SECONDS_MIN: f64 = 1.0;
/// Symbols that are kept by name.
const SYMBOLS_MAX: usize = 10;

impl Profile {
    fn new(plan: &Plan, us_per_io: f64, leaves: &[(Leaf, u64)]) -> Profile {
        let mut symbols: Vec<Symbol> = leaves.iter().map(|(leaf, samples)| leaf.symbol(*samples)).collect();
        let of =
            |class| symbols.iter().filter(|symbol| symbol.class == class).map(|symbol| symbol.samples).sum();
        let classes: Vec<(Class, u64)> = Class::ALL.iter().map(|class| (*class, of(*class))).collect();
        let samples = classes.iter().map(|(_, samples)| samples).sum();
        symbols.sort_by(|one, other| other.samples.cmp(&one.samples).then(one.name.cmp(&other.name)));
        symbols.truncate(SYMBOLS_MAX);
        Profile { target: plan.name.clone(), job: plan.job.clone(), samples, classes, symbols, us_per_io }
    }

    /// Share of all samples, 0 to 1.
    fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.samples.max(1) as f64
    }

    fn share_of(&self, class: Class) -> f64 {
        self.share(self.classes.iter().find(|(other, _)| *other == class).map_or(0, |(_, samples)| *samples))
    }
}

/// What a request of the measured rounds took of the server, in us: what a profile's shares are shares of.
fn cost(results: &Results, profile: &Profile) -> f64 {
    let rounds = results.rounds(&profile.target, &profile.job);
    let costs = rounds.filter_map(|run| run.target_cpu.as_ref()).map(|cpu| cpu.us_per_io);
    median(costs).filter(|cost| *cost > 0.0).unwrap_or(profile.us_per_io)
}

fn of<'a>(results: &'a Results, target: &str, job: &Job) -> Option<&'a Profile> {
    results.profiles.iter().find(|profile| profile.target == target && profile.job == *job)
}

/// Profiles one plan after the other into the results, and what could not be into `not_profiled`.
pub fn take(results: &mut Results, plans: &[Plan], progress: &mut Progress) {
    for plan in plans {
        progress.next();
        let Some(process) = run::server_of(plan) else {
            let why = format!("{}: no server of it runs on this machine", plan.name);
            if !results.not_profiled.contains(&why) {
                results.not_profiled.push(why);
            }
            continue;
        };
        let longer = Plan { job: lengthened(&plan.job), ..plan.clone() };
        let profile = Sampler::begin(process).and_then(|sampler| {
            let run = run::run(&longer, progress);
            let leaves = sampler.end()?;
            // what cannot be run has said so in the measured rounds
            let cpu = run.ok().and_then(|run| run.target_cpu);
            Ok(cpu.map(|cpu| Profile::new(plan, cpu.us_per_io, &leaves)))
        });
        match profile {
            Ok(profile) => results.profiles.extend(profile),
            // it will not work for the next one either
            Err(why) => {
                results.not_profiled.push(why);
                break;
            }
        }
    }
    progress.clear();
}

fn lengthened(job: &Job) -> Job {
    match job.limit {
        Limit::Seconds(seconds) => Job { limit: Limit::Seconds(seconds.max(SECONDS_MIN)), ..job.clone() },
        Limit::Bytes(_) => job.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn plan(name: &str) -> Plan {
        Plan {
            name: name.to_owned(),
            target: "/dev/null".parse().expect("a target"),
            job: Job::default(),
            round: 1,
            cores: Vec::new(),
            target_process: None,
        }
    }

    fn leaf(name: &str, is_kernel: bool) -> Leaf {
        Leaf { name: name.to_owned(), file: "/a/program".to_owned(), is_kernel }
    }

    #[test]
    fn shares_add_up_and_the_busiest_are_named() {
        let mut leaves = vec![(leaf("_copy_from_iter", true), 50), (leaf("tcp_ack", true), 20)];
        leaves.extend((0..30).map(|n| (leaf(&format!("function_{n}"), false), 1)));
        let profile = Profile::new(&plan("a"), 2.5, &leaves);
        assert_eq!((profile.samples, profile.symbols.len()), (100, SYMBOLS_MAX));
        assert_eq!(profile.symbols[0].name, "_copy_from_iter");
        assert_eq!(profile.classes.iter().map(|(_, samples)| samples).sum::<u64>(), 100);
        assert_eq!(profile.share_of(Class::KernelCopying), 0.5);
        assert_eq!(profile.share_of(Class::UserRest), 0.3);
        let results = testing::results(vec![testing::run("b", 1, 1.0)]);
        assert_eq!(cost(&results, &profile), 2.5, "it was not measured");
        assert_eq!(cost(&results, &Profile { target: "b".to_owned(), ..profile }), 2.0, "it was");
    }

    #[test]
    fn what_runs_elsewhere_is_said_once() {
        let mut results = testing::results(vec![testing::run("drives", 1, 1.0)]);
        take(&mut results, &[plan("drives"), plan("drives")], &mut Progress::silent());
        assert_eq!(results.not_profiled, ["drives: no server of it runs on this machine"]);
        assert!(results.profiles.is_empty());
    }

    #[test]
    fn files_of_before_have_no_profile_and_can_be_read() {
        let results = testing::results(vec![testing::run("a", 1, 1.0)]);
        let mut value = serde_json::to_value(&results).expect("plain values");
        assert!(value.get("profiles").is_none() && value.get("not_profiled").is_none());
        value["profiles"] = serde_json::to_value([Profile::new(&plan("a"), 1.0, &[(leaf("x", false), 1)])])
            .expect("plain values");
        let results: Results = serde_json::from_value(value).expect("what was written");
        assert_eq!(results.profiles.len(), 1);
    }
}
