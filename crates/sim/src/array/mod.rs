//! The engine and everything above the pool, under seeds: control commands, iSCSI sessions over a network that
//! cuts bytes anywhere and breaks connections, SCSI commands, pools, crashes.

mod bench;
mod copies;
mod engine_shard;
mod extended_copy;
mod full_bin;
mod growth;
mod lun;
mod onlooker;
mod orders;
mod reserve;
mod session;
mod visit;

use base::Nanos;
use copies::Records;
use engine::Memory;

use crate::prng::Prng;
use crate::process::Simulation;
use crate::seed::{Options, Plan, PoolTotals, Report};
use crate::trace::TraceSink;
use crate::workload::{Failure, Profile, Runner, Shared};
use crate::world::World;

pub use bench::{ArrayBench, Who};
pub use copies::Kind;
pub use engine_shard::{EngineShard, command};
pub use growth::Growth;
pub use lun::LunSubject;
pub use orders::Orders;
pub use session::{Ended, HostSession};

/// Hosts of a full pool pause so long at most.
const FULL_BIN_PAUSE_NS_MAX: u64 = 2_000_000_000;
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
    let load =
        Load { hosts, copies: Copies::draw(seed), ranges: extended_copy::Copies::draw(seed), fills: false };
    run(seed, plan, load, prng, options.trace)
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
    run(seed, plan, Load { hosts: 3, copies: None, ranges: None, fills: false }, prng, trace)
}

/// An administrator who makes copies, of one kind above all, in which he is cut off again and again.
pub fn run_copied_array(
    seed: u64,
    mut plan: Plan,
    kind: Kind,
    trace: Option<TraceSink>,
) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    let copies = Copies { schedules: kind == Kind::Scheduled || kind == Kind::Schedule, wanted: Some(kind) };
    run(seed, plan, Load { hosts: 2, copies: Some(copies), ranges: None, fills: false }, prng, trace)
}

/// Hosts that copy ranges all the time, onto what all of them write.
pub fn run_range_copies(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    let ranges = extended_copy::Copies { count: 60, pause_max: 4_000_000 };
    run(seed, plan, Load { hosts: 2, copies: None, ranges: Some(ranges), fills: false }, prng, trace)
}

/// Hosts that write to a pool which is nearly full, and of which somebody deletes volumes: the bin gives way to them.
pub fn run_full_bin(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<(), Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes = DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    plan.profile = plan.profile.with_pauses(FULL_BIN_PAUSE_NS_MAX);
    let report = run(seed, plan, Load { hosts: 2, copies: None, ranges: None, fills: true }, prng, trace)?;
    match report.out_of_space {
        0 => Ok(()),
        count => Err(Failure::Broken(format!("{count} writes were refused although the bin could give way"))),
    }
}

/// For the maps of a shard's lanes there is hardly any memory, less than they have pages, or enough.
fn memory_of(seed: u64) -> Memory {
    let map_bytes = *Prng::new(seed ^ 0x6D65_6D6F_7279).pick(&[1 << 20, 4 << 20, 256 << 20]);
    Memory { map_bytes, ..Memory::default() }
}

/// Whether hosts abort, reset and reserve in the run of this seed, unless the file systems under its drives run full.
pub fn hosts_reset(seed: u64) -> bool {
    !Orders::draw(seed).any()
}

/// How often this process has done, cut off and seen what has to do with copies and full pools, by name.
pub(crate) fn counts() -> impl Iterator<Item = (&'static str, u64)> {
    copies::administration()
        .chain(extended_copy::Seen::counts())
        .chain(lun::Seen::counts())
        .chain(onlooker::Seen::counts())
        .chain(full_bin::Seen::counts())
}

/// Who is at work beside the hosts' reads and writes.
struct Load {
    hosts: u16,
    /// An administrator who makes copies of volumes.
    copies: Option<Copies>,
    /// Hosts that copy ranges.
    ranges: Option<extended_copy::Copies>,
    /// Somebody keeps the pool nearly full.
    fills: bool,
}

/// What an administrator does with copies.
struct Copies {
    /// A schedule takes snapshots of the hosts' volumes; else he does.
    schedules: bool,
    wanted: Option<Kind>,
}

impl Copies {
    /// Most seeds have them. Drawn from a source of its own.
    fn draw(seed: u64) -> Option<Copies> {
        let mut prng = Prng::new(seed ^ 0x636F_7069_6573);
        let schedules = prng.chance(300);
        prng.chance(750).then_some(Copies { schedules, wanted: None })
    }
}

fn run(seed: u64, plan: Plan, load: Load, prng: Prng, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let world = World::new(seed, trace);
    world.note(|| format!("array seed {seed}: {} hosts, copies {:?}, {plan:#?}", load.hosts, load.ranges));
    let shared = Shared::new(world.clone());
    let (course, profile) = (plan.course.clone(), plan.profile.clone());
    let records =
        load.copies.map(|copies| Records::new(&shared, &plan.volumes, copies.schedules, copies.wanted));
    let filler = load.fills.then(|| full_bin::Records::new(&shared));
    let who = Who { hosts: load.hosts, ranges: load.ranges, copies: records, filler };
    let mut bench = ArrayBench::new((plan, memory_of(seed)), &world, &shared, Orders::draw(seed), who);
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
