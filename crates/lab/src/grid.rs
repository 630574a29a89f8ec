//! Grids of loads, as in the classic tools: rows are block sizes, columns are queue depths.

use clap::ValueEnum;

use crate::job::{Job, Limit, Pattern};
use crate::result::Results;
use crate::{table, units};

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grid {
    /// Random reads and writes of 512 B to 4 MiB, 1, 10 and 40 at once
    BmFlash,
    /// Reads, writes and nine reads to one write, in order and at random, 1, 10 and 40 at once
    Xdd,
    /// 4 KiB random reads and writes, 1 to 256 at once
    Depth,
    /// 4 KiB random and 4 MiB sequential, at depth 64, and 12 jobs of depth 16
    Fio,
    /// One request at a time, as ioping does
    Latency,
}

/// A table of a grid: its jobs row by row.
pub struct Section {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<(String, Vec<Job>)>,
}

const AT_ONCE: [u32; 3] = [1, 10, 40];

impl Grid {
    pub fn name(self) -> String {
        self.to_possible_value().expect("no variant is skipped").get_name().to_owned()
    }

    /// `base`: how long each run is, and everything else that a grid leaves open. Blocks that are no multiple of
    /// `granule` bytes are left out.
    pub fn sections(self, base: &Job, granule: u32) -> Vec<Section> {
        let powers = |from: u32, to: u32| (0..).map(move |n| from << n).take_while(move |size| *size <= to);
        let sizes =
            |from, to| powers(from, to).filter(|size| size.is_multiple_of(granule)).collect::<Vec<_>>();
        match self {
            Grid::BmFlash => [100, 0]
                .map(|reads| by_block(base, (Pattern::Random, reads), &sizes(512, 4 << 20), &AT_ONCE))
                .into(),
            Grid::Xdd => [Pattern::Sequential, Pattern::Random]
                .into_iter()
                .flat_map(|pattern| [100, 0, 90].map(|reads| (pattern, reads)))
                .map(|load| by_block(base, load, &sizes(512, 64 << 10), &AT_ONCE))
                .collect(),
            Grid::Depth => vec![by_depth(base)],
            Grid::Fio => vec![fio(base)],
            Grid::Latency => vec![latency(base, granule)],
        }
    }
}

/// So many requests at once: random ones share a channel, sequential ones have a stream each.
fn at_once(base: &Job, (pattern, read_percent): (Pattern, u8), block_bytes: u32, count: u32) -> Job {
    let (queue_depth, channels) = match pattern {
        Pattern::Random => (count, 1),
        Pattern::Sequential => (1, count),
    };
    Job { pattern, read_percent, block_bytes, queue_depth, channels, ..base.clone() }
}

fn by_block(base: &Job, load: (Pattern, u8), sizes: &[u32], counts: &[u32]) -> Section {
    let row = |&size: &u32| {
        (
            base::units::size(size.into()),
            counts.iter().map(|&count| at_once(base, load, size, count)).collect(),
        )
    };
    Section {
        title: at_once(base, load, 4096, 1).workload(),
        columns: counts.iter().map(|count| format!("{count} at once")).collect(),
        rows: sizes.iter().map(row).collect(),
    }
}

fn by_depth(base: &Job) -> Section {
    let loads = [("randread", 100), ("randwrite", 0), ("randrw70", 70)];
    let row = |depth: u32| {
        let jobs = loads.map(|(_, reads)| at_once(base, (Pattern::Random, reads), 4096, depth));
        (format!("depth {depth}"), jobs.into())
    };
    Section {
        title: "4 KiB by queue depth".to_owned(),
        columns: loads.map(|(name, _)| name.to_owned()).into(),
        rows: [1, 2, 4, 8, 16, 32, 64, 128, 256].map(row).into(),
    }
}

