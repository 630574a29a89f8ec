//! Several targets side by side: every job on every target in turn, round after round, so that disturbances of the
//! machine affect all targets alike. Ratios count more than absolute figures.

use std::str::FromStr;

use crate::cli::Common;
use crate::command::plan;
use crate::job::{Job, Limit, Pattern};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::result::{Results, cpu_ratio, median};
use crate::run;
use crate::target::Target;
use crate::{profile, table, units};

/// `NAME=TARGET`.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub target: Target,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let (name, target) = text.split_once('=').ok_or("use NAME=TARGET")?;
        if name.is_empty() || name.contains(['/', ':']) {
            return Err(format!("\"{name}\" is no name for a target: use NAME=TARGET"));
        }
        Ok(Named { name: name.to_owned(), target: target.parse()? })
    }
}

impl Named {
    fn plan(&self, job: &Job, common: &Common) -> Plan {
        Plan { name: self.name.clone(), ..plan(&self.target, job.clone(), common) }
    }
}

/// The loads that a data path is judged by: small and large, deep and shallow, one connection and many.
pub fn jobs(seconds: f64) -> Vec<Job> {
    let base = Job { limit: Limit::Seconds(seconds), warm_up_seconds: 0.3, ..Job::default() };
    let with = |read_percent, block_bytes, queue_depth, channels| Job {
        pattern: Pattern::Random,
        read_percent,
        block_bytes,
        queue_depth,
        channels,
        ..base.clone()
    };
    vec![
        with(100, 4096, 64, 1),
        with(0, 4096, 64, 1),
        with(100, 4096, 16, 4),
        with(0, 4096, 16, 4),
        with(100, 1 << 20, 8, 1),
        with(0, 1 << 20, 8, 1),
        with(100, 1 << 20, 2, 4),
        with(0, 1 << 20, 2, 4),
        with(100, 4096, 1, 64),
        with(100, 4096, 1, 1),
        with(0, 4096, 1, 1),
    ]
}

/// Runs all jobs on all targets, `rounds` times. A target that cannot take a job says so once and is left out there.
pub fn run(
    results: &mut Results,
    targets: &[Named],
    jobs: &[Job],
    rounds: u32,
    common: &Common,
) -> Result<(), String> {
    let mut progress = Progress::new(targets.len() * jobs.len() * rounds as usize);
    for round in 1..=rounds {
        for job in jobs {
            // every other round goes backwards: nobody always runs behind the same neighbour
            let mut order: Vec<&Named> = targets.iter().collect();
            if round % 2 == 0 {
                order.reverse();
            }
            for named in order {
                progress.next();
                let plan = Plan { round, ..named.plan(job, common) };
                match run::run(&plan, &mut progress) {
                    Ok(run) => results.runs.push(run),
                    Err(why) => progress.note(&format!("{}: {}: {why}", named.name, job.title())),
                }
            }
        }
    }
    if results.runs.is_empty() { Err("nothing could be run".to_owned()) } else { Ok(()) }
}

/// All jobs once more on all targets: what their servers' CPU goes into.
pub fn profile(results: &mut Results, targets: &[Named], jobs: &[Job], common: &Common) {
    let plans: Vec<Plan> =
        jobs.iter().flat_map(|job| targets.iter().map(|named| named.plan(job, common))).collect();
    profile::take(results, &plans, &mut Progress::new(plans.len()));
}

/// The tables of a suite: rates with ratios, and what a request costs the target.
pub fn report(results: &Results, base: Option<&str>) -> String {
    let mut text = table::side_by_side(results, base);
    text.push('\n');
    text.push_str(&table::render(&costs(results, base)));
    text.push('\n');
    text.push_str(&table::render(&latencies(results)));
    text
}

/// CPU of the target for one request, and the ratio to the base's: what holds when the machine is shared.
fn costs(results: &Results, base: Option<&str>) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["target's CPU per request".to_owned()]];
    for target in results.targets() {
        rows[0].push(target.to_owned());
        rows[0].extend(base.filter(|base| *base != target).map(|base| format!("{base} /")));
    }
    for job in results.jobs() {
        let cost = |target: &str| {
            let costs = results.rounds(target, job).filter_map(|run| run.target_cpu.as_ref());
            median(costs.map(|cpu| cpu.us_per_io)).filter(|cost| *cost > 0.0)
        };
        let mut row = vec![job.title()];
        for target in results.targets() {
            let dash = || "-".to_owned();
            row.push(cost(target).map_or_else(dash, |us| format!("{} us", units::short(us))));
            if let Some(base) = base.filter(|base| *base != target) {
                let ratio = cpu_ratio(results, target, base, job);
                row.push(ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")));
            }
        }
        rows.push(row);
    }
    rows
}

fn latencies(results: &Results) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["p50 / p99 / p99.9".to_owned()]];
    rows[0].extend(results.targets().iter().map(|target| (*target).to_owned()));
    for job in results.jobs() {
        let mut row = vec![job.title()];
        for target in results.targets() {
            let at = |pick: fn(&crate::measure::Latency) -> u64| {
                median(results.rounds(target, job).map(|run| pick(&run.all) as f64)).unwrap_or(0.0) as u64
            };
            let [p50, p99, p999] = [at(|l| l.p50_ns), at(|l| l.p99_ns), at(|l| l.p999_ns)].map(units::time);
            row.push(if p50 == "0 ns" { "-".to_owned() } else { format!("{p50} / {p99} / {p999}") });
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let rounds = [(100.0, 50.0), (10.0, 6.0), (200.0, 80.0)];
        let runs = rounds.iter().zip(1..).flat_map(|(&(floor, ours), round)| {
            // a request costs as many us as there are requests: the base's by the target's is the other way round
            [("floor", floor), ("ours", ours)].map(|(target, rate)| {
                let mut run = testing::run(target, round, rate);
                run.target_cpu.as_mut().expect("known").us_per_io = rate;
                run
            })
        });
        let results = testing::results(runs.collect());
        let text = report(&results, Some("floor"));
        assert!(text.contains("x floor") && text.contains("0.50") && text.contains("2.00"), "{text}");
    }

    #[test]
    fn names_of_targets_are_checked() {
        assert!("floor=echo://127.0.0.1:1".parse::<Named>().is_ok());
        for text in ["echo://127.0.0.1:1", "=x", "a/b=c"] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_job_of_the_suite_makes_sense() {
        jobs(1.0).iter().for_each(|job| assert_eq!(job.check(), Ok(())));
    }
}
