//! Breaks the code on purpose and demands that a simulator notices: each patch of `crates/sim/mutations` and
//! `crates/pairsim/mutations` is applied to a copy of the tree, the simulator is built there and run, and must fail.
//!
//! A patch begins with what is broken in words, and with lines that say how it is to be caught:
//!
//! ```text
//! # One header copy is not written.
//! # scenario: NAME            a named scenario, and any number of them
//! # matrix: CASE              a case of the crash matrix, cut after every third operation, and any number of them
//! # seeds: FROM COUNT         seeds of the random workload; the default is 1 300
//! ```

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use crate::shell::{self, Result, cargo, output_of, program, run};
use crate::simulate::Simulator;

struct Mutation {
    path: PathBuf,
    name: String,
    check: Check,
}

/// How a mutation is to be caught: by one of these scenarios and cases if there are any, else by one of these seeds.
#[derive(PartialEq, Eq)]
struct Check {
    simulator: Simulator,
    scenarios: Vec<String>,
    cases: Vec<String>,
    from: u64,
    count: u64,
}

pub fn run_all(names: &[String]) -> Result {
    let mutations = read_mutations(names)?;
    let copy = shell::target().join("mutate/tree");
    make_copy(&copy)?;
    mark_as_changed(&copy)?;
    let mut rows = Vec::new();
    // One mutation is built while the one before it is checked: a check keeps one core busy, and so does much of a build.
    std::thread::scope(|scope| {
        let (built, to_check) = sync_channel(1);
        let mutations = &mutations;
        let builder = scope.spawn(move || build_all(&copy, mutations, &built));
        let checked = check_all(mutations, to_check, &mut rows);
        let built = builder.join().expect("the builder does not panic");
        built.and(checked)
    })?;
    let survivors: Vec<&str> =
        rows.iter().filter(|row| !row.caught).map(|row: &Row| row.name.as_str()).collect();
    println!("\n{} mutations, {} caught", rows.len(), rows.len() - survivors.len());
    if survivors.is_empty() {
        Ok(())
    } else {
        Err(format!("the simulator does not notice: {}", survivors.join(", ")))
    }
}

/// A simulator that was built: without being broken where there is no mutation.
struct Built<'a> {
    mutation: Option<&'a Mutation>,
    /// A file of its own, which the next build does not replace.
    program: PathBuf,
}

struct Row {
    name: String,
    caught: bool,
}

