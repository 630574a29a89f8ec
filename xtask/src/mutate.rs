//! Breaks the code on purpose and demands that the simulator notices: each patch of `crates/sim/mutations` is applied
//! to a copy of the tree, the simulator is built there and run, and must fail.
//!
//! A patch begins with what is broken in words, and with lines that say how it is to be caught:
//!
//! ```text
//! # One header copy is not written.
//! # scenario: NAME            a named scenario, and any number of them
//! # seeds: FROM COUNT         seeds of the random workload; the default is 1 300
//! ```

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::shell::{self, Result, cargo, output_of, program, run};

struct Mutation {
    path: PathBuf,
    name: String,
    scenarios: Vec<String>,
    from: u64,
    count: u64,
}

pub fn run_all(name: Option<&str>) -> Result {
    let mutations = read_mutations(name)?;
    let copy = shell::target().join("mutate/tree");
    let mut survivors = Vec::new();
    let mut rows = Vec::new();
    // The unbroken code first: what fails there proves nothing.
    make_copy(&copy)?;
    let sim = build(&copy)?;
    for mutation in &mutations {
        if let Some(what) = caught(&sim, mutation)? {
            return Err(format!("{} fails without being broken: {what}", mutation.name));
        }
    }
    for mutation in &mutations {
        let began = Instant::now();
        git(&copy, &["apply", "--whitespace=nowarn"], &mutation.path)
            .map_err(|why| format!("{} cannot be applied: {why}", mutation.name))?;
        let result = build(&copy).and_then(|sim| caught(&sim, mutation));
        git(&copy, &["apply", "--reverse", "--whitespace=nowarn"], &mutation.path)?;
        let seconds = began.elapsed().as_secs();
        match result? {
            Some(what) => rows.push(format!("caught    {:<36} {seconds:>4} s  {what}", mutation.name)),
            None => {
                rows.push(format!("SURVIVED  {:<36} {seconds:>4} s", mutation.name));
                survivors.push(mutation.name.clone());
            }
        }
        println!("{}", rows.last().expect("one was just added"));
    }
    println!("\n{} mutations, {} caught", rows.len(), rows.len() - survivors.len());
    if survivors.is_empty() {
        Ok(())
    } else {
        Err(format!("the simulator does not notice: {}", survivors.join(", ")))
    }
}

fn read_mutations(name: Option<&str>) -> Result<Vec<Mutation>> {
    let directory = shell::tree().join("crates/sim/mutations");
    let why = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut found = Vec::new();
    for entry in directory.read_dir().map_err(why)? {
        let path = entry.map_err(why)?.path();
        let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else { continue };
        let wanted = name.is_none_or(|name| stem.contains(name));
        if path.extension().is_some_and(|extension| extension == "patch") && wanted {
            let text = std::fs::read_to_string(&path).map_err(why)?;
            found.push(parse(path, stem, &text)?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if found.is_empty() {
        Err("there is no such patch in crates/sim/mutations".to_owned())
    } else {
        Ok(found)
    }
}

fn parse(path: PathBuf, name: String, text: &str) -> Result<Mutation> {
    let mut mutation = Mutation { path, name, scenarios: Vec::new(), from: 1, count: 300 };
    for line in text.lines().take_while(|line| !line.starts_with("---") && !line.starts_with("diff ")) {
        let line = line.trim_start_matches('#').trim();
        if let Some(names) = line.strip_prefix("scenario:") {
            mutation.scenarios.extend(names.split_whitespace().map(str::to_owned));
        }
        if let Some(numbers) = line.strip_prefix("seeds:") {
            let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [from, count] = numbers[..] else {
                return Err(format!(
                    "{}: `seeds:` is followed by the first seed and how many",
                    mutation.name
                ));
            };
            (mutation.from, mutation.count) = (from, count);
        }
    }
    Ok(mutation)
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

fn git(copy: &Path, words: &[&str], patch: &Path) -> Result {
    // The copy is no repository: git must not find the one around it, whose ignored files it would skip.
    let mut git = program("git");
    git.current_dir(copy).args(words).arg(patch).env("GIT_CEILING_DIRECTORIES", shell::target());
    output_of(&mut git).map(drop)
}

fn build(copy: &Path) -> Result<PathBuf> {
    let target_dir = shell::target().join("mutate/target");
    let mut build = cargo();
    build.current_dir(copy).args(["build", "--quiet", "--release", "--package", "sim", "--bin", "sim"]);
    run(build.arg("--target-dir").arg(&target_dir))?;
    Ok(target_dir.join("release/sim"))
}

/// What the simulator has to complain about; none where it is content.
fn caught(sim: &Path, mutation: &Mutation) -> Result<Option<String>> {
    for scenario in &mutation.scenarios {
        let mut command = program(sim);
        command.args(["--scenario", scenario]).stderr(std::process::Stdio::null());
        if !shell::run_with_lines(&mut command, |_| ())? {
            return Ok(Some(format!("scenario {scenario}")));
        }
    }
    if !mutation.scenarios.is_empty() {
        return Ok(None);
    }
    let mut command = program(sim);
    command.args(["--from", &mutation.from.to_string(), "--count", &mutation.count.to_string()]);
    let mut first = None;
    let succeeded = shell::run_with_lines(&mut command, |line| {
        if first.is_none() && line.contains("FAILED") {
            first = Some(line.chars().take(100).collect::<String>());
        }
    })?;
    match (succeeded, first) {
        (true, _) => Ok(None),
        (false, Some(first)) => Ok(Some(first)),
        (false, None) => {
            Err(format!("the simulator ended without saying which seed failed: {}", mutation.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_how_it_is_caught() {
        let parse = |text| parse(PathBuf::new(), "x".to_owned(), text);
        let mutation = parse("# breaks\n# seeds: 7 40\n# scenario: a b\n--- a/x\n# seeds: 1 1\n").unwrap();
        assert_eq!((mutation.from, mutation.count), (7, 40));
        assert_eq!(mutation.scenarios, ["a", "b"]);
        assert_eq!(parse("diff --git").unwrap().count, 300);
        assert!(parse("# seeds: 7\n").is_err());
    }
}
