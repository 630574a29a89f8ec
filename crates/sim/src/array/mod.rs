//! The engine and everything above the pool, driven by seeds: control commands, iSCSI sessions over a network that
//! splits the byte stream anywhere and breaks connections, SCSI commands, pools, crashes.

mod bench;
mod copies;
mod engine_shard;
mod extended_copy;
mod full_bin;
mod growth;
mod heads;
mod listener;
mod lun;
mod mover;
mod notices;
mod onlooker;
mod orders;
mod raw;
mod reserve;
mod session;
mod set_up;
mod start;
mod tally;
mod visit;

use std::rc::Rc;

use base::Nanos;
use copies::Records;
use engine::Memory;

use crate::drive::DriveOptions;
use crate::prng::Prng;
use crate::process::Simulation;
use crate::seed::{Options, Plan, PoolTotals, Report};
use crate::trace::TraceSink;
use crate::workload::{Course, Failure, Profile, Runner, Shared, VolumePlan};
use crate::world::World;

pub use bench::{ArrayBench, Who};
pub use copies::Kind;
pub use engine_shard::{EngineShard, command};
pub use growth::Growth;
pub use lun::{LunSubject, Rough};
pub use orders::Orders;
pub use raw::run_raw_devices;
pub use session::{Ended, HostSession};

/// Longest pause of a host that is at work for minutes.
const PROBLEMS_PAUSE_NS_MAX: u64 = 2_000_000_000;
/// Longest pause of a host of a full pool.
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
    let mut load = Load::of_hosts(hosts);
    (load.copies, load.ranges) = (Copies::draw(seed), extended_copy::Copies::draw(seed));
    if load.copies.is_none() && options.trim.volumes.is_none() {
        load.second = draw_second_pool(seed, &mut plan);
    }
    load.moves = load.copies.is_none() && Prng::new(seed ^ 0x6D6F_7665_7273).chance(500);
    run(seed, plan, load, prng, options.trace)
}

/// Drives of a second pool, where there is one: it has every other volume.
fn draw_second_pool(seed: u64, plan: &mut Plan) -> Vec<DriveOptions> {
    let mut prng = Prng::new(seed ^ 0x7365_636F_6E64);
    if prng.chance(500) {
        return Vec::new();
    }
    if let [only] = plan.volumes[..] {
        plan.volumes.push(VolumePlan { volume: only.volume + 1, ..only });
    }
    let count = usize::from(plan.protection.width_min()) + prng.index(2);
    let drive = |index| DriveOptions { path: format!("/sim/second{index}"), ..plan.drives[0].clone() };
    (0..count).map(drive).collect()
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
    run(seed, plan, Load::of_hosts(3), prng, trace)
}

/// Hosts on write-back volumes, while the power goes.
pub fn run_write_back(
    seed: u64,
    mut plan: Plan,
    profile: Profile,
    trace: Option<TraceSink>,
) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.volumes.iter_mut().for_each(|volume| volume.write_back = true);
    plan.shards = 2;
    plan.profile = profile;
    plan.course = Course {
        rounds: 4,
        depth: 2,
        requests: 30,
        cut_opening_permille: 0,
        power_permille: 1_000,
        orderly_permille: 0,
        fault_interval: None,
        machine: 0,
    };
    run(seed, plan, Load::of_hosts(2), prng, trace)
}

/// Hosts that are rough with each other: reset what others use, and take it from them.
pub fn run_rough_hosts(
    seed: u64,
    mut plan: Plan,
    rough: Rough,
    trace: Option<TraceSink>,
) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 3;
    run(seed, plan, Load { rough: Some(rough), ..Load::of_hosts(3) }, prng, trace)
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
    run(seed, plan, Load { copies: Some(copies), ..Load::of_hosts(2) }, prng, trace)
}

/// The same for snapshots of groups, by three shards of which one is held up now and then: each learns at its own time that a
/// volume goes on in another layer.
pub fn run_groups(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 3;
    let copies = Copies { schedules: false, wanted: Some(Kind::Group) };
    let rough = Rough { resets_permille: 0, reservations: 0, held_up_ns_max: 4_000_000 };
    let load = Load { copies: Some(copies), rough: Some(rough), ..Load::of_hosts(3) };
    let report = run(seed, plan, load, prng, trace)?;
    // a write that is not held back meets a layer that is frozen already
    match report.out_of_space {
        0 => Ok(report),
        count => Err(Failure::Broken(format!("{count} writes were refused while snapshots were taken"))),
    }
}