fn fio(base: &Job) -> Section {
    let shapes = [("1 x depth 64", 64, 1), ("12 x depth 16", 16, 12)];
    let loads = [
        (4096, Pattern::Random, 100),
        (4096, Pattern::Random, 0),
        (4 << 20, Pattern::Sequential, 100),
        (4 << 20, Pattern::Sequential, 0),
    ];
    let row = |(block_bytes, pattern, read_percent)| {
        let job = Job { block_bytes, pattern, read_percent, ..base.clone() };
        let jobs = shapes.map(|(_, queue_depth, channels)| Job { queue_depth, channels, ..job.clone() });
        (format!("{} {}", base::units::size(block_bytes.into()), job.workload()), jobs.into())
    };
    Section {
        title: "fio's usual four".to_owned(),
        columns: shapes.map(|(name, ..)| name.to_owned()).into(),
        rows: loads.map(row).into(),
    }
}

fn latency(base: &Job, granule: u32) -> Section {
    let loads = [("randread", 100), ("randwrite", 0)];
    let sizes: [u32; 4] = [512, 4096, 65536, 1 << 20];
    let row = |size: u32| {
        let jobs = loads.map(|(_, reads)| at_once(base, (Pattern::Random, reads), size, 1));
        (base::units::size(size.into()), jobs.into())
    };
    Section {
        title: "one request at a time".to_owned(),
        columns: loads.map(|(name, _)| name.to_owned()).into(),
        rows: sizes.into_iter().filter(|size| size.is_multiple_of(granule)).map(row).collect(),
    }
}

/// All jobs of some sections, each once.
pub fn jobs(sections: &[Section]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for job in sections.iter().flat_map(|section| section.rows.iter().flat_map(|(_, jobs)| jobs)) {
        if !jobs.contains(job) {
            jobs.push(job.clone());
        }
    }
    jobs
}

/// The classic tables: rate and throughput, and the median and 99.9th percentile of the latency.
pub fn report(sections: &[Section], results: &Results) -> String {
    let mut text = String::new();
    for target in results.targets() {
        for section in sections {
            text.push_str(&format!("{}: {}\n", target, section.title));
            let mut rows = vec![vec!["IOPS / MiB/s / p50 / p99.9".to_owned()]];
            rows[0].extend(section.columns.iter().cloned());
            for (title, jobs) in &section.rows {
                let mut row = vec![title.clone()];
                row.extend(jobs.iter().map(|job| match results.median(target, job) {
                    Some(run) => format!(
                        "{} / {} / {} / {}",
                        units::count(run.iops),
                        units::short(run.mib_s),
                        units::time(run.all.p50_ns),
                        units::time(run.all.p999_ns)
                    ),
                    None => "-".to_owned(),
                }));
                rows.push(row);
            }
            text.push_str(&table::render(&rows));
            text.push('\n');
        }
    }
    text
}

/// What every run of a grid has in common.
pub fn base(seconds: f64, span_bytes: Option<u64>) -> Job {
    Job { limit: Limit::Seconds(seconds), warm_up_seconds: 0.2, span_bytes, ..Job::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_of_every_grid_makes_sense() {
        for grid in Grid::value_variants() {
            for granule in [512, 4096] {
                let sections = grid.sections(&base(1.0, None), granule);
                assert!(sections.iter().all(|section| !section.rows.is_empty()), "{grid:?}");
                for job in jobs(&sections) {
                    assert_eq!(job.check(), Ok(()), "{grid:?}");
                    assert!(job.block_bytes.is_multiple_of(granule));
                }
            }
        }
    }

    #[test]
    fn the_classic_grids_have_their_classic_shape() {
        let bm_flash = Grid::BmFlash.sections(&base(1.0, None), 512);
        assert_eq!(bm_flash.len(), 2);
        assert_eq!((bm_flash[0].rows.len(), bm_flash[0].columns.len()), (14, 3));
        assert_eq!(jobs(&bm_flash).len(), 2 * 14 * 3);
        assert_eq!(Grid::Xdd.sections(&base(1.0, None), 512).len(), 6);
    }
}
