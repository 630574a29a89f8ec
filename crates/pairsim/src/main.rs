//! `pairsim`: runs seeds of the simulated pair. Its options and its last line are those of `sim`.
#![allow(clippy::disallowed_methods, reason = "a batch ends after some seconds of real time")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pair::Decision;

const USAGE: &str = "usage: pairsim SEED [--trace]
       pairsim --scenario NAME [--seed S] [--trace]
                              run a scripted run with many seeds, or with one
       pairsim --list         name the scripted runs
       pairsim --from A --count N [--jobs J] [--seconds S] [--keep-going] [--coverage]
                              run many seeds, J at a time (default: all cores); with --coverage, what was never
                              exercised is a failure";

struct Order {
    from: u64,
    count: u64,
    jobs: usize,
    seconds: u64,
    keep_going: bool,
    coverage: bool,
    trace: bool,
    /// A scripted run instead of a random one.
    scenario: Option<String>,
}

/// Seeds of a scripted run.
const SCENARIO_SEEDS: u64 = 300;

fn parse(args: &[String]) -> Option<Order> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut order = Order {
        from: 0,
        count: 1,
        jobs,
        seconds: u64::MAX,
        keep_going: false,
        coverage: false,
        trace: false,
        scenario: None,
    };
    let mut is_seed_given = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--count" => order.count = args.next()?.parse().ok()?,
            "--jobs" => order.jobs = args.next()?.parse().ok().filter(|jobs| *jobs > 0)?,
            "--seconds" => order.seconds = args.next()?.parse().ok()?,
            "--keep-going" => order.keep_going = true,
            "--coverage" => order.coverage = true,
            "--trace" => order.trace = true,
            "--scenario" => {
                order.scenario = Some(args.next()?.clone());
                (order.from, order.count) = (1, SCENARIO_SEEDS);
                is_seed_given = true;
            }
            "--seed" => (order.from, order.count) = (args.next()?.parse().ok()?, 1),
            other => {
                let seed = if other == "--from" { args.next()? } else { other };
                order.from = seed.parse().ok()?;
                is_seed_given = true;
            }
        }
    }
    is_seed_given.then_some(order)
}

/// What many runs have shown.
#[derive(Default)]
struct Findings {
    passed: u64,
    failed: u64,
    counts: BTreeMap<&'static str, u64>,
}

fn run_many(order: &Order) -> Findings {
    let next = AtomicU64::new(order.from);
    let stop = AtomicBool::new(false);
    let end = Instant::now().checked_add(Duration::from_secs(order.seconds));
    let findings = Mutex::new(Findings::default());
    let work = || {
        while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed - order.from >= order.count {
                break;
            }
            let outcome = match &order.scenario {
                None => pairsim::run(seed, order.trace),
                Some(name) => pairsim::run_scenario(name, seed, order.trace).expect("its name was checked"),
            };
            print_all(&outcome.trace);
            let mut findings = findings.lock().expect("no run panics while it holds this");
            for (what, count) in outcome.counts {
                *findings.counts.entry(what).or_insert(0) += count;
            }
            match outcome.failure {
                None => findings.passed += 1,
                Some(why) => {
                    println!("seed {seed} FAILED: {why}");
                    findings.failed += 1;
                    stop.store(!order.keep_going, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..order.jobs {
            scope.spawn(work);
        }
    });
    findings.into_inner().expect("no run panics while it holds this")
}

/// Quietly ends where the reader has gone, as `head` does.
fn print_all(lines: &[String]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _reader_has_gone = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
}

/// Prints what was exercised; whether something was not.
fn report_coverage(counts: &BTreeMap<&'static str, u64>) -> bool {
    for (what, count) in counts {
        println!("{count:>10}  {what}");
    }
    let decisions = Decision::ALL.into_iter().filter(|decision| *decision != Decision::Forgotten);
    let expected = pairsim::EXPECTED.iter().copied().chain(decisions.map(Decision::name));
    let never: Vec<&str> = expected.filter(|what| !counts.contains_key(what)).collect();
    never.iter().for_each(|what| println!("NEVER exercised: {what}"));
    !never.is_empty()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["--list"] {
        pairsim::scenarios().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let is_known = |order: &Order| {
        order.scenario.as_ref().is_none_or(|name| pairsim::scenarios().any(|one| one == name))
    };
    let Some(order) = parse(&args).filter(is_known) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let findings = run_many(&order);
    let lacks = order.coverage && report_coverage(&findings.counts);
    println!("{} seeds passed, {} failed", findings.passed, findings.failed);
    if findings.failed == 0 && !lacks { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
