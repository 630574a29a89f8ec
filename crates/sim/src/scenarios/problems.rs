//! Problems that begin and end while nobody gives a command.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, until_met};
use crate::array::run_problems;
use crate::seed::{Plan, Trouble};
use crate::workload::VolumePlan;

pub const PROBLEMS_ARE_TOLD_BY_THEMSELVES: Scenario = Scenario {
    name: "problems-are-told-by-themselves",
    property: "a problem that begins or ends by what hosts do, or by time alone, is told by an event within a minute",
    run: |seed, mut options| {
        until_met(MET, RUNS, RUNS_MAX, |n| run_problems(seed * 100 + n, plan(seed + n), options.trace.take()))
    },
};

const MET: [&str; 2] = ["events: problem began", "events: problems compared that were there"];
const RUNS: u64 = 2;
const RUNS_MAX: u64 = 10;

/// Places of one drive become unreadable now and then. Hosts' reads meet them, and the drive stays.
fn plan(seed: u64) -> Plan {
    let mut plan = plain_plan(Protection::ALL[1 + seed as usize % 4], 5, 600);
    plan.volumes =
        (1..=2).map(|volume| VolumePlan { volume, blocks: 600, write_back: volume == 2 }).collect();
    plan.lossy = vec![0];
    (plan.course.rounds, plan.course.requests, plan.course.depth) = (0, 200, 2);
    plan.troubles = vec![Trouble::Latent];
    plan.course.fault_interval = Some(Nanos::from_secs(30));
    plan
}
