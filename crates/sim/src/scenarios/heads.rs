//! Two heads.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, until_met};
use crate::array::run_two_heads;
use crate::seed::Plan;
use crate::workload::VolumePlan;

pub const EITHER_HEAD_HOLDS_ALL: Scenario = Scenario {
    name: "either-head-holds-all",
    property: "what two heads have acknowledged is on both, or on the one that is not in sync with its partner, whichever of them \
               ends, and however often",
    run: |seed, mut options| {
        until_met(MET, RUNS, RUNS_MAX, |n| {
            run_two_heads(seed * 100 + n, plan(seed + n), options.trace.take())
        })
    },
};

pub const EITHER_HEAD_HOLDS_THE_DRIVES: Scenario = Scenario {
    name: "either-head-holds-the-drives",
    property: "on drives that two heads see, what is acknowledged is there for whichever of them owns the array, and no other head's \
               write takes effect",
    run: |seed, mut options| {
        until_met(MET_ON_SHARED, RUNS, RUNS_MAX, |n| {
            let plan = on_shared_drives(plan(seed + n));
            run_two_heads(seed * 100 + n, plan, options.trace.take())
        })
    },
};

const MET_ON_SHARED: [&str; 13] = [
    "two heads: in sync",
    "two heads: a takeover",
    "two heads: a handover",
    "two heads: the owner started again, alone",
    "two heads: the partner left",
    "two heads: the partner returned",
    "two heads: an owner that learned that it was none any more",
    "two heads: a head that stood still",
    "two heads: heads cut off from each other",
    "two heads: an owner whose drives came late",
    "two heads: a partner that does not reach a shared drive",
    "two heads: a write refused by a shared drive",
    "two heads: an owner that found its drives taken",
];

const MET: [&str; 27] = [
    "two heads: in sync",
    "two heads: a host that was served through the partner",
    "two heads: a takeover",
    "two heads: a handover begun",
    "two heads: a handover",
    "two heads: a handover given up",
    "two heads: the owner started again, alone",
    "two heads: the partner left",
    "two heads: the partner returned",
    "two heads: an owner that learned that it was none any more",
    "two heads: the partner killed",
    "two heads: the partner without power",
    "two heads: a head that stood still",
    "two heads: heads cut off from each other",
    "two heads: a head cut off from the register",
    "two heads: answers held back",
    "two heads: an array that did not start",
    "two heads: a shard that hung",
    "two heads: a partner's drive that answers nothing",
    "two heads: a partner's drive that fails once",
    "two heads: a partner's drive that goes and returns",
    "two heads: an owner that has drives of another array",
    "two heads: an owner whose drives came late",
    "two heads: the array given back",
    "two heads: the array got back",
    "two heads: an owner that lacks a pool for a while",
    "two heads: a head with the key of another array",
];
const RUNS: u64 = 3;
const RUNS_MAX: u64 = 60;

fn on_shared_drives(mut plan: Plan) -> Plan {
    plan.drives.iter_mut().for_each(|drive| drive.shared = true);
    plan
}

fn plan(seed: u64) -> Plan {
    let mut plan = plain_plan(Protection::ALL[seed as usize % 5], 4, 600);
    plan.volumes =
        (1..=2).map(|volume| VolumePlan { volume, blocks: 600, write_back: volume == 2 }).collect();
    plan.course.fault_interval = Some(Nanos::from_millis(if seed.is_multiple_of(2) { 20 } else { 200 }));
    (plan.course.rounds, plan.course.requests, plan.course.depth) = (6, 100, 4);
    (plan.course.power_permille, plan.course.orderly_permille) = (500, 300);
    plan
}
