//! The history of figures: one line of JSON for each suite that was kept, with the machine and the commit.
//!
//! It keeps ratios to the base, which can be compared over years and machines. It does not keep absolute figures.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::result::{Results, cpu_ratio, ratio};
use crate::table;

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Entry {
    pub schema: u32,
    /// Seconds since 1970.
    pub time: u64,
    pub commit: String,
    pub machine: String,
    pub base: String,
    pub figures: Vec<Figure>,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Figure {
    pub target: String,
    pub job: String,
    /// Of the rate, to the base's in the same round; the median.
    pub rate: f64,
    /// The base's CPU per request divided by the target's in the same round, where both are known; the median.
    pub cpu: Option<f64>,
}

const SCHEMA: u32 = 1;

/// What is kept of a suite.
pub fn entry(results: &Results, base: &str) -> Result<Entry, String> {
    if !results.targets().contains(&base) {
        return Err(format!("there is no target {base} in these results"));
    }
    let setting = |name: &str| {
        let found = results.settings.iter().find(|(other, _)| other == name);
        found.map_or_else(|| "unknown".to_owned(), |(_, value)| value.clone())
    };
    let mut figures = Vec::new();
    for target in results.targets().into_iter().filter(|target| *target != base) {
        for job in results.jobs() {
            let Some(rate) = ratio(results, target, base, job) else { continue };
            let cpu = cpu_ratio(results, target, base, job).map(rounded);
            figures.push(Figure { target: target.to_owned(), job: job.title(), rate: rounded(rate), cpu });
        }
    }
    Ok(Entry {
        schema: SCHEMA,
        time: results.time,
        commit: results.commit.clone().unwrap_or_else(|| "unknown".to_owned()),
        machine: format!(
            "{} x {}, {}",
            setting("machine.cores"),
            setting("machine.cpu"),
            setting("kernel.version")
        ),
        base: base.to_owned(),
        figures,
    })
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

pub fn append(entry: &Entry, path: &Path) -> Result<(), String> {
    let line = serde_json::to_string(entry).expect("plain values") + "\n";
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))
}

pub fn load(path: &Path) -> Result<Vec<Entry>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

/// Figures down, entries across, the newest last.
pub fn report(entries: &[Entry]) -> String {
    let newest = entries.iter().rev().take(6).rev().collect::<Vec<_>>();
    let mut rows = vec![vec!["share of the base's rate (of its CPU)".to_owned()]];
    rows[0].extend(newest.iter().map(|entry| entry.commit.clone()));
    let mut names: Vec<(&str, &str)> = Vec::new();
    for figure in newest.iter().flat_map(|entry| &entry.figures) {
        if !names.contains(&(figure.target.as_str(), figure.job.as_str())) {
            names.push((figure.target.as_str(), figure.job.as_str()));
        }
    }
    for (target, job) in names {
        let mut row = vec![format!("{target}: {job}")];
        row.extend(newest.iter().map(|entry| {
            let figure = entry.figures.iter().find(|figure| figure.target == target && figure.job == job);
            figure.map_or_else(
                || "-".to_owned(),
                |figure| {
                    let cpu = figure.cpu.map_or_else(String::new, |cpu| format!(" ({cpu:.2})"));
                    format!("{:.2}{cpu}", figure.rate)
                },
            )
        }));
        rows.push(row);
    }
    table::render(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_is_kept_comes_back() {
        let results = testing::results(vec![testing::run("floor", 1, 100.0), testing::run("ours", 1, 75.0)]);
        let kept = entry(&results, "floor").expect("there is a floor");
        assert_eq!(kept.figures.len(), 1);
        assert_eq!((kept.figures[0].rate, kept.figures[0].cpu), (0.75, Some(1.0)));
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("history.jsonl");
        append(&kept, &path).and_then(|()| append(&kept, &path)).expect("written");
        let entries = load(&path).expect("what was written");
        assert_eq!(entries, [kept.clone(), kept]);
        assert!(report(&entries).contains("0.75 (1.00)"));
        assert!(entry(&results, "nobody").is_err());
    }
}
