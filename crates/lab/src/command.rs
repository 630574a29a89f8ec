//! Executes commands: from command-line arguments to runs, tables and files.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{SystemTime, UNIX_EPOCH};

use base::Nanos;
use uring::{Options, spawn_shards};

use crate::cli::{Bench, Common, Fill, FloorArgs, RunArgs, SuiteArgs};
use crate::copy::Copy;
use crate::floor::{self, Floor};
use crate::job::{Job, Limit, Pattern};
use crate::offload::{self, Offload};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::result::{Results, Run, SCHEMA};
use crate::run;
use crate::target::{Target, Unit};
use crate::verify;
use crate::worker::{World, retry};
use crate::{
    against, agent, compare, copy, history, html, kernels, more, profile, settings, suite, table, torture,
    units,
};

/// How a command's answer is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Table,
    Json,
}

/// Carries out one command of the lab.
pub fn run(bench: &Bench, form: Form, out: &mut dyn Write) -> Result<(), String> {
    match bench {
        Bench::Run(args) => run_one(args, form, out),
        Bench::Fill(args) => fill(args, out),
        Bench::Agent { listen, cores } => agent::serve(*listen, cores, |address| {
            // Whoever started it may not care; it serves all the same.
            let _ = say(out, &format!("agent on {address}\n"));
        }),
        Bench::Floor(args) => serve_floor(args, out),
        Bench::Grid(args) => more::grid(args, form, out),
        Bench::Sweep(args) => more::sweep(args, form, out),
        Bench::Steady(args) => more::steady(args, form, out),
        Bench::Fio(args) => more::beside_fio(args, out),
        Bench::Kernels => say(out, &kernels::report(&kernels::measure())),
        Bench::Copy { from, to, block, depth } => {
            let copy =
                Copy { from: from.clone(), to: to.clone(), block_bytes: *block as usize, depth: *depth };
            let (bytes, seconds) = in_world(move |env| copy::copy(env, &copy))?;
            let rate = bytes as f64 / f64::from(1 << 20) / seconds;
            let (bytes, seconds) = (base::units::size(bytes), units::short(seconds));
            say(out, &format!("copied: {bytes} in {seconds} s, {rate:.0} MiB/s\n"))
        }
        Bench::Offload { from, to, bytes, block } => {
            let (Target::Iscsi(source), Target::Iscsi(destination)) = (from.clone(), to.clone()) else {
                return Err(format!("{from}, {to}: use iscsi://HOST[:PORT]/TARGET/LUN"));
            };
            let offload = Offload { from: source, to: destination, bytes: *bytes, command_bytes: *block };
            say(out, &offload::report(&in_world(move |env| offload::offload(env, &offload))?))
        }
        Bench::Report { results, page, base } => {
            write_page(&Results::load(results)?, base.as_deref(), page)?;
            say(out, &format!("written: {}\n", page.display()))
        }
        Bench::Against { results } => say(out, &against::report(&Results::load(results)?)),
        Bench::History { history, add, base } => {
            if let (Some(results), Some(base)) = (add, base) {
                history::append(&history::entry(&Results::load(results)?, base)?, history)?;
            }
            say(out, &history::report(&history::load(history)?))
        }
        Bench::Suite(args) => run_suite(args, form, out),
        Bench::Compare { before, after } => {
            say(out, &compare::report(&Results::load(before)?, &Results::load(after)?))
        }
        Bench::Verify { target, file, copy } => {
            let Target::Iscsi(unit) = target else {
                return Err(format!(
                    "{target}: only logical units are compared; use iscsi://HOST[:PORT]/TARGET/LUN"
                ));
            };
            let (unit, file, copy) = (unit.clone(), file.clone(), copy.clone());
            let (bytes, retried) = in_world(move |env| verify::verify(env, &unit, &file, copy.as_deref()))?;
            say(out, &format!("identical: {bytes} bytes\n{}", retry::told(&retried)))
        }
        Bench::Torture { target, paths, seconds, until, rate } => {
            let Target::Iscsi(unit) = target else {
                return Err(format!("{target}: use iscsi://HOST[:PORT]/TARGET/LUN"));
            };
            let others = paths.iter().map(|&portal| Unit { portal, ..unit.clone() });
            let units: Vec<Unit> = std::iter::once(unit.clone()).chain(others).collect();
            let pace = torture::Pace { seconds: *seconds, until: until.clone(), rate: *rate };
            let tally = in_world(move |env| {
                torture::torture(env, &units, pace, &mut |tally| eprintln!("{}", tortured(tally)))
            })?;
            let (done, again) = (tortured(&tally), retry::told(&tally.retried));
            say(out, &format!("{done}, no mismatch\n{}{again}", pauses(tally.pauses)))
        }
    }
}

