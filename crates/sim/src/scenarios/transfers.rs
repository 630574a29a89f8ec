//! Exports and imports of whole volumes.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, until_met};
use crate::array::run_transfers;
use crate::seed::{Plan, Trouble};
use crate::workload::VolumePlan;

pub const TRANSFERS_ARE_WHOLE_AND_BOUNDED: Scenario = Scenario {
    name: "transfers-are-whole-and-bounded",
    property: "an export is of one moment while hosts write, an import is whole or not at all, and slow or vanished readers hold \
               no more memory than they may and give it back",
    run: |seed, mut options| {
        until_met(MET, RUNS, RUNS_MAX, |n| {
            run_transfers(seed * 100 + n, plan(seed + n), options.trace.take())
        })
    },
};

const MET: [&str; 11] = [
    "transfers: a volume exported",
    "transfers: a snapshot exported",
    "transfers: a snapshot deleted under its export",
    "transfers: a reader vanished",
    "transfers: a reader kept data for long",
    "transfers: a reader began long after its volume was frozen",
    "transfers: a reader had to wait for its own credit",
    "transfers: a volume imported",
    "transfers: an import abandoned",
    "transfers: an import cut off, and its volume read",
    "transfers: all credit came back",
];
const RUNS: u64 = 4;
const RUNS_MAX: u64 = 60;

/// Two volumes, larger than what one transfer may hold. In every other run the power goes.
fn plan(seed: u64) -> Plan {
    let mut plan = plain_plan(Protection::ALL[seed as usize % 5], 5, 1_600);
    plan.volumes =
        (1..=2).map(|volume| VolumePlan { volume, blocks: 1_600, write_back: volume == 2 }).collect();
    (plan.course.rounds, plan.course.requests, plan.course.depth) = (2, 250, 2);
    if seed.is_multiple_of(2) {
        plan.troubles = vec![Trouble::Reset];
        plan.course.fault_interval = Some(Nanos::from_millis(3));
        (plan.course.rounds, plan.course.power_permille) = (4, 700);
    }
    plan
}
