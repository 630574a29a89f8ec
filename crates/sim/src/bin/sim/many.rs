//! Many seeds: worker processes, their watchers, and the sum of their counts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use sim::seed::{Options, run_seed};

use super::{Arguments, coverage};

/// Runs every `step`-th seed and says so, line by line, to the process that started it.
pub fn worker(arguments: &Arguments) -> ExitCode {
    let (from, end) = (arguments.get("from", 0), arguments.get("from", 0) + arguments.get("count", 1));
    let mut decisions = coverage::Decisions::default();
    for seed in (from..end).step_by(arguments.get("step", 1).max(1) as usize) {
        println!("begin {seed}");
        match run_seed(seed, Options::default()) {
            Ok(report) => {
                for (name, count) in report.totals().into_iter().filter(|&(_, count)| count > 0) {
                    println!("total {count} {name}");
                }
                decisions.print_new();
                println!("ok {seed} {:016x}", report.digest);
            }
            Err(failure) => println!("failed {seed} {failure}"),
        }
    }
    ExitCode::SUCCESS
}

/// Runs every scenario with one seed, for a batch that wants to know what was exercised.
pub fn all_scenarios(arguments: &Arguments) -> ExitCode {
    let mut decisions = coverage::Decisions::default();
    let seed = arguments.get("seed", 1);
    for (number, scenario) in (0u64..).zip(sim::scenarios::ALL) {
        println!("begin {number}");
        match (scenario.run)(seed, Options::default()) {
            Ok(()) => {
                decisions.print_new();
                println!("ok {number}");
            }
            Err(failure) => {
                println!("failed {number} scenario {} with seed {seed}: {failure}", scenario.name);
            }
        }
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

/// A seed that runs longer than this, in real time, will not end. The longest take a minute or two of a core, of which a
/// busy machine may give them a third.
const HUNG: Duration = Duration::from_secs(900);

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

pub fn many(arguments: &Arguments) -> ExitCode {
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
    let mut totals: BTreeMap<String, u64> = coverage::names().map(|name| (name, 0)).collect();
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
    if arguments.has("coverage") {
        failed += scenarios(arguments.get("from", 1), &mut totals);
    }
    totals.iter().for_each(|(name, count)| println!("{count:>14}  {name}"));
    let missing = match arguments.has("coverage") {
        true => coverage::missing(&totals),
        false => Vec::new(),
    };
    missing.iter().for_each(|name| println!("NEVER exercised: {name}"));
    println!("{passed} seeds passed, {failed} failed");
    if failed > 0 || !missing.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs every scenario in a process of its own; how many failed.
fn scenarios(seed: u64, totals: &mut BTreeMap<String, u64>) -> u64 {
    let run = || -> std::io::Result<std::process::Output> {
        let seed = seed.to_string();
        Command::new(std::env::current_exe()?).args(["--scenarios", "--seed", &seed]).output()
    };
    let output = match run() {
        Ok(output) => output,
        Err(why) => {
            println!("FAILED: the scenarios could not be run: {why}");
            return 1;
        }
    };
    let mut failed = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("total"), Some(count), Some(name)) => {
                *totals.entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap_or(0);
            }
            (Some("failed"), _, Some(why)) => {
                failed += 1;
                println!("FAILED: {why}");
            }
            _ => {}
        }
    }
    if !output.status.success() {
        failed += 1;
        println!("FAILED: a scenario ended the process: {}", String::from_utf8_lossy(&output.stderr));
    }
    failed
}
