//! Results of runs, as they are stored in files. The schema has a version; an unknown version is refused.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cpu::CpuUse;
use crate::job::Job;
use crate::measure::{Interval, Latency};
use crate::profile::Profile;
use crate::watch::Pause;
use crate::worker::{Retried, retry};

/// Version of the files that are written. It grows when a field changes its meaning.
pub const SCHEMA: u32 = 2;

/// One run of one job against one target.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Run {
    /// What the target is called in tables.
    pub target: String,
    /// Where it is.
    pub address: String,
    pub job: Job,
    /// From 1, where a job is run several times.
    pub round: u32,
    pub seconds: f64,
    pub iops: f64,
    pub mib_s: f64,
    pub reads: Latency,
    pub writes: Latency,
    pub all: Latency,
    /// Seconds of one interval of the time line.
    pub interval_seconds: f64,
    pub line: Vec<Interval>,
    /// Start and length of each stretch in which next to nothing ended, in intervals.
    pub freezes: Vec<(usize, usize)>,
    /// When a processor of the measuring machine stood still.
    #[serde(default)]
    pub pauses: Vec<Pause>,
    /// The longest latency of the intervals that no pause can have touched.
    #[serde(default)]
    pub own_max_ns: u64,
    pub client_cpu: CpuUse,
    /// Where the target runs on this machine, or was named.
    pub target_cpu: Option<CpuUse>,
    /// What held it back, and what tells.
    pub bottleneck: Bottleneck,
    /// How often commands were sent again, by why: UNIT ATTENTION, BUSY, TASK SET FULL.
    #[serde(default, skip_serializing_if = "Retried::is_empty")]
    pub retried: Retried,
    /// Every setting that was in force for this run alone.
    pub settings: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Bottleneck {
    pub name: Limit,
    pub why: String,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    QueueDepth,
    ClientCpu,
    TargetCpu,
    Wire,
    Drive,
    CommandWindow,
    Unknown,
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Limit::QueueDepth => "queue depth",
            Limit::ClientCpu => "client's core",
            Limit::TargetCpu => "target's core",
            Limit::Wire => "wire",
            Limit::Drive => "drive",
            Limit::CommandWindow => "command window",
            Limit::Unknown => "unknown",
        }
    }
}

/// A file of results.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Results {
    pub schema: u32,
    /// What was run: `run`, `grid bm-flash` ...
    pub title: String,
    /// Seconds since 1970.
    pub time: u64,
    pub version: String,
    /// Of the tree that was measured, where it is known.
    pub commit: Option<String>,
    /// Settings in force for all runs: machine, kernel, what the user noted.
    pub settings: Vec<(String, String)>,
    pub runs: Vec<Run>,
    /// Where the CPU of targets' servers went, where that was asked for: one for each target and job at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
    /// What was asked for and could not be profiled, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_profiled: Vec<String>,
}

impl Results {
    pub fn load(path: &Path) -> Result<Results, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(format!(
                    "{} has schema {schema}, this program knows {SCHEMA}: measure again, or use the program that wrote it",
                    path.display()
                ));
            }
            None => return Err(format!("{} is no file of results", path.display())),
        }
        serde_json::from_value(value).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub fn save(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).expect("plain values");
        std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The runs of one target and job, over all rounds.
    pub fn rounds<'a, 'b>(
        &'a self,
        target: &'b str,
        job: &'b Job,
    ) -> impl Iterator<Item = &'a Run> + use<'a, 'b> {
        self.runs.iter().filter(move |run| run.target == target && run.job == *job)
    }

    /// How often commands were sent again in all runs, by why.
    pub fn retried(&self) -> Retried {
        let mut sum = Retried::new();
        self.runs.iter().for_each(|run| retry::add(&mut sum, &run.retried));
        sum
    }

    /// Targets, in the order of their first run.
    pub fn targets(&self) -> Vec<&str> {
        in_order(self.runs.iter().map(|run| run.target.as_str()))
    }

    /// Jobs, in the order of their first run.
    pub fn jobs(&self) -> Vec<&Job> {
        in_order(self.runs.iter().map(|run| &run.job))
    }

    /// The run whose rate is the median of its rounds.
    pub fn median(&self, target: &str, job: &Job) -> Option<&Run> {
        let mut rounds: Vec<&Run> = self.rounds(target, job).collect();
        rounds.sort_by(|one, other| one.iops.total_cmp(&other.iops));
        let middle = rounds.len().checked_sub(1)? / 2;
        rounds.get(middle).copied()
    }
}

fn in_order<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    items.for_each(|item| {
        if !found.contains(&item) {
            found.push(item);
        }
    });
    found
}

/// The value in the middle; of an even number the lower one.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// The median over rounds of the rate of `target` divided by that of `base` in the same round: what disturbs the machine
/// for a while disturbs both.
pub fn ratio(results: &Results, target: &str, base: &str, job: &Job) -> Option<f64> {
    in_rounds(results, (target, base), job, |run, other| (other.iops > 0.0).then(|| run.iops / other.iops))
}

/// The same of the CPU for one request: that of `base` divided by that of `target`, so that more is better, too.
pub fn cpu_ratio(results: &Results, target: &str, base: &str, job: &Job) -> Option<f64> {
    let cost = |run: &Run| run.target_cpu.as_ref().map(|cpu| cpu.us_per_io).filter(|cost| *cost > 0.0);
    in_rounds(results, (target, base), job, |run, other| Some(cost(other)? / cost(run)?))
}

fn in_rounds(
    results: &Results,
    (target, base): (&str, &str),
    job: &Job,
    of: impl Fn(&Run, &Run) -> Option<f64>,
) -> Option<f64> {
    median(results.rounds(target, job).filter_map(|run| {
        let other = results.rounds(base, job).find(|other| other.round == run.round)?;
        of(run, other)
    }))
}