/// Builds the simulators as they are, then each mutation; stops when nobody checks any more.
fn build_all<'a>(copy: &Path, mutations: &'a [Mutation], built: &SyncSender<Built<'a>>) -> Result {
    for simulator in [Simulator::Array, Simulator::Pair] {
        if mutations.iter().any(|mutation| mutation.check.simulator == simulator) {
            let program = build(copy, simulator, simulator.package())?;
            if built.send(Built { mutation: None, program }).is_err() {
                return Ok(());
            }
        }
    }
    for mutation in mutations {
        git(copy, &["apply", "--whitespace=nowarn"], &mutation.path)
            .map_err(|why| format!("{} cannot be applied: {why}", mutation.name))?;
        let program = build(copy, mutation.check.simulator, &mutation.name);
        git(copy, &["apply", "--reverse", "--whitespace=nowarn"], &mutation.path)?;
        if built.send(Built { mutation: Some(mutation), program: program? }).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// What a check says of the unbroken code comes first: what fails there proves nothing.
fn check_all(mutations: &[Mutation], to_check: Receiver<Built<'_>>, rows: &mut Vec<Row>) -> Result {
    let mut unbroken: Vec<PathBuf> = Vec::new();
    let mut proved: Vec<&Check> = Vec::new();
    for Built { mutation, program } in to_check {
        let Some(Mutation { name, check, .. }) = mutation else {
            unbroken.push(program);
            continue;
        };
        if !proved.contains(&check) {
            let of_kind =
                |program: &&PathBuf| program.file_name() == Some(check.simulator.package().as_ref());
            let sim = unbroken.iter().find(of_kind).expect("unbroken simulators are built first");
            if let Some(what) = caught(sim, check)? {
                return Err(format!("{name} fails without being broken: {what}"));
            }
            proved.push(check);
        }
        let began = Instant::now();
        let found = caught(&program, check)?;
        std::fs::remove_file(&program).map_err(|why| format!("{}: {why}", program.display()))?;
        let seconds = began.elapsed().as_secs();
        let number = rows.len() + 1;
        let of = mutations.len();
        match &found {
            Some(what) => println!("{number}/{of} caught    {name:<36} {seconds:>4} s  {what}"),
            None => println!("{number}/{of} SURVIVED  {name:<36} {seconds:>4} s"),
        }
        rows.push(Row { name: name.clone(), caught: found.is_some() });
    }
    Ok(())
}

fn read_mutations(names: &[String]) -> Result<Vec<Mutation>> {
    let mut found = Vec::new();
    for simulator in [Simulator::Array, Simulator::Pair] {
        found.extend(read_folder(simulator, names)?);
    }
    if found.is_empty() { Err("there is no such patch".to_owned()) } else { Ok(found) }
}

fn read_folder(simulator: Simulator, names: &[String]) -> Result<Vec<Mutation>> {
    let directory = shell::tree().join("crates").join(simulator.package()).join("mutations");
    let why = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut found = Vec::new();
    for entry in directory.read_dir().map_err(why)? {
        let path = entry.map_err(why)?.path();
        let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else { continue };
        let wanted = names.is_empty() || names.iter().any(|name| stem.contains(name.as_str()));
        if path.extension().is_some_and(|extension| extension == "patch") && wanted {
            let text = std::fs::read_to_string(&path).map_err(why)?;
            found.push(parse(simulator, path, stem, &text)?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn parse(simulator: Simulator, path: PathBuf, name: String, text: &str) -> Result<Mutation> {
    let mut check = Check { simulator, scenarios: Vec::new(), cases: Vec::new(), from: 1, count: 300 };
    for line in text.lines().take_while(|line| !line.starts_with("---") && !line.starts_with("diff ")) {
        let line = line.trim_start_matches('#').trim();
        if let Some(names) = line.strip_prefix("scenario:") {
            check.scenarios.extend(names.split_whitespace().map(str::to_owned));
        }
        if let Some(names) = line.strip_prefix("matrix:") {
            check.cases.extend(names.split_whitespace().map(str::to_owned));
        }
        if let Some(numbers) = line.strip_prefix("seeds:") {
            let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [from, count] = numbers[..] else {
                return Err(format!("{name}: `seeds:` is followed by the first seed and how many"));
            };
            (check.from, check.count) = (from, count);
        }
    }
    Ok(Mutation { path, name, check })
}

/// The files of the tree as they are now, with the build directory of an earlier run kept.
fn make_copy(copy: &Path) -> Result {
    let why = |error: std::io::Error| format!("{}: {error}", copy.display());
    if copy.exists() {
        std::fs::remove_dir_all(copy).map_err(why)?;
    }
    for file in shell::files()? {
        let to = copy.join(&file);
        std::fs::create_dir_all(to.parent().expect("it is below the copy")).map_err(why)?;
        // With its time, so that what has not changed is not built again.
        let from = shell::tree().join(&file);
        std::fs::copy(&from, &to).map_err(why)?;
        let modified = from.metadata().and_then(|metadata| metadata.modified()).map_err(why)?;
        std::fs::File::options()
            .append(true)
            .open(&to)
            .and_then(|file| file.set_modified(modified))
            .map_err(why)?;
    }
    Ok(())
}

/// What any patch changes is built anew: an earlier run may have left it built as broken, and the copy is no newer than that.
fn mark_as_changed(copy: &Path) -> Result {
    for mutation in read_mutations(&[])? {
        let text = std::fs::read_to_string(&mutation.path).map_err(|error| error.to_string())?;
        for file in text.lines().filter_map(|line| line.strip_prefix("+++ b/")) {
            let path = copy.join(file);
            let file = std::fs::File::options().append(true).open(&path);
            file.and_then(|file| file.set_modified(std::time::SystemTime::now()))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

fn git(copy: &Path, words: &[&str], patch: &Path) -> Result {
    // The copy is no repository: git must not find the one around it, whose ignored files it would skip.
    let mut git = program("git");
    git.current_dir(copy).args(words).arg(patch).env("GIT_CEILING_DIRECTORIES", shell::target());
    output_of(&mut git).map(drop)
}

fn build(copy: &Path, simulator: Simulator, name: &str) -> Result<PathBuf> {
    let target_dir = shell::target().join("mutate/target");
    let mut build = cargo();
    build.current_dir(copy).args(["build", "--quiet", "--bins", "--package", simulator.package()]);
    // Built anew for each mutation: the development profile builds in less time than the release profile saves.
    build.env("CARGO_PROFILE_DEV_DEBUG", "false");
    run(build.arg("--target-dir").arg(&target_dir))?;
    let kept = target_dir.join("built").join(name);
    let why = |error: std::io::Error| format!("{}: {error}", kept.display());
    std::fs::create_dir_all(target_dir.join("built")).map_err(why)?;
    std::fs::copy(target_dir.join("debug").join(simulator.package()), &kept).map_err(why)?;
    Ok(kept)
}

/// What the simulator complains about first; none where it is content.
fn caught(sim: &Path, check: &Check) -> Result<Option<String>> {
    for scenario in &check.scenarios {
        let mut command = program(sim);
        command.args(["--scenario", scenario]);
        if let Some(complaint) = first_complaint(&mut command)? {
            return Ok(Some(format!("scenario {scenario}: {complaint}")));
        }
    }
    for case in &check.cases {
        let mut command = program(sim);
        command.args(["--matrix", "--every", "3", "--case", case]);
        if let Some(complaint) = first_complaint(&mut command)? {
            return Ok(Some(complaint));
        }
    }
    if !check.scenarios.is_empty() || !check.cases.is_empty() {
        return Ok(None);
    }
    let mut command = program(sim);
    command.args(["--from", &check.from.to_string(), "--count", &check.count.to_string()]);
    first_complaint(&mut command)
}

/// Runs the simulator up to its first complaint; what is broken may go on for long.
fn first_complaint(command: &mut Command) -> Result<Option<String>> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("the simulator cannot be started: {error}"))?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for line in lines.map_while(std::result::Result::ok) {
        if line.contains("FAILED") {
            child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
            return Ok(Some(line.chars().take(100).collect()));
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((!status.success()).then(|| format!("it ended with {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_how_it_is_caught() {
        let parse = |text: &str| parse(Simulator::Array, PathBuf::new(), "x".to_owned(), text);
        let mutation = parse("# breaks\n# seeds: 7 40\n# scenario: a b\n--- a/x\n# seeds: 1 1\n").unwrap();
        assert_eq!((mutation.check.from, mutation.check.count), (7, 40));
        assert_eq!(mutation.check.scenarios, ["a", "b"]);
        assert_eq!(parse("# matrix: c\n").unwrap().check.cases, ["c"]);
        assert_eq!(parse("diff --git").unwrap().check.count, 300);
        assert!(parse("# seeds: 7\n").is_err());
    }
}
