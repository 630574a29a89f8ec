//! The engine and everything above the pool, under seeds: control commands, iSCSI sessions over a network that
//! cuts bytes anywhere and breaks connections, SCSI commands, pools, crashes.

mod bench;
mod engine_shard;
mod growth;
mod lun;
mod orders;
mod reserve;
mod session;

use base::Nanos;

use crate::prng::Prng;
use crate::process::Simulation;
use crate::seed::{Options, Plan, PoolTotals, Report};
use crate::trace::TraceSink;
use crate::workload::{Failure, Profile, Runner, Shared};
use crate::world::World;

pub use bench::ArrayBench;
pub use engine_shard::{EngineShard, command};
pub use growth::Growth;
pub use lun::LunSubject;
pub use orders::Orders;
pub use session::{Ended, HostSession};

/// Drives of a pool that the array makes have at least this size; they are sparse here.
const DRIVE_BYTES: u64 = base::limits::DRIVE_BYTES_MIN;

/// Runs a seed against the whole array. The same seed gives the same report, or the same failure.
pub fn run_array_seed(seed: u64, options: Options) -> Result<Report, Failure> {
    let mut prng = Prng::new(seed ^ 0x6172_7261_7900);
    let mut plan = Plan::draw(&mut prng, options.protection);
    plan.trim(&options.trim);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.volumes.iter_mut().for_each(|volume| volume.blocks = *prng.pick(&[256, 1_024, 4_096]));
    plan.shards = prng.between(1, 3) as u16;
    plan.course.depth = plan.course.depth.min(8);
    if let Some(interval) = &mut plan.course.fault_interval {
        *interval = (*interval).max(Nanos::from_millis(2));
    }
    let hosts = prng.between(1, 3) as u16;
    run(seed, plan, hosts, prng, options.trace)
}

/// Three hosts that all want the same few blocks, on both sides of the borders of lanes, while connections break and the
/// power goes.
pub fn run_contended_array(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let mut prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 2 + (seed % 2) as u16;
    plan.profile = Profile::contended();
    plan.course.requests = 60;
    plan.course.depth = 4;
    plan.course.rounds = prng.between(1, 2) as u32;
    run(seed, plan, 3, prng, trace)
}

fn run(seed: u64, plan: Plan, hosts: u16, prng: Prng, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let world = World::new(seed, trace);
    world.note(|| format!("array seed {seed}: {hosts} hosts, {plan:#?}"));
    let shared = Shared::new(world.clone());
    let (course, profile) = (plan.course.clone(), plan.profile.clone());
    let mut bench = ArrayBench::new(plan, hosts, &world, &shared, Orders::draw(seed));
    let mut runner =
        Runner::new(Simulation::new(world.clone()), shared.clone(), &mut bench, course, profile, prng);
    runner.run()?;
    let rounds = runner.rounds_begun();
    Ok(Report {
        seed,
        digest: world.digest(),
        seeds: 1,
        rounds: u64::from(rounds),
        requests: shared.answered.get(),
        out_of_space: shared.out_of_space.get(),
        refused: shared.refused.get(),
        checked_blocks: shared.oracle.borrow().checked_blocks(),
        events: world.events(),
        simulated_ms: world.now().0 / 1_000_000,
        faults: world.fault_counts(),
        pool: PoolTotals::default(),
    })
}