/// Empty if there were none.
fn pauses(mut pauses: Vec<Nanos>) -> String {
    pauses.sort_unstable();
    let at = |percent: usize| pauses[(pauses.len() - 1) * percent / 100].0 / 1_000_000;
    match pauses.len() {
        0 => String::new(),
        count => format!(
            "{count} pauses of 100 ms and more: p50 {} ms, p95 {} ms, longest {} ms\n",
            at(50),
            at(95),
            at(100)
        ),
    }
}

fn tortured(tally: &torture::Tally) -> String {
    let torture::Tally { writes, reads, blocks_checked, sessions, refused, longest_pause, .. } = tally;
    let pause = longest_pause.0 / 1_000_000;
    format!(
        "{writes} writes, {reads} reads, {blocks_checked} blocks checked, {sessions} sessions, {refused} refused, \
         {pause} ms longest pause"
    )
}

pub fn say(out: &mut dyn Write, text: &str) -> Result<(), String> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| format!("output: {error}"))
}

/// Something that is done on one thread with io_uring.
pub fn in_world<T: Send + 'static>(
    work: impl FnOnce(&mut World) -> Result<T, String> + Clone + Send + 'static,
) -> Result<T, String> {
    let (send, result) = channel();
    let shards = spawn_shards(&Options::new(1), move |mut env: World| drop(send.send(work(&mut env))));
    let shards = shards.map_err(|error| format!("io_uring: {error}"))?;
    let result = result.recv().map_err(|_| "the thread is gone".to_owned())?;
    shards.threads.into_iter().for_each(|thread| drop(thread.join()));
    result
}

/// A file of results without runs: what holds for all of them.
pub fn results(title: &str, common: &Common) -> Results {
    let mut settings = settings::of_machine();
    settings.extend(common.note.iter().map(|(name, value)| (format!("note.{name}"), value.clone())));
    Results {
        schema: SCHEMA,
        title: title.to_owned(),
        time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: settings::commit(),
        settings,
        runs: Vec::new(),
        profiles: Vec::new(),
        not_profiled: Vec::new(),
    }
}

