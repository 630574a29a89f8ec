//! One HTML page with charts, tables and every setting. It loads nothing and runs no script.

use std::fmt::Write;

use crate::chart::{Bars, Lines, escape};
use crate::job::Job;
use crate::result::{Results, Run, median, ratio};
use crate::{profile, units};

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{padding:.25em .7em;text-align:right;border-bottom:1px solid #ddd}\
td:first-child,th:first-child,.w{text-align:left}td:first-child{min-width:16em}.w{min-width:7em}.bad{color:#b00020;font-weight:bold}svg{margin:1em 0;max-width:100%;height:auto}\
details{margin:.5em 0}summary{cursor:pointer}";

/// The whole page. `base`: what the others are compared with.
pub fn page(results: &Results, base: Option<&str>) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    let title = escape(&results.title);
    let _ = write!(
        html,
        "<title>Tangelo bench: {title}</title><style>{STYLE}</style></head><body>\n<h1>Tangelo bench: {title}</h1>\n"
    );
    let commit = results.commit.as_deref().unwrap_or("unknown");
    let _ = writeln!(
        html,
        "<p>Version {}, commit {}, {} runs.</p>",
        escape(&results.version),
        escape(commit),
        results.runs.len()
    );
    rates(&mut html, results, base);
    if let Some(base) = base {
        ratios(&mut html, results, base);
    }
    costs(&mut html, results);
    profile::write_page(&mut html, results, base);
    latencies(&mut html, results);
    limits(&mut html, results);
    freezes(&mut html, results);
    pauses(&mut html, results);
    time_lines(&mut html, results);
    settings(&mut html, results);
    html.push_str("</body></html>\n");
    html
}

/// Every other target than the base, by job.
fn others<'a>(results: &'a Results, base: &str) -> Vec<&'a str> {
    results.targets().into_iter().filter(|target| *target != base).collect()
}

fn rates(html: &mut String, results: &Results, base: Option<&str>) {
    html.push_str("<h2>Rates</h2>\n<p>Medians over the rounds.</p>\n");
    let mut rows = vec![vec!["IOPS".to_owned()]];
    rows[0].extend(results.targets().iter().map(|target| (*target).to_owned()));
    for job in results.jobs() {
        let mut row = vec![job.title()];
        row.extend(results.targets().iter().map(|target| {
            let Some(run) = results.median(target, job) else { return "-".to_owned() };
            let beside =
                base.filter(|base| base != target).and_then(|base| ratio(results, target, base, job));
            let beside = beside.map_or_else(String::new, |ratio| format!(" ({ratio:.2})"));
            format!("{}{beside}", units::count(run.iops))
        }));
        rows.push(row);
    }
    table(html, &rows);
}

fn ratios(html: &mut String, results: &Results, base: &str) {
    let targets = others(results, base);
    let group =
        |job: &Job| (job.title(), targets.iter().map(|target| ratio(results, target, base, job)).collect());
    let bars = Bars {
        title: &format!("Rate, as a share of {base} in the same round"),
        series: targets.iter().map(|target| (*target).to_owned()).collect(),
        groups: results.jobs().into_iter().map(group).collect(),
        line: Some(1.0),
    };
    html.push_str(&bars.draw());
}

fn costs(html: &mut String, results: &Results) {
    let cost = |target: &&str, job: &Job| {
        median(results.rounds(target, job).filter_map(|run| run.target_cpu.as_ref()).map(|cpu| cpu.us_per_io))
    };
    let targets: Vec<&str> = results.targets();
    let measured: Vec<&str> = targets
        .into_iter()
        .filter(|target| results.jobs().iter().any(|job| cost(target, job).is_some()))
        .collect();
    let groups: Vec<(String, Vec<Option<f64>>)> = results
        .jobs()
        .into_iter()
        .filter(|job| job.block_bytes <= 64 << 10)
        .map(|job| (job.title(), measured.iter().map(|target| cost(target, job)).collect()))
        .collect();
    if !measured.is_empty() && !groups.is_empty() {
        let series = measured.iter().map(|target| (*target).to_owned()).collect();
        html.push_str(
            &Bars { title: "CPU of the target for one request, in us", series, groups, line: None }.draw(),
        );
    }
}

