//! The figures for monitoring.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, counted};
use crate::array::run_figures;
use crate::seed::{Plan, Trouble};
use crate::workload::{Failure, VolumePlan};

pub const FIGURES_ARE_WHAT_HOSTS_DID: Scenario = Scenario {
    name: "figures-are-what-hosts-did",
    property: "the counters of a volume and of a host are at any moment what hosts were answered and no more than they sent, they \
               never fall, and a host that logs in again goes on where it was",
    run: |seed, mut options| {
        let met = || {
            ["figures: exact after a write", "figures: compared after a host had logged in again"]
                .map(counted)
        };
        let before = met();
        for n in 0..RUNS_MAX {
            if n >= RUNS && met().iter().zip(before).all(|(now, before)| *now > before) {
                return Ok(());
            }
            run_figures(seed * 100 + n, plan(seed + n), options.trace.take())?;
        }
        let compared = counted("figures: compared with what hosts did");
        let message =
            format!("in {RUNS_MAX} runs: {compared} comparisons; exact, after another login: {:?}", met());
        Err(Failure::Broken(message))
    },
};

const RUNS: u64 = 3;
const RUNS_MAX: u64 = 30;

/// Two volumes. Connections break in every other run only: where an answer was lost, what is right is not known exactly.
fn plan(seed: u64) -> Plan {
    let mut plan = plain_plan(Protection::ALL[seed as usize % 5], 5, 600);
    plan.volumes =
        (1..=2).map(|volume| VolumePlan { volume, blocks: 600, write_back: volume == 2 }).collect();
    (plan.course.rounds, plan.course.requests, plan.course.depth) = (1, 150, 1);
    if seed.is_multiple_of(2) {
        plan.troubles = vec![Trouble::Reset];
        plan.course.fault_interval = Some(Nanos::from_millis(3));
    }
    plan
}