/// Hosts that copy ranges all the time, onto what all of them write.
pub fn run_range_copies(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    let ranges = extended_copy::Copies { count: 60, pause_max: 4_000_000 };
    run(seed, plan, Load { ranges: Some(ranges), ..Load::of_hosts(2) }, prng, trace)
}

/// Hosts that write to a nearly full pool in which volumes are deleted: the bin must release space for them.
pub fn run_full_bin(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<(), Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes = DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    plan.profile = plan.profile.with_pauses(FULL_BIN_PAUSE_NS_MAX);
    let report = run(seed, plan, Load { fills: true, ..Load::of_hosts(2) }, prng, trace)?;
    match report.out_of_space {
        0 => Ok(()),
        count => Err(Failure::Broken(format!("{count} writes were refused although the bin could give way"))),
    }
}

/// Hosts whose connections break now and then, while the figures for monitoring are compared with what they do.
pub fn run_figures(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    let rough = Rough { resets_permille: 0, reservations: 0, held_up_ns_max: 0 };
    run(seed, plan, Load { rough: Some(rough), tallies: true, ..Load::of_hosts(2) }, prng, trace)
}

/// Hosts that are at work for minutes, in which nobody gives a command: problems begin and end by themselves.
pub fn run_problems(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    plan.profile = plan.profile.with_pauses(PROBLEMS_PAUSE_NS_MAX);
    let rough = Rough { resets_permille: 0, reservations: 0, held_up_ns_max: 0 };
    run(seed, plan, Load { rough: Some(rough), compares: true, ..Load::of_hosts(2) }, prng, trace)
}

/// Whole volumes are exported and imported while hosts write to them, connections break and the power goes.
pub fn run_transfers(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    run(seed, plan, Load { moves: true, ..Load::of_hosts(2) }, prng, trace)
}

/// Two heads with drives of their own, of which either goes on when the other one has ended.
pub fn run_two_heads(seed: u64, mut plan: Plan, trace: Option<TraceSink>) -> Result<Report, Failure> {
    let prng = Prng::new(seed);
    plan.drives.iter_mut().for_each(|drive| drive.size_bytes += DRIVE_BYTES);
    plan.shards = 1 + (seed % 3) as u16;
    run(seed, plan, Load { rough: Some(Rough::default()), two_heads: true, ..Load::of_hosts(2) }, prng, trace)
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
        .chain(listener::Heard::counts())
        .chain(lun::Seen::counts())
        .chain(mover::Seen::counts())
        .chain(notices::Seen::counts())
        .chain(onlooker::Seen::counts())
        .chain(reserve::Seen::counts())
        .chain(full_bin::Seen::counts())
        .chain(tally::Seen::counts())
        .chain(heads::Seen::counts())
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
    /// Hosts are rough with each other, and no administrator is at work on the drives.
    rough: Option<Rough>,
    /// Drives of a second pool.
    second: Vec<DriveOptions>,
    /// The figures for monitoring are compared with what hosts do.
    tallies: bool,
    /// What events tell is compared with the problems all the time.
    compares: bool,
    /// Somebody exports and imports volumes.
    moves: bool,
    two_heads: bool,
}

impl Load {
    fn of_hosts(hosts: u16) -> Load {
        Load {
            hosts,
            copies: None,
            ranges: None,
            fills: false,
            rough: None,
            second: Vec::new(),
            tallies: false,
            compares: false,
            moves: false,
            two_heads: false,
        }
    }
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
    let rough = load.rough.unwrap_or_default();
    let orders = if load.rough.is_some() { Orders::none() } else { Orders::draw(seed) };
    let who = Who {
        hosts: load.hosts,
        ranges: load.ranges,
        copies: records,
        filler,
        rough,
        second: load.second,
        tallies: load.tallies,
        compares: load.compares,
        moves: load.moves.then(Rc::default),
        two_heads: load.two_heads,
    };
    let mut memory = memory_of(seed);
    if load.moves {
        memory.data_bytes = mover::DATA_BYTES;
    }
    let mut bench = ArrayBench::new((plan, memory), &world, &shared, orders, who);
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
