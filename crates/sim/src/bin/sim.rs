//! Runs seeds of the simulator: one, with its trace if asked for, or many, in several processes.
//!
//! A failed assertion ends the process that hits it; that is why many seeds run in worker processes, and why a
//! worker says which seed it begins.
// this is a tool for people: it starts processes and reads a clock; the simulated world below does not
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use sim::seed::{Options, Report, run_seed};
use sim::steady::{Steady, measure};

const USAGE: &str = "\
usage: sim SEED [--trace]                  run one seed; with its trace (every eighth is the whole array)
       sim --from A --count N [--jobs J] [--seconds S] [--keep-going]
                                           run many seeds, J at a time (default: all cores)
       sim --scenario NAME [--seed S]      run a named scenario
       sim --steady PERCENT [--hot P] [--minutes M] [--rate W]
                                           overwrite a pool that is PERCENT full at random: P of 100 writes to a
                                           tenth of it (10), M simulated minutes (60), W writes a millisecond (1)
       sim --list                          name the scenarios";

/// Seeds of a scenario, where none is asked for.
const SCENARIO_SEEDS: u64 = 8;

#[derive(Default)]
struct Arguments {
    values: BTreeMap<&'static str, u64>,
    flags: Vec<&'static str>,
    scenario: Option<String>,
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
    if arguments.has("worker") {
        return worker(&arguments);
    }
    match (arguments.values.get("seed"), arguments.values.get("from")) {
        (Some(&seed), None) => one(seed, arguments.has("trace")),
        (None, Some(_)) => many(&arguments),
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
    Options { trace: trace.then(|| Box::new(sink) as sim::TraceSink), protection: None }
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
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("FAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    match run_seed(seed, trace_options(trace)) {
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

/// Runs every `step`-th seed and says so, line by line, to the process that started it.
fn worker(arguments: &Arguments) -> ExitCode {
    let (from, end) = (arguments.get("from", 0), arguments.get("from", 0) + arguments.get("count", 1));
    let mut sum = Report::default();
    for seed in (from..end).step_by(arguments.get("step", 1).max(1) as usize) {
        println!("begin {seed}");
        match run_seed(seed, Options::default()) {
            Ok(report) => {
                sum.merge(&report);
                println!("ok {seed} {:016x}", report.digest);
            }
            Err(failure) => println!("failed {seed} {failure}"),
        }
    }
    for (name, count) in sum.totals() {
        println!("total {count} {name}");
    }
    ExitCode::SUCCESS
}

/// What a worker says.
enum News {
    Ok,
    Failed(u64, String),
    Total(String, u64),
    Ended,
}

/// A seed that runs longer than this, in real time, will not end: seconds on a machine that is not busy are few.
const HUNG: Duration = Duration::from_secs(300);

/// What one job is at: the seed, since when, and the worker's process.
type Watched = Arc<Mutex<Option<(Instant, Child)>>>;

/// Ends workers whose seed does not end.
fn end_the_hung(watched: &[Watched]) {
    for job in watched {
        if let Some((since, child)) = job.lock().expect("no job panics").as_mut()
            && since.elapsed() > HUNG
        {
            let _it_has_ended = child.kill();
        }
    }
}

fn start_worker(from: u64, count: u64, step: u64) -> std::io::Result<Child> {
    let (from, count, step) = (from.to_string(), count.to_string(), step.to_string());
    Command::new(std::env::current_exe()?)
        .args(["--worker", "--from", &from, "--count", &count, "--step", &step])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Starts workers one after the other until the seeds of one residue class are done, or it is time to stop: then
/// the seed that has begun is the last.
fn supervise(
    (from, end, step): (u64, u64, u64),
    news: &mpsc::Sender<News>,
    watched: &Watched,
    deadline: Option<Instant>,
) -> std::io::Result<()> {
    let mut next = from;
    let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while next < end && !late() {
        let count = (end - next).min(step * 200);
        let mut child = start_worker(next, count, step)?;
        let errors = child.stderr.take().expect("it is piped");
        let errors = std::thread::spawn(move || {
            let lines = BufReader::new(errors).lines().map_while(Result::ok);
            lines.filter(|line| !line.trim().is_empty()).take(6).collect::<Vec<_>>().join(" | ")
        });
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        *watched.lock().expect("no job panics") = Some((Instant::now(), child));
        let (mut begun, mut stopped) = (None, false);
        for line in lines.map_while(Result::ok) {
            let mut words = line.splitn(3, ' ');
            let (kind, second, rest) = (words.next(), words.next(), words.next().unwrap_or(""));
            let number = second.and_then(|word| word.parse().ok()).unwrap_or(0);
            let said = match kind {
                Some("begin") if late() => {
                    stopped = true;
                    break;
                }
                Some("begin") => {
                    begun = Some(number);
                    if let Some((since, _)) = watched.lock().expect("no job panics").as_mut() {
                        *since = Instant::now();
                    }
                    continue;
                }
                Some("ok") => News::Ok,
                Some("failed") => News::Failed(number, rest.to_owned()),
                Some("total") => News::Total(rest.to_owned(), number),
                _ => continue,
            };
            if matches!(said, News::Ok | News::Failed(..)) {
                begun = None;
            }
            let _nobody_listens = news.send(said);
        }
        let child = watched.lock().expect("no job panics").take();
        if let Some((_, mut child)) = child {
            if stopped {
                child.kill()?;
            }
            child.wait()?;
        }
        let errors = errors.join().unwrap_or_default();
        next = match begun {
            Some(seed) => {
                let _nobody_listens =
                    news.send(News::Failed(seed, format!("ended the process, or did not end: {errors}")));
                seed + step
            }
            None => next + count.next_multiple_of(step),
        };
    }
    Ok(())
}

fn many(arguments: &Arguments) -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let jobs = arguments.get("jobs", cores).max(1);
    let (from, end) = (arguments.get("from", 0), arguments.get("from", 0) + arguments.get("count", 1));
    let deadline =
        arguments.values.get("seconds").map(|&seconds| Instant::now() + Duration::from_secs(seconds));
    let (sender, news) = mpsc::channel();
    let watched: Vec<Watched> = (0..jobs).map(|_| Watched::default()).collect();
    for (job, watched) in (0..jobs).zip(watched.clone()) {
        let sender = sender.clone();
        std::thread::spawn(move || {
            if let Err(why) = supervise((from + job, end, jobs), &sender, &watched, deadline) {
                eprintln!("sim: a worker could not be run: {why}");
            }
            let _nobody_listens = sender.send(News::Ended);
        });
    }
    drop(sender);
    let (mut passed, mut failed, mut running) = (0u64, 0u64, jobs);
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    while running > 0 {
        end_the_hung(&watched);
        match news.recv_timeout(Duration::from_millis(200)) {
            Ok(News::Ok) => passed += 1,
            Ok(News::Failed(seed, why)) => {
                failed += 1;
                println!("seed {seed} FAILED: {why}");
                if !arguments.has("keep-going") && failed >= 20 {
                    break;
                }
            }
            Ok(News::Total(name, count)) => *totals.entry(name).or_default() += count,
            Ok(News::Ended) => running -= 1,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    totals.iter().for_each(|(name, count)| println!("{count:>14}  {name}"));
    println!("{passed} seeds passed, {failed} failed");
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
