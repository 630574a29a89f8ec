//! One seed, one run: a pool is drawn, loaded, damaged, crashed, reopened and checked.

mod bench;
mod beyond;
mod host;
mod layers;
mod plan;
mod report;
mod subject;
mod troubles;

use pool::Protection;

use crate::prng::Prng;
use crate::process::Simulation;
use crate::trace::TraceSink;
use crate::workload::{Failure, Runner, Shared};
use crate::world::World;

pub use bench::PoolBench;
pub use host::{Host, Order, PoolMessage, ShardState};
pub use plan::{Plan, Trim, Trouble};
pub use report::{PoolTotals, Report};
pub use troubles::Troubles;

/// What a caller may decide about a run.
#[derive(Default)]
pub struct Options {
    /// Where the trace goes.
    pub trace: Option<TraceSink>,
    /// Only this protection, whatever the seed says.
    pub protection: Option<Protection>,
    /// What is left out.
    pub trim: Trim,
}

/// How often pools' words were put to the test, by name.
pub(crate) fn claims() -> impl Iterator<Item = (&'static str, u64)> {
    bench::Claim::counts()
}

/// One seed of this many runs the whole array, with hosts on the network; the others use only a pool's lanes.
const ARRAY_SEEDS: u64 = 8;
/// One seed of this many exceeds what the protection promises.
const BEYOND_SEEDS: u64 = 16;
/// One seed of this many ends with a test of the pool's report of survivable failures.
const EXAM_SEEDS: u64 = 8;

/// Runs a seed. The same seed gives the same report, or the same failure.
pub fn run_seed(seed: u64, options: Options) -> Result<Report, Failure> {
    if seed % ARRAY_SEEDS == ARRAY_SEEDS - 1 {
        return crate::array::run_array_seed(seed, options);
    }
    let mut prng = Prng::new(seed ^ 0x0054_616E_6765_6C6F);
    let mut plan = Plan::draw(&mut prng, options.protection);
    plan.trim(&options.trim);
    if seed % BEYOND_SEEDS == BEYOND_SEEDS - 5 {
        return beyond::run(seed, plan, prng, options.trace);
    }
    let exam = seed % EXAM_SEEDS == EXAM_SEEDS - 3;
    run_course(seed, plan, prng, options.trace, exam)
}

/// Runs a plan that a seed, or a scenario, has drawn.
pub fn run_plan(seed: u64, plan: Plan, prng: Prng, trace: Option<TraceSink>) -> Result<Report, Failure> {
    run_course(seed, plan, prng, trace, false)
}

fn run_course(
    seed: u64,
    plan: Plan,
    mut prng: Prng,
    trace: Option<TraceSink>,
    exam: bool,
) -> Result<Report, Failure> {
    let world = World::new(seed, trace);
    world.note(|| format!("seed {seed}: {plan:#?}"));
    let shared = Shared::new(world.clone());
    let mut bench = PoolBench::new(plan.clone(), &world, &shared, prng.fork());
    let (course, profile) = (plan.course.clone(), plan.profile.clone());
    let simulation = Simulation::new(world.clone());
    let mut runner = Runner::new(simulation, shared.clone(), &mut bench, course, profile, prng);
    runner.exam = exam;
    runner.run()?;
    let rounds = runner.rounds_begun();
    let totals = bench.totals();
    Ok(report(seed, &world, &shared, u64::from(rounds), totals))
}

fn report(seed: u64, world: &World, shared: &Shared, rounds: u64, pool: PoolTotals) -> Report {
    Report {
        seed,
        digest: world.digest(),
        seeds: 1,
        rounds,
        requests: shared.answered.get(),
        out_of_space: shared.out_of_space.get(),
        refused: shared.refused.get(),
        checked_blocks: shared.oracle.borrow().checked_blocks(),
        events: world.events(),
        simulated_ms: world.now().0 / 1_000_000,
        faults: world.fault_counts(),
        pool,
    }
}
