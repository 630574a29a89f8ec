//! Commands that run many loads: grids, sweeps, runs until the steady state, and the comparison with fio.

use std::io::Write;

use crate::cli::{Common, FioArgs, GridArgs, SteadyArgs, SweepArgs};
use crate::command::{Form, fill_target, finish, look, plan, results, say};
use crate::grid;
use crate::job::Job;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::result::{Results, median};
use crate::run;
use crate::target::Target;
use crate::{fio, settings, steady, sweep, table, units};

/// Largest difference between two generators that measure the same, as a share.
const AGREEMENT: f64 = 0.10;

/// Runs jobs on one target, one after the other.
fn run_all(results: &mut Results, target: &Target, jobs: &[Job], common: &Common) -> Result<(), String> {
    let mut progress = Progress::new(jobs.len());
    for job in jobs {
        progress.next();
        match run::run(&plan(target, job.clone(), common), &mut progress) {
            Ok(run) => results.runs.push(run),
            Err(why) => progress.note(&format!("{}: {why}", job.title())),
        }
    }
    if results.runs.is_empty() { Err("nothing could be run".to_owned()) } else { Ok(()) }
}

pub fn grid(args: &GridArgs, form: Form, out: &mut dyn Write) -> Result<(), String> {
    let shape = look(&args.target, &args.common)?;
    let sections = args.grid.sections(&grid::base(args.seconds, args.span), shape.block_bytes);
    let mut jobs = grid::jobs(&sections);
    jobs.retain(|job| !args.read_only || job.read_percent == 100);
    let mut results = results(&format!("grid {}", args.grid.name()), &args.common);
    run_all(&mut results, &args.target, &jobs, &args.common)?;
    let text = grid::report(&sections, &results);
    finish(&results, None, &args.common, form, &text, out)
}

pub fn sweep(args: &SweepArgs, form: Form, out: &mut dyn Write) -> Result<(), String> {
    let base = args.job.job();
    let mut jobs = vec![base.clone()];
    for vary in &args.vary {
        for (_, job) in vary.jobs(&base)? {
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
    let names: Vec<&str> = args.vary.iter().map(sweep::Vary::name).collect();
    let mut results = results(&format!("sweep of {}", names.join(", ")), &args.common);
    run_all(&mut results, &args.target, &jobs, &args.common)?;
    let text = sweep::report(&args.vary, &base, &results)?;
    finish(&results, None, &args.common, form, &text, out)
}

pub fn steady(args: &SteadyArgs, form: Form, out: &mut dyn Write) -> Result<(), String> {
    let mut progress = Progress::new(steady::ROUNDS_MAX as usize);
    if args.precondition {
        for pass in 1..=2 {
            progress.note(&format!("writing the whole target, pass {pass} of 2"));
            fill_target(&args.target, &args.common)?;
        }
    }
    let mut results = results("steady state", &args.common);
    let mut rates = Vec::new();
    for round in 1..=steady::ROUNDS_MAX {
        progress.next();
        let plan = Plan { round, ..plan(&args.target, args.job.job(), &args.common) };
        let run = run::run(&plan, &mut progress)?;
        rates.push(run.iops);
        results.runs.push(run);
        if steady::steady(&rates).is_some() {
            break;
        }
    }
    let mut rows = vec![["round", "IOPS", "p99", "p99.9"].map(str::to_owned).to_vec()];
    for run in &results.runs {
        let latency = [run.all.p99_ns, run.all.p999_ns].map(units::time);
        rows.push([vec![run.round.to_string(), units::count(run.iops)], latency.into()].concat());
    }
    let verdict = match steady::steady(&rates) {
        Some(rate) => format!("steady at {} IOPS after {} rounds\n", units::count(rate), rates.len()),
        None => format!("NOT STEADY after {} rounds: longer rounds may help\n", rates.len()),
    };
    finish(&results, None, &args.common, form, &(table::render(&rows) + &verdict), out)
}

/// Our generator and fio in turn, round after round. An error where they do not agree.
///
/// Both use memory of the same kind: ours would lie in transparent huge pages where the kernel has them for who asks, of which a
/// drive's large requests are made in fewer pieces; fio does not ask. So this process has none, nor has fio, which inherits that.
pub fn beside_fio(args: &FioArgs, out: &mut dyn Write) -> Result<(), String> {
    fio::is_usable(&args.target)?;
    settings::refuse_huge_pages()?;
    let job = args.job.job();
    let mut progress = Progress::new(args.rounds as usize);
    let mut rows =
        vec![["round", "ours", "fio", "ratio", "our p50", "fio's p50"].map(str::to_owned).to_vec()];
    let (mut ratios, mut version) = (Vec::new(), String::new());
    for round in 1..=args.rounds {
        progress.next();
        let mut run_ours = || run::run(&plan(&args.target, job.clone(), &args.common), &mut progress);
        let run_fio = || fio::run(&args.target, &job, &args.common.cores);
        // neither always comes after the other
        let (ours, theirs) = if round % 2 == 1 {
            (run_ours()?, run_fio()?)
        } else {
            let theirs = run_fio()?;
            (run_ours()?, theirs)
        };
        ratios.push(ours.iops / theirs.iops);
        version = theirs.version;
        rows.push(vec![
            round.to_string(),
            units::count(ours.iops),
            units::count(theirs.iops),
            format!("{:.2}", ours.iops / theirs.iops),
            units::time(ours.all.p50_ns),
            units::time(theirs.p50_ns),
        ]);
    }
    let ratio = median(ratios).ok_or("no round was run")?;
    let agree = (ratio - 1.0).abs() <= AGREEMENT;
    say(out, &table::render(&rows))?;
    let text = format!(
        "{} on {}: the median ratio to {version} is {ratio:.2}, both with {} pages",
        job.title(),
        args.target,
        settings::pages()
    );
    match agree {
        true => say(out, &format!("{text}: they agree within {:.0} %\n", AGREEMENT * 100.0)),
        false => Err(format!("{text}: they differ by more than {:.0} %", AGREEMENT * 100.0)),
    }
}
