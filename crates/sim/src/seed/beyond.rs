//! A seed that exceeds what its pool's protection promises. `workload/run/beyond.rs` has the rules for it.

use super::{Plan, PoolBench, Report, report};
use crate::prng::Prng;
use crate::process::Simulation;
use crate::trace::TraceSink;
use crate::workload::{Failure, Runner, Shared};
use crate::world::World;

pub fn run(seed: u64, mut plan: Plan, mut prng: Prng, trace: Option<TraceSink>) -> Result<Report, Failure> {
    // what goes wrong here goes beyond the promise: nothing else may, or acknowledged data could be on a drive that lies
    (plan.troubles, plan.lossy) = (Vec::new(), Vec::new());
    plan.course.fault_interval = None;
    plan.course.rounds = plan.course.rounds.min(3);
    let world = World::new(seed, trace);
    world.note(|| format!("seed {seed}, beyond the promise: {plan:#?}"));
    let shared = Shared::new(world.clone());
    let mut bench = PoolBench::new(plan.clone(), &world, &shared, prng.fork());
    let drives = bench.drives().to_vec();
    let promised = usize::from(plan.protection.parity());
    let (course, profile) = (plan.course, plan.profile);
    let simulation = Simulation::new(world.clone());
    let mut runner = Runner::new(simulation, shared.clone(), &mut bench, course, profile, prng);
    runner.run_beyond(&drives, promised)?;
    let rounds = u64::from(runner.rounds_begun());
    let totals = bench.totals();
    Ok(report(seed, &world, &shared, rounds, totals))
}
