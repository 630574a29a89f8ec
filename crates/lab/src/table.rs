//! Tables for the terminal, in plain text, as the classic tools print them.

use base::table::Table;

use crate::measure::Latency;
use crate::result::{Results, Run, ratio};
use crate::units;

/// Rows of figures, the first row the heading.
pub fn render(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    Table::of_figures(rows.to_vec()).render("", &mut text);
    text
}

/// One run, on a few lines, as fio and ioping tell it.
pub fn one(run: &Run) -> String {
    let mut rows = vec![
        ["", "requests", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"].map(str::to_owned).to_vec(),
    ];
    for (name, latency) in [("reads", &run.reads), ("writes", &run.writes)] {
        if latency.operations > 0 {
            rows.push(latency_row(name, latency));
        }
    }
    let mut text = format!("{} on {}", run.job.title(), run.target);
    if run.target != run.address {
        text.push_str(&format!(" ({})", run.address));
    }
    text.push('\n');
    text.push_str(&format!(
        "{} IOPS, {} MiB/s over {} s\n\n",
        rate(run.iops),
        units::short(run.mib_s),
        units::short(run.seconds)
    ));
    text.push_str(&render(&rows));
    text.push('\n');
    text.push_str(&format!("client: {} us of CPU per request\n", units::short(run.client_cpu.us_per_io)));
    if let Some(cpu) = &run.target_cpu {
        let busy = units::short(cpu.busiest_thread * 100.0);
        text.push_str(&format!(
            "target: {} us of CPU per request, busiest thread {busy} %\n",
            units::short(cpu.us_per_io)
        ));
    }
    text.push_str(&format!("limit:  {}: {}\n", run.bottleneck.name.name(), run.bottleneck.why));
    for (start, length) in &run.freezes {
        let (at, seconds) = (*start as f64 * run.interval_seconds, *length as f64 * run.interval_seconds);
        text.push_str(&format!(
            "FROZEN: next to nothing ended for {} s, {} s after the start\n",
            units::short(seconds),
            units::short(at)
        ));
    }
    text.push_str(&pauses(run));
    text
}

/// What the measuring machine itself did; nothing where it was always there.
pub fn pauses(run: &Run) -> String {
    let longest = run.pauses.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    longest.map_or_else(String::new, |longest| {
        format!(
            "this machine itself stood still {} times, at most for {} s, {} s after the start; the longest request that this did not touch: {}\n",
            run.pauses.len(),
            units::short(longest.seconds),
            units::short(longest.at_seconds),
            units::time(run.own_max_ns)
        )
    })
}

fn latency_row(name: &str, latency: &Latency) -> Vec<String> {
    let Latency { mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = *latency;
    let mut row = vec![name.to_owned(), latency.operations.to_string()];
    row.extend([mean_ns as u64, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns].map(units::time));
    row
}

fn rate(iops: f64) -> String {
    if iops < 10_000.0 { units::short(iops) } else { format!("{:.0}", iops) }
}

/// Jobs down, targets across: the median rate of each, and its ratio to the base where there is one.
pub fn side_by_side(results: &Results, base: Option<&str>) -> String {
    let targets = results.targets();
    let mut heading = vec!["median IOPS".to_owned()];
    for target in &targets {
        heading.push((*target).to_owned());
        heading.extend(base.filter(|base| base != target).map(|base| format!("x {base}")));
    }
    let mut rows = vec![heading];
    for job in results.jobs() {
        let mut row = vec![job.title()];
        for target in &targets {
            let run = results.median(target, job);
            row.push(run.map_or_else(|| "-".to_owned(), |run| units::count(run.iops)));
            if let Some(base) = base.filter(|base| base != target) {
                row.push(
                    ratio(results, target, base, job)
                        .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
                );
            }
        }
        rows.push(row);
    }
    render(&rows)
}