fn latencies(html: &mut String, results: &Results) {
    html.push_str("<h2>Latency</h2>\n");
    let heading = ["", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for job in results.jobs() {
        for target in results.targets() {
            let Some(Run { all, .. }) = results.median(target, job) else { continue };
            let mut row = vec![format!("{}, {target}", job.title())];
            row.extend(
                [all.p50_ns, all.p90_ns, all.p99_ns, all.p999_ns, all.p9999_ns, all.max_ns].map(units::time),
            );
            rows.push(row);
        }
    }
    table(html, &rows);
}

fn limits(html: &mut String, results: &Results) {
    html.push_str("<h2>What held it back</h2>\n");
    let mut rows = vec![["", "limit", "why"].map(str::to_owned).to_vec()];
    for job in results.jobs() {
        for target in results.targets() {
            let Some(run) = results.median(target, job) else { continue };
            let limit = run.bottleneck.name.name().to_owned();
            rows.push(vec![format!("{}, {target}", job.title()), limit, run.bottleneck.why.clone()]);
        }
    }
    table(html, &rows);
}

fn freezes(html: &mut String, results: &Results) {
    let frozen: Vec<&Run> = results.runs.iter().filter(|run| !run.freezes.is_empty()).collect();
    if frozen.is_empty() {
        html.push_str("<p>No run froze.</p>\n");
        return;
    }
    html.push_str("<h2 class=\"bad\">Frozen</h2>\n<ul>\n");
    for run in frozen {
        for (start, length) in &run.freezes {
            let [at, long] = [*start, *length].map(|count| units::short(count as f64 * run.interval_seconds));
            let what = escape(&format!("{}, {}, round {}", run.target, run.job.title(), run.round));
            let _ =
                writeln!(html, "<li>{what}: next to nothing ended for {long} s, {at} s after the start</li>");
        }
    }
    html.push_str("</ul>\n");
}

/// Stretches in which the measuring machine itself stood still.
fn pauses(html: &mut String, results: &Results) {
    let mut rows = vec![["this machine itself stood still", ""].map(str::to_owned).to_vec()];
    for run in results.runs.iter().filter(|run| !run.pauses.is_empty()) {
        let what = format!("{}, {}, round {}", run.target, run.job.title(), run.round);
        rows.push(vec![what, crate::table::pauses(run)]);
    }
    if rows.len() > 1 {
        table(html, &rows);
    }
}

fn time_lines(html: &mut String, results: &Results) {
    html.push_str("<h2>Time lines</h2>\n");
    for job in results.jobs() {
        let runs: Vec<&Run> =
            results.targets().iter().filter_map(|target| results.median(target, job)).collect();
        let Some(first) = runs.first() else { continue };
        let step_seconds = first.interval_seconds;
        let rate = |run: &&Run| {
            let line = run.line.iter().map(|interval| interval.operations as f64 / run.interval_seconds);
            (run.target.clone(), line.collect())
        };
        let worst = |run: &&Run| {
            (
                run.target.clone(),
                run.line.iter().map(|interval| interval.latency_ns_max as f64 / 1e3).collect(),
            )
        };
        let title = job.title();
        let _ = writeln!(html, "<details><summary>{}</summary>", escape(&title));
        let series = runs.iter().map(rate).collect();
        html.push_str(&Lines { title: &title, unit: "IOPS", step_seconds, series }.draw());
        let series = runs.iter().map(worst).collect();
        html.push_str(
            &Lines { title: "longest request of each interval", unit: "us", step_seconds, series }.draw(),
        );
        html.push_str("</details>\n");
    }
}

fn settings(html: &mut String, results: &Results) {
    html.push_str("<h2>Settings in force</h2>\n<details><summary>of the machine</summary>\n");
    pairs(html, &results.settings);
    html.push_str("</details>\n");
    for target in results.targets() {
        let Some(run) = results.runs.iter().find(|run| run.target == target) else { continue };
        let _ =
            writeln!(html, "<details><summary>of {} ({})</summary>", escape(target), escape(&run.address));
        pairs(html, &run.settings);
        html.push_str("</details>\n");
    }
}

fn pairs(html: &mut String, pairs: &[(String, String)]) {
    let heading = ["name", "value"].map(str::to_owned).to_vec();
    let rows = pairs.iter().map(|(name, value)| vec![name.clone(), value.clone()]);
    table(html, &std::iter::once(heading).chain(rows).collect::<Vec<_>>());
}

/// The first row is the heading. Columns of words are aligned to the left, those of numbers to the right.
pub fn table(html: &mut String, rows: &[Vec<String>]) {
    let words = |column: usize| {
        let mut cells = rows.iter().skip(1).filter_map(|row| row.get(column));
        cells.any(|cell| cell.starts_with(|first: char| first.is_alphabetic() || "[_<".contains(first)))
    };
    let columns: Vec<&str> = (0..rows.first().map_or(0, Vec::len))
        .map(|column| if column > 0 && words(column) { " class=w" } else { "" })
        .collect();
    html.push_str("<table>\n");
    for (index, row) in rows.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        let cell = |(cell, class): (&String, &&str)| format!("<{tag}{class}>{}</{tag}>", escape(cell));
        let cells: String = row.iter().zip(&columns).map(cell).collect();
        let _ = writeln!(html, "<tr>{cells}</tr>");
    }
    html.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_page_has_everything_and_fetches_nothing() {
        let mut frozen = testing::run("ours", 1, 50.0);
        frozen.freezes = vec![(3, 2)];
        let mut results = testing::results(vec![testing::run("floor", 1, 100.0), frozen]);
        results.profiles = ["floor", "ours"].map(testing::profile).into();
        results.not_profiled = vec!["drives: no server".to_owned()];
        let page = page(&results, Some("floor"));
        for part in [
            "an &lt;abacus&gt;",
            "0.50",
            "What held it back",
            "it is &lt;full&gt;",
            "next to nothing ended for 0.2 s",
            "<svg",
            "user: everything else",
            "&lt;iscsi::Link&gt;",
            "not profiled: drives: no server",
            "ours: 0 us more than floor",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        for fetched in ["<script", "http://", "https://", "<link", "<img", "url("] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        assert!(
            page.contains("<td class=w>it is &lt;full&gt;</td>") && page.contains("<td>10.0 %</td>"),
            "{page}"
        );
        assert_eq!(page.matches("<table>").count(), page.matches("</table>").count());
    }
}
