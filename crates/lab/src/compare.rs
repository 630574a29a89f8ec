//! Compares two files of results: the effect of a change.

use crate::result::{Results, median};
use crate::table;
use crate::units;

/// What is new against what was, job by job, for targets of the same name.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub target: String,
    pub job: String,
    pub before_iops: f64,
    pub after_iops: f64,
    pub before_p99_ns: f64,
    pub after_p99_ns: f64,
    /// Half of the spread of the rounds, as a share of the median; the larger of both.
    pub noise: f64,
}

impl Change {
    pub fn ratio(&self) -> f64 {
        self.after_iops / self.before_iops
    }

    /// Whether the change is larger than the rounds differ among themselves.
    pub fn counts(&self) -> bool {
        (self.ratio() - 1.0).abs() > self.noise.max(0.02)
    }
}

pub fn changes(before: &Results, after: &Results) -> Vec<Change> {
    let mut found = Vec::new();
    for target in after.targets() {
        for job in after.jobs() {
            let of = |results: &Results| {
                let rates: Vec<f64> = results.rounds(target, job).map(|run| run.iops).collect();
                let p99 = median(results.rounds(target, job).map(|run| run.all.p99_ns as f64));
                Some((median(rates.iter().copied())?, p99?, spread(&rates)))
            };
            let (Some((before_iops, before_p99_ns, noise)), Some((after_iops, after_p99_ns, other))) =
                (of(before), of(after))
            else {
                continue;
            };
            let (target, job, noise) = (target.to_owned(), job.title(), noise.max(other));
            found.push(Change { target, job, before_iops, after_iops, before_p99_ns, after_p99_ns, noise });
        }
    }
    found
}

fn spread(rates: &[f64]) -> f64 {
    let (low, high) =
        rates.iter().fold((f64::MAX, 0.0f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    median(rates.iter().copied())
        .filter(|median| *median > 0.0)
        .map_or(0.0, |median| (high - low) / 2.0 / median)
}

/// As text; what cannot be compared, and settings that differ, are named.
pub fn report(before: &Results, after: &Results) -> String {
    let changes = changes(before, after);
    let mut rows = vec![
        ["", "before", "after", "ratio", "noise", "", "p99 before", "p99 after"].map(str::to_owned).to_vec(),
    ];
    for change in &changes {
        let verdict = match (change.counts(), change.ratio() > 1.0) {
            (false, _) => "same",
            (true, true) => "faster",
            (true, false) => "SLOWER",
        };
        rows.push(vec![
            format!("{}: {}", change.target, change.job),
            units::count(change.before_iops),
            units::count(change.after_iops),
            format!("{:.2}", change.ratio()),
            format!("{:.2}", change.noise),
            verdict.to_owned(),
            units::time(change.before_p99_ns as u64),
            units::time(change.after_p99_ns as u64),
        ]);
    }
    let mut text = if changes.is_empty() { String::new() } else { table::render(&rows) };
    let compared = changes.len();
    let all = after.targets().len() * after.jobs().len();
    if compared < all {
        text.push_str(&format!("{} of {all} have nothing to be compared with\n", all - compared));
    }
    for (name, value) in &after.settings {
        if let Some((_, old)) = before.settings.iter().find(|(other, old)| other == name && old != value) {
            text.push_str(&format!("setting {name}: {old} before, {value} after\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{results, run};

    #[test]
    fn only_what_exceeds_the_noise_counts() {
        let before =
            results(vec![run("a", 1, 100.0), run("a", 2, 110.0), run("a", 3, 90.0), run("b", 1, 50.0)]);
        let after = results(vec![run("a", 1, 105.0), run("b", 1, 25.0), run("c", 1, 1.0)]);
        let found = changes(&before, &after);
        let summary: Vec<_> = found.iter().map(|change| (change.target.as_str(), change.counts())).collect();
        assert_eq!(summary, [("a", false), ("b", true)]);
        let text = report(&before, &after);
        assert!(text.contains("SLOWER") && text.contains("1 of 3 have nothing"), "{text}");
    }
}
