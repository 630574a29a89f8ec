//! Hosts that contend for the same blocks.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, counted};
use crate::array::{Rough, run_contended_array, run_rough_hosts, run_write_back};
use crate::seed::Plan;
use crate::workload::{Failure, Profile};

pub const COMPARES_ARE_ONE_STEP: Scenario = Scenario {
    name: "compares-are-one-step",
    property: "COMPARE AND WRITE over borders of lanes is one step to all other commands, whichever shards they came by: of \
               those that expect the same content, one succeeds",
    run: |seed, mut options| {
        for n in 0..RUNS {
            run_contended_array(seed * 100 + n, plan(seed + n), options.trace.take())?;
        }
        Ok(())
    },
};

/// Whether two meet is a matter of luck.
const RUNS: u64 = 5;

pub const DURABLE_COMPARES_SURVIVE: Scenario = Scenario {
    name: "durable-compares-survive",
    property: "COMPARE AND WRITE with FUA on a write-back volume survives that the power goes, over a border of lanes too",
    run: |seed, mut options| {
        for n in 0..RUNS {
            run_write_back(seed * 100 + n, plan(seed + n), Profile::compares(), options.trace.take())?;
        }
        Ok(())
    },
};

pub const FLUSHES_REACH_EVERY_LANE: Scenario = Scenario {
    name: "flushes-reach-every-lane",
    property: "what was written to a write-back volume before SYNCHRONIZE CACHE survives that the power goes, in every lane",
    run: |seed, mut options| {
        for n in 0..RUNS {
            run_write_back(seed * 100 + n, plan(seed + n), Profile::flushes(), options.trace.take())?;
        }
        Ok(())
    },
};

pub const RESERVATIONS_HOLD_EVERYWHERE: Scenario = Scenario {
    name: "reservations-hold-everywhere",
    property: "no write is carried out that was sent when another host's reservation had been answered, by whichever shard it \
               comes: one that was preempted, and one that outlives the array",
    run: |seed, mut options| {
        let outlived = || counted("reservation: it outlives the array");
        let before = outlived();
        for n in 0..OUTLIVED_RUNS_MAX {
            if n >= 2 * RUNS && outlived() > before {
                return Ok(());
            }
            let mut plan = plan(seed + n);
            (plan.course.rounds, plan.course.requests, plan.course.depth) = (2, 150, 4);
            plan.course.fault_interval = Some(Nanos::from_micros(700));
            plan.profile = Profile::hot();
            let rough = Rough { resets_permille: 0, reservations: 30, held_up_ns_max: 4_000_000 };
            run_rough_hosts(seed * 100 + n, plan, rough, options.trace.take())?;
        }
        let message = format!("no reservation outlived the array in {OUTLIVED_RUNS_MAX} runs");
        Err(Failure::Broken(message))
    },
};

/// A reservation outlives the array in one of about fifteen runs.
const OUTLIVED_RUNS_MAX: u64 = 300;

pub const RESETS_ARE_A_FENCE: Scenario = Scenario {
    name: "resets-are-a-fence",
    property: "what a reset has aborted is over before anything begins that was sent after the reset",
    run: |seed, mut options| {
        for n in 0..RESET_RUNS {
            let mut plan = plan(seed + n);
            (plan.course.rounds, plan.course.requests, plan.course.depth) = (1, 300, 8);
            plan.profile = Profile::hot();
            let rough = Rough { resets_permille: 60, reservations: 0, held_up_ns_max: 0 };
            run_rough_hosts(seed * 100 + n, plan, rough, options.trace.take())?;
        }
        Ok(())
    },
};

/// A volume with two borders of map pages.
fn plan(seed: u64) -> Plan {
    plain_plan(Protection::ALL[seed as usize % 5], 5, 600)
}

const RESET_RUNS: u64 = 10;