fn write_page(results: &Results, base: Option<&str>, path: &Path) -> Result<(), String> {
    std::fs::write(path, html::page(results, base)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Keeps and prints results.
pub fn finish(
    results: &Results,
    base: Option<&str>,
    common: &Common,
    form: Form,
    text: &str,
    out: &mut dyn Write,
) -> Result<(), String> {
    if let Some(path) = &common.save {
        results.save(path)?;
    }
    if let Some(path) = &common.report {
        write_page(results, base, path)?;
    }
    let told = retry::told(&results.retried());
    match form {
        Form::Table if common.against => say(out, &format!("{text}{told}\n{}", against::report(results))),
        Form::Table => say(out, &format!("{text}{told}")),
        Form::Json => say(out, &(serde_json::to_string(results).expect("plain values") + "\n")),
    }
}

pub fn plan(target: &Target, job: Job, common: &Common) -> Plan {
    Plan {
        name: target.to_string(),
        target: target.clone(),
        job,
        round: 1,
        cores: common.cores.clone(),
        target_process: common.target_process,
    }
}

fn run_one(args: &RunArgs, form: Form, out: &mut dyn Write) -> Result<(), String> {
    let mut progress = Progress::new(1 + usize::from(args.profile));
    progress.next();
    let plan = plan(&args.target, args.job.job(), &args.common);
    let mut results = results("run", &args.common);
    let run = if args.agent.is_empty() {
        run::run(&plan, &mut progress)?
    } else {
        let sum = agent::lead(&plan, &args.agent, !args.not_here, &mut progress)?;
        progress.clear();
        let hosts: Vec<String> = args.agent.iter().map(ToString::to_string).collect();
        results.settings.push(("generator.agents".to_owned(), hosts.join(" ")));
        results.settings.push(("generator.here".to_owned(), (!args.not_here).to_string()));
        run::to_run(&plan, &sum)
    };
    let mut text = table::one(&run);
    results.runs.push(run);
    if args.profile {
        profile::take(&mut results, std::slice::from_ref(&plan), &mut progress);
        text.push_str(&profile::report(&results, None));
        text.push_str(&profile::top(&results));
    }
    finish(&results, None, &args.common, form, &text, out)
}

fn run_suite(args: &SuiteArgs, form: Form, out: &mut dyn Write) -> Result<(), String> {
    if let Some(base) = &args.base
        && !args.targets.iter().any(|named| named.name == *base)
    {
        return Err(format!("--base {base}: there is no target of this name"));
    }
    let mut jobs = suite::jobs(args.seconds);
    jobs.iter_mut().for_each(|job| job.durable = args.durable);
    jobs.retain(|job| args.only.is_empty() || args.only.iter().any(|text| job.title().contains(text)));
    let mut results = results("suite", &args.common);
    suite::run(&mut results, &args.targets, &jobs, args.rounds, &args.common)?;
    let mut text = suite::report(&results, args.base.as_deref());
    if args.profile {
        suite::profile(&mut results, &args.targets, &jobs, &args.common);
        text.push_str(&profile::report(&results, args.base.as_deref()));
    }
    finish(&results, args.base.as_deref(), &args.common, form, &text, out)
}

fn fill(args: &Fill, out: &mut dyn Write) -> Result<(), String> {
    let run = fill_target(&args.target, &args.common)?;
    let told = retry::told(&run.retried);
    say(out, &format!("filled: {:.0} MiB, {:.0} MiB/s\n{told}", run.mib_s * run.seconds, run.mib_s))
}

/// Writes all of a target, once, in order.
pub fn fill_target(target: &Target, common: &Common) -> Result<Run, String> {
    let mut progress = Progress::new(1);
    progress.next();
    let job = |bytes: u64, block_bytes: u32| Job {
        pattern: Pattern::Sequential,
        read_percent: 0,
        block_bytes,
        queue_depth: 16,
        limit: Limit::Bytes(bytes),
        ..Job::default()
    };
    let size = look(target, common)?.size_bytes;
    run::run(&plan(target, job(size / 65536 * 65536, 65536), common), &mut progress)
}

/// What a short read tells about a target.
pub struct Shape {
    pub size_bytes: u64,
    pub block_bytes: u32,
}

pub fn look(target: &Target, common: &Common) -> Result<Shape, String> {
    let job = Job { queue_depth: 1, limit: Limit::Bytes(4096), ..Job::default() };
    let seen = run::run(&plan(target, job, common), &mut Progress::silent())?;
    let setting = |name: &str| {
        let found = seen.settings.iter().find(|(other, _)| other == name);
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let block_bytes = match target {
        Target::Drives(_) => base::BLOCK_BYTES as u64,
        Target::Iscsi(_) => {
            setting("logical_block_bytes").ok_or("the target does not tell its block size")?
        }
        Target::Echo(_) => 512,
    };
    let size_bytes = setting("size_bytes").ok_or("the target does not tell its size")?;
    Ok(Shape { size_bytes, block_bytes: block_bytes as u32 })
}

fn serve_floor(args: &FloorArgs, out: &mut dyn Write) -> Result<(), String> {
    let floor = Floor { listen: args.listen, size_bytes: args.size, cores: args.cores.clone() };
    let (send, listening) = channel();
    let server = std::thread::spawn(move || floor::serve(&floor, send));
    if let Ok(address) = listening.recv() {
        say(out, &format!("echo floor on echo://{address}\n"))?;
    }
    server.join().map_err(|_| "the echo floor panicked")?
}
