//! Many seeds: worker processes, their watchers, and the sum of their counts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use sim::scenarios::ALL;
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

/// Runs one scenario, for a batch that wants to know what was exercised.
pub fn counted_scenario(arguments: &Arguments) -> ExitCode {
    let scenario = &sim::scenarios::ALL[arguments.get("counted", 0) as usize];
    let seed = arguments.get("seed", 1);
    match (scenario.run)(seed, Options::default()) {
        Ok(()) => coverage::Decisions::default().print_new(),
        Err(failure) => println!("failed {failure}"),
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
        failed += scenarios(arguments.get("from", 1), jobs, &mut totals);
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

/// Runs every scenario in a process of its own, `jobs` at a time; how many failed.
fn scenarios(seed: u64, jobs: u64, totals: &mut BTreeMap<String, u64>) -> u64 {
    let next = AtomicUsize::new(0);
    let totals = Mutex::new(totals);
    let failed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(number) = Some(next.fetch_add(1, Relaxed)).filter(|&n| n < ALL.len()) {
                    match counts_of(number, seed) {
                        Ok(counts) => {
                            let mut totals = totals.lock().expect("no job panics");
                            counts
                                .into_iter()
                                .for_each(|(name, count)| *totals.entry(name).or_default() += count);
                        }
                        Err(why) => {
                            failed.fetch_add(1, Relaxed);
                            println!("FAILED: scenario {} with seed {seed}: {why}", ALL[number].name);
                        }
                    }
                }
            });
        }
    });
    failed.into_inner()
}

/// What a scenario has exercised, or why it failed.
fn counts_of(number: usize, seed: u64) -> Result<Vec<(String, u64)>, String> {
    let (number, seed) = (number.to_string(), seed.to_string());
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).args(["--counted", &number, "--seed", &seed]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("it ended the process: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let total = |line: &str| {
        let (count, name) = line.strip_prefix("total ")?.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    match text.lines().find_map(|line| line.strip_prefix("failed ")) {
        Some(why) => Err(why.to_owned()),
        None => Ok(text.lines().filter_map(total).collect()),
    }
}
