//! Profiles as text: a table for each job, and how much more each target uses than the base, by class.

use super::class::Class;
use super::{Profile, cost, of};
use crate::job::Job;
use crate::result::Results;
use crate::{table, units};

/// Differences smaller than this share of the largest are left out of a sentence.
const WORTH_TELLING: f64 = 0.02;

/// Classes down, targets across, in us per request; nothing where no target was profiled.
pub fn rows(results: &Results, job: &Job) -> Option<Vec<Vec<String>>> {
    let profiles: Vec<&Profile> =
        results.targets().iter().filter_map(|target| of(results, target, job)).collect();
    if profiles.is_empty() {
        return None;
    }
    let row = |name: &str, cell: &dyn Fn(&Profile) -> String| {
        let cells = profiles.iter().map(|profile| cell(profile));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let mut rows = vec![row(&format!("{}: us per request", job.title()), &|profile| profile.target.clone())];
    for class in Class::ALL {
        rows.push(row(class.name(), &|profile| {
            units::short(profile.share_of(class) * cost(results, profile))
        }));
    }
    rows.push(row("together", &|profile| units::short(cost(results, profile))));
    rows.push(row("samples", &|profile| profile.samples.to_string()));
    Some(rows)
}

/// One sentence for each target that was profiled beside the base: what the difference consists of, the largest part first.
pub fn differences(results: &Results, base: &str, job: &Job) -> Vec<String> {
    let Some(base) = of(results, base, job) else { return Vec::new() };
    let targets = results.targets().into_iter().filter(|target| *target != base.target);
    let profiles = targets.filter_map(|target| of(results, target, job));
    profiles.map(|profile| difference(results, profile, base)).collect()
}

fn difference(results: &Results, profile: &Profile, base: &Profile) -> String {
    let [takes, floor] = [profile, base].map(|profile| cost(results, profile));
    let part = |class| (class, profile.share_of(class) * takes - base.share_of(class) * floor);
    let mut parts: Vec<(Class, f64)> = Class::ALL.iter().map(|class| part(*class)).collect();
    parts.sort_by(|(_, one), (_, other)| other.abs().total_cmp(&one.abs()));
    let least = parts.first().map_or(0.0, |(_, largest)| largest.abs() * WORTH_TELLING);
    parts.retain(|(_, us)| us.abs() > least);
    let list = |more: bool| {
        let told = parts.iter().filter(|(_, us)| (*us > 0.0) == more);
        told.map(|(class, us)| format!("{} us {}", units::short(us.abs()), class.name())).collect::<Vec<_>>()
    };
    let (more, less) = if takes >= floor { ("more", "less") } else { ("less", "more") };
    let total = units::short((takes - floor).abs());
    let mut text = format!("{}: {total} us {more} than {}", profile.target, base.target);
    for (name, list) in [(more, list(takes >= floor)), (less, list(takes < floor))] {
        if !list.is_empty() {
            text.push_str(&format!("{} {}", if name == more { ":" } else { &"; less:" }, list.join(", ")));
        }
    }
    text + "."
}

/// All of it, for the terminal; nothing where no profile was asked for.
pub fn report(results: &Results, base: Option<&str>) -> String {
    let mut text = String::new();
    for job in results.jobs() {
        let Some(rows) = rows(results, job) else { continue };
        text.push('\n');
        text.push_str(&table::render(&rows));
        for sentence in base.map_or_else(Vec::new, |base| differences(results, base, job)) {
            text.push_str(&format!("{sentence}\n"));
        }
    }
    for why in &results.not_profiled {
        text.push_str(&format!("not profiled: {why}\n"));
    }
    text
}

/// The busiest functions of a profile.
pub fn symbols(results: &Results, profile: &Profile) -> Vec<Vec<String>> {
    let mut rows =
        vec![["function", "us per request", "share", "counted as", "in"].map(str::to_owned).to_vec()];
    for symbol in &profile.symbols {
        let share = profile.share(symbol.samples);
        rows.push(vec![
            symbol.name.clone(),
            units::short(share * cost(results, profile)),
            format!("{:.1} %", share * 100.0),
            symbol.class.name().to_owned(),
            symbol.file.clone(),
        ]);
    }
    rows
}

/// The busiest functions of all profiles, for the terminal: for a single run.
pub fn top(results: &Results) -> String {
    let tables = results.profiles.iter().map(|profile| table::render(&symbols(results, profile)));
    tables.map(|table| format!("\n{table}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn run(target: &str, us_per_io: f64) -> crate::result::Run {
        let mut run = testing::run(target, 1, 1.0);
        run.target_cpu.as_mut().expect("made up").us_per_io = us_per_io;
        run
    }

    #[test]
    fn a_difference_is_told_by_its_parts_the_largest_first() {
        let mut results = testing::results(vec![run("floor", 1.0), run("ours", 1.5)]);
        let classes = Class::ALL.into_iter().zip([40, 0, 4, 20, 10, 0, 26]).collect();
        results.profiles = vec![testing::profile("floor"), Profile { classes, ..testing::profile("ours") }];
        let text = report(&results, Some("floor"));
        let sentence = "ours: 0.5 us more than floor: 0.29 us user: everything else, 0.15 us user: moving data, \
                        0.1 us kernel: network, system calls; less: 0.04 us kernel: waking and scheduling.\n";
        assert!(text.contains(sentence), "{text}");
        assert!(text.contains("together") && text.contains("1.5"), "{text}");
        assert_eq!(differences(&results, "ours", &Job::default()).len(), 1);
        assert!(top(&results).contains("10.0 %"));
    }

    #[test]
    fn what_was_not_profiled_is_one_line() {
        let mut results = testing::results(vec![run("floor", 1.0)]);
        assert_eq!(report(&results, Some("floor")), "");
        results.not_profiled = vec!["perf cannot be started: no such file; install linux-perf".to_owned()];
        assert_eq!(
            report(&results, Some("floor")),
            "not profiled: perf cannot be started: no such file; install linux-perf\n"
        );
    }
}
