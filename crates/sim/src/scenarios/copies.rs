//! An administrator's work with copies in the whole array.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, counted};
use crate::array::{Kind, run_copied_array, run_full_bin, run_groups, run_range_copies};
use crate::seed::{Plan, Trouble};
use crate::workload::{Failure, VolumePlan};

/// Volumes that hosts write all the time, small enough to be read often; the power goes again and again.
fn plan(seed: u64, rounds: u32) -> Plan {
    let protection = Protection::ALL[(seed % 5) as usize];
    let mut plan = plain_plan(protection, usize::from(protection.width_min()) + 1, 600);
    plan.volumes =
        (1..=3).map(|volume| VolumePlan { volume, blocks: 600, write_back: volume == 2 }).collect();
    plan.course.rounds = rounds;
    plan.course.requests = 60;
    plan.course.depth = 2;
    plan.course.cut_opening_permille = 100;
    plan.course.power_permille = 700;
    plan.course.orderly_permille = 0;
    plan.checkpoint_interval = Nanos::from_millis(50);
    plan
}

pub const ORDERS_ARE_CUT_OFF: Scenario = Scenario {
    name: "orders-are-cut-off",
    property: "whatever an administrator asks for about copies, cut off in its middle, is done as a whole or not at all",
    run: |seed, mut options| {
        for (n, &kind) in (0u64..).zip(Kind::ALL) {
            // there have to be clones first, and it is done in a moment
            let rounds = if kind == Kind::Refresh { 10 } else { 3 };
            let before = kind.times_cut();
            let mut seeds = (seed..).step_by(1_000).take(CUT_RUNS);
            while kind.times_cut() == before {
                let seed = seeds.next().ok_or_else(|| not_cut(kind))?;
                // one trace is enough
                run_copied_array(seed * 100 + n, plan(seed + n, rounds), kind, options.trace.take())?;
            }
        }
        Ok(())
    },
};

/// Runs of which one cuts off what it is about.
const CUT_RUNS: usize = 20;

fn not_cut(kind: Kind) -> Failure {
    Failure::Broken(format!("no order of the kind {kind:?} was cut off in {CUT_RUNS} runs"))
}

pub const GROUPS_ARE_OF_ONE_MOMENT: Scenario = Scenario {
    name: "groups-are-of-one-moment",
    property: "snapshots of several volumes that hosts write hold no write without those acknowledged before it was sent",
    run: |seed, mut options| {
        for n in 0..GROUP_RUNS {
            let mut plan = plan(seed + n, 1);
            // hosts that write as long as there are orders
            plan.course.requests = 400;
            plan.course.depth = 4;
            plan.course.fault_interval = Some(Nanos::from_micros(700));
            run_groups(seed * 100 + n, plan, options.trace.take())?;
        }
        Ok(())
    },
};

/// Whether a write falls between two snapshots of a group is a matter of luck.
const GROUP_RUNS: u64 = 3;

pub const PLANS_CANNOT_BE_STORED: Scenario = Scenario {
    name: "plans-cannot-be-stored",
    property: "an order whose outcome finds no space on the drives leaves a pool that opens, and volumes that are what they were",
    run: |seed, mut options| {
        for (n, &kind) in
            (0u64..).zip(&[Kind::Snapshot, Kind::Clone, Kind::Group, Kind::Create, Kind::Refresh])
        {
            let mut plan = plan(seed + n, 2);
            plan.troubles = vec![Trouble::NoSpace];
            plan.course.fault_interval = Some(Nanos::from_millis(4));
            let trace = options.trace.take();
            run_copied_array(seed * 100 + n, plan, kind, trace)?;
        }
        Ok(())
    },
};

pub const SCHEDULES_KEEP_NO_MORE: Scenario = Scenario {
    name: "schedules-keep-no-more",
    property: "a schedule never has more snapshots than it keeps, wherever the power goes and the drives have no space",
    run: |seed, mut options| {
        for n in 0..EXPIRY_RUNS {
            let mut plan = plan(seed + n, 3);
            plan.troubles = vec![Trouble::NoSpace];
            plan.course.fault_interval = Some(Nanos::from_millis(100));
            // the keeper takes its time
            plan.profile = plan.profile.with_pauses(EXPIRY_PAUSE_NS_MAX);
            run_copied_array(seed * 100 + n, plan, Kind::Scheduled, options.trace.take())?;
        }
        Ok(())
    },
};

/// In each some snapshots go.
const EXPIRY_RUNS: u64 = 6;
const EXPIRY_PAUSE_NS_MAX: u64 = 2_000_000_000;

pub const EXTENDED_COPIES_ARE_CUT_OFF: Scenario = Scenario {
    name: "extended-copies-are-cut-off",
    property: "copies of ranges, over several lanes and onto what hosts write, bring what the source held meanwhile, and each \
               block is copied or not where the power goes or the command is aborted",
    run: |seed, options| run_range_copies(seed, plan(seed, 4), options.trace).map(drop),
};

pub const INTERRUPTED_COPIES_ARE_ANSWERED: Scenario = Scenario {
    name: "interrupted-copies-are-answered",
    property: "a copy that reaches a volume which somebody else resets, or takes by preemption, is answered, and goes no further",
    run: |seed, mut options| {
        let interrupted = || counted("extended copy: a volume that it had reached was reset by another");
        let before = interrupted();
        let seeds = (seed * 1000..).filter(|&seed| crate::array::hosts_reset(seed)).take(INTERRUPTED_RUNS);
        for seed in seeds {
            run_range_copies(seed, plan(seed, 2), options.trace.take())?;
            if interrupted() > before {
                return Ok(());
            }
        }
        Err(Failure::Broken(format!("no copy was interrupted in {INTERRUPTED_RUNS} runs")))
    },
};

/// Runs of which one has a reset that meets a copy at another volume.
const INTERRUPTED_RUNS: usize = 40;

pub const BIN_GIVES_WAY: Scenario = Scenario {
    name: "bin-gives-way",
    property: "before a pool runs full, what is in the bin goes, the oldest first and nothing else, wherever the power goes; \
               hosts are never refused for want of space",
    run: |seed, options| {
        let mut plan = plan(seed, 8);
        plan.protection = Protection::Stripe;
        plan.drives.truncate(1);
        plan.width = None;
        plan.lossy.clear();
        plan.course.cut_opening_permille = 0;
        run_full_bin(seed, plan, options.trace)
    },
};
