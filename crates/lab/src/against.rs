//! Published figures of known systems, shown beside those measured here.

use crate::job::Job;
use crate::result::Results;
use crate::{table, units};

/// Shipped with the program; the first line names the columns.
const FIGURES: &str = include_str!("../data/figures.csv");

/// One published figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    pub system: String,
    pub tool: String,
    pub protection: String,
    pub drives: String,
    pub path: String,
    pub workload: String,
    pub block_bytes: u32,
    /// Requests at once, where that is said.
    pub at_once: Option<u64>,
    /// Where it is given, else from the throughput; none where only the note tells.
    pub iops: Option<f64>,
    pub note: String,
}

/// Cells of a line; those with commas stand in double quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            character => cells.last_mut().expect("there is one").push(character),
        }
    }
    cells
}

/// Threads times depth, or none where either is left open; no answer where either is no number.
fn at_once(threads: &str, depth: &str) -> Option<Option<u64>> {
    if threads.is_empty() || depth.is_empty() {
        return Some(None);
    }
    Some(Some(threads.parse::<u64>().ok()? * depth.parse::<u64>().ok()?))
}

/// A line that cannot be understood is none.
fn parse(line: &str) -> Option<Figure> {
    let cells = cells(line);
    let [system, tool, protection, drives, path, workload, block, threads, depth, iops, mib_s, note] =
        &cells[..]
    else {
        return None;
    };
    let block_bytes: u32 = block.parse().ok()?;
    let from_throughput =
        || mib_s.parse::<f64>().ok().map(|mib_s| mib_s * f64::from(1 << 20) / f64::from(block_bytes));
    Some(Figure {
        system: system.clone(),
        tool: tool.clone(),
        protection: protection.clone(),
        drives: drives.clone(),
        path: path.clone(),
        workload: workload.clone(),
        block_bytes,
        at_once: at_once(threads, depth)?,
        iops: iops.parse().ok().or_else(from_throughput),
        note: note.clone(),
    })
}

pub fn figures() -> Vec<Figure> {
    FIGURES.lines().skip(1).filter_map(parse).collect()
}

/// Where the publication does not say how many requests there were at once, only deep queues are compared with it.
const DEEP: u64 = 64;

/// The same requests, as many at once; however they are spread over threads and queues.
fn fits(figure: &Figure, job: &Job) -> bool {
    let as_many = match figure.at_once {
        Some(at_once) => at_once == job.outstanding(),
        None => job.outstanding() >= DEEP,
    };
    figure.workload == job.workload() && figure.block_bytes == job.block_bytes && as_many
}

/// A line for each measured job and each published figure of the same requests.
pub fn report(results: &Results) -> String {
    let figures = figures();
    let dash = || "-".to_owned();
    let mut rows = vec![
        ["measured", "IOPS", "published", "IOPS", "ratio", "drives", "path"].map(str::to_owned).to_vec(),
    ];
    for target in results.targets() {
        for job in results.jobs() {
            let Some(run) = results.median(target, job) else { continue };
            for figure in figures.iter().filter(|figure| fits(figure, job)) {
                rows.push(vec![
                    format!("{target}: {}", job.title()),
                    units::count(run.iops),
                    format!("{} {} {}", figure.system, figure.tool, figure.protection),
                    figure.iops.map_or_else(dash, units::count),
                    figure.iops.map_or_else(dash, |iops| format!("{:.2}", run.iops / iops)),
                    figure.drives.clone(),
                    [figure.path.as_str(), figure.note.as_str()].join(" ").trim().to_owned(),
                ]);
            }
        }
    }
    if rows.len() == 1 {
        return "no published figure is of these requests; the grids bm-flash, xdd and fio have the same as they\n".to_owned();
    }
    let text = table::render(&rows);
    format!("{text}\nOther machines, other years: what counts is the shape, and how many drives it took.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{self, Grid};
    use crate::testing;

    #[test]
    fn every_published_figure_is_understood() {
        assert_eq!(figures().len(), FIGURES.lines().count() - 1);
        let systems = [
            "db-server-2009",
            "xen-blade-2010",
            "scst-array-2011",
            "iscsi-ssd-cluster-2015",
            "nvme-cib-2017",
            "nfs-datastore-2008",
        ];
        for system in systems {
            assert!(figures().iter().any(|figure| figure.system.starts_with(system)), "{system}");
        }
        assert_eq!(cells("a,\"b, c\",,d"), ["a", "b, c", "", "d"]);
    }

    #[test]
    fn the_grids_meet_the_figures_of_their_tools() {
        for (grid, tool) in [(Grid::BmFlash, "bm-flash"), (Grid::Xdd, "xdd")] {
            let jobs = grid::jobs(&grid.sections(&grid::base(1.0, None), 512));
            let of_tool: Vec<Figure> = figures().into_iter().filter(|figure| figure.tool == tool).collect();
            let met = of_tool.iter().filter(|figure| jobs.iter().any(|job| fits(figure, job))).count();
            assert!(met * 10 >= of_tool.len() * 9, "{tool}: {met} of {}", of_tool.len());
        }
    }

    #[test]
    fn what_was_measured_stands_beside_what_was_published() {
        let mut run = testing::run("ours", 1, 20_604.0);
        run.job = Job { block_bytes: 4096, queue_depth: 1, ..Job::default() };
        let text = report(&testing::results(vec![run]));
        assert!(text.contains("xen-blade-2010") && text.contains("2.00"), "{text}");
    }
}
