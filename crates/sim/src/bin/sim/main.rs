//! Runs seeds of the simulator: one, with its trace on request, or many, in several processes.
//!
//! A failed assertion ends the process in which it happens. That is why many seeds run in worker processes, and why a
//! worker reports which seed it begins.
// this is a tool for people: it starts processes and reads a clock; the simulated world below does not
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod coverage;
mod many;
mod matrix;
mod shrink;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use sim::seed::{Options, Trim, Trouble, run_seed};
use sim::steady::{Steady, measure};

// a third of a run is asking for memory and giving it back
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: sim SEED [--trace] [TRIM]           run one seed; with its trace (of sixteen, two are the whole array, one goes
                                           beyond what was promised)
       sim --from A --count N [--jobs J] [--seconds S] [--keep-going] [--coverage]
                                           run many seeds, J at a time (default: all cores); with --coverage every
                                           scenario too, and what was never exercised is a failure
       sim --shrink SEED                   leave out of a seed that fails whatever it does not need to fail
       sim --scenario NAME [--seed S]      run a named scenario
       sim --matrix [--case NAME] [--every K] [--seed S] [--jobs J]
                                           cut the power after every K-th drive operation of scripted cases (1)
       sim --steady PERCENT [--hot P] [--minutes M] [--rate W]
                                           overwrite a pool that is PERCENT full at random: P of 100 writes to a
                                           tenth of it (10), M simulated minutes (60), W writes a millisecond (1)
       sim --list                          name the scenarios
TRIM:  --without KIND,KIND... --rounds N --requests N --depth N --volumes N --one-lane";

/// Seeds of a scenario, where none is asked for.
const SCENARIO_SEEDS: u64 = 8;

#[derive(Default)]
struct Arguments {
    values: BTreeMap<&'static str, u64>,
    flags: Vec<&'static str>,
    scenario: Option<String>,
    case: Option<String>,
    without: Vec<Trouble>,
}

impl Arguments {
    fn parse() -> Result<Arguments, String> {
        let mut parsed = Arguments::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = |name: &'static str, text: Option<String>| match text.as_deref().map(parse_seed)
            {
                Some(Ok(value)) => {
                    parsed.values.insert(name, value);
                    Ok(())
                }
                _ => Err(format!("{name} needs a number")),
            };
            match argument.as_str() {
                "--from" => number("from", arguments.next())?,
                "--count" => number("count", arguments.next())?,
                "--step" => number("step", arguments.next())?,
                "--jobs" => number("jobs", arguments.next())?,
                "--seconds" => number("seconds", arguments.next())?,
                "--seed" => number("seed", arguments.next())?,
                "--steady" => number("steady", arguments.next())?,
                "--hot" => number("hot", arguments.next())?,
                "--minutes" => number("minutes", arguments.next())?,
                "--rate" => number("rate", arguments.next())?,
                "--every" => number("every", arguments.next())?,
                "--shrink" => number("shrink", arguments.next())?,
                "--rounds" => number("rounds", arguments.next())?,
                "--requests" => number("requests", arguments.next())?,
                "--depth" => number("depth", arguments.next())?,
                "--volumes" => number("volumes", arguments.next())?,
                "--without" => parsed.without = parse_troubles(&arguments.next().unwrap_or_default())?,
                "--one-lane" => parsed.flags.push("one-lane"),
                "--coverage" => parsed.flags.push("coverage"),
                "--counted" => number("counted", arguments.next())?,
                "--matrix" => parsed.flags.push("matrix"),
                "--case" => parsed.case = Some(arguments.next().ok_or("--case needs a name")?),
                "--trace" => parsed.flags.push("trace"),
                "--worker" => parsed.flags.push("worker"),
                "--list" => parsed.flags.push("list"),
                "--keep-going" => parsed.flags.push("keep-going"),
                "--scenario" => parsed.scenario = Some(arguments.next().ok_or("--scenario needs a name")?),
                other if !other.starts_with('-') => number("seed", Some(other.to_owned()))?,
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(parsed)
    }

    fn get(&self, name: &'static str, otherwise: u64) -> u64 {
        self.values.get(name).copied().unwrap_or(otherwise)
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn trim(&self) -> Trim {
        let small = |name| self.values.get(name).map(|&value| value as u32);
        Trim {
            without: self.without.clone(),
            rounds: small("rounds"),
            requests: self.values.get("requests").copied(),
            depth: small("depth"),
            volumes: self.values.get("volumes").map(|&value| value as usize),
            one_lane: self.has("one-lane"),
        }
    }
}

fn parse_troubles(text: &str) -> Result<Vec<Trouble>, String> {
    let find = |name: &str| Trouble::ALL.into_iter().find(|trouble| trouble.name() == name);
    text.split(',').map(|name| find(name).ok_or(format!("no kind of trouble is called {name}"))).collect()
}

fn parse_seed(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("sim: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if arguments.has("list") {
        sim::scenarios::ALL
            .iter()
            .for_each(|scenario| println!("{:<40} {}", scenario.name, scenario.property));
        return ExitCode::SUCCESS;
    }
    if let Some(name) = &arguments.scenario {
        return scenario(name, &arguments);
    }
    if let Some(&full_percent) = arguments.values.get("steady") {
        return steady(full_percent, &arguments);
    }
    if arguments.has("matrix") {
        return matrix::run(&arguments);
    }
    if arguments.values.contains_key("counted") {
        return many::counted_scenario(&arguments);
    }
    if arguments.has("worker") {
        return many::worker(&arguments);
    }
    if let Some(&seed) = arguments.values.get("shrink") {
        return shrink::shrink(seed);
    }
    match (arguments.values.get("seed"), arguments.values.get("from")) {
        (Some(&seed), None) => one(seed, &arguments),
        (None, Some(_)) => many::many(&arguments),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn trace_options(trace: bool) -> Options {
    let sink = |now: base::Nanos, line: &str| {
        // a closed pipe (as by `| head`) ends the trace, not the run
        let _closed = writeln!(std::io::stdout(), "{now:?} {line}");
    };
    Options { trace: trace.then(|| Box::new(sink) as sim::TraceSink), ..Options::default() }
}

fn steady(full_percent: u64, arguments: &Arguments) -> ExitCode {
    let steady = Steady {
        protection: pool::Protection::Parity1,
        full_percent,
        hot_percent: arguments.get("hot", 10),
        time: base::Nanos::from_secs(60 * arguments.get("minutes", 60)),
        writes_per_ms: arguments.get("rate", 1),
    };
    match measure(&steady, arguments.get("seed", 1), Options::default()) {
        Ok(outcome) => {
            println!("{full_percent} % full, {} of 100 writes to a tenth:\n{outcome}", steady.hot_percent);
            // a write that takes so long is one that somebody notices
            if outcome.stalls == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(failure) => {
            println!("FAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, arguments: &Arguments) -> ExitCode {
    let options = Options { trim: arguments.trim(), ..trace_options(arguments.has("trace")) };
    match run_seed(seed, options) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("seed {seed} FAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn scenario(name: &str, arguments: &Arguments) -> ExitCode {
    let Some(scenario) = sim::scenarios::ALL.iter().find(|scenario| scenario.name == name) else {
        eprintln!("sim: no scenario {name}; --list names them");
        return ExitCode::from(2);
    };
    // a script leaves order and timing to the seed
    let seeds = arguments.values.get("seed").map_or(1..=SCENARIO_SEEDS, |&seed| seed..=seed);
    for seed in seeds {
        if let Err(failure) = (scenario.run)(seed, trace_options(arguments.has("trace"))) {
            println!("scenario {name} FAILED with seed {seed}: {failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
