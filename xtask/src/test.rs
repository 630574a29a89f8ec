//! Everything that must pass before a change is taken, in one command. Nothing is skipped in silence: what is left out
//! by an option, or cannot be run here, is said.

use std::process::Command;
use std::time::Instant;

use clap::Args;

use crate::shell::{self, Profile, Result, cargo, program};
use crate::simulate::{self, Simulator};
use crate::{fuzz, licences, tidy};

#[derive(Args)]
pub struct Options {
    /// Without the scripts of conformance/ and the demo
    #[arg(long)]
    quick: bool,
    /// Seconds for fresh seeds of the simulator
    #[arg(long, default_value = "120")]
    sim_seconds: u64,
    /// Seconds for blind fuzzing, all targets together
    #[arg(long, default_value = "24")]
    fuzz_seconds: u64,
}

/// Seeds 1 to this, which passed when this was written.
const KNOWN_SEEDS: u64 = 400;

/// Of a pair, likewise.
const KNOWN_PAIR_SEEDS: u64 = 3000;

/// Of the crash matrix, every so-manieth cut.
const MATRIX_STEP: u64 = 10;

/// What has passed and what has not.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: Vec<String>,
}

impl Tally {
    fn step(&mut self, name: &str, work: impl FnOnce() -> Result) {
        println!("\n== {name}");
        let began = Instant::now();
        match work() {
            Ok(()) => {
                self.passed += 1;
                println!("== {name}: ok, {} s", began.elapsed().as_secs());
            }
            Err(why) => {
                println!("== {name}: FAILED: {why}");
                self.failed.push(name.to_owned());
            }
        }
    }

    /// `cargo test`: every test counts.
    fn cargo_tests(&mut self) -> Result {
        let mut command = cargo();
        command.args(["test", "--workspace", "--no-fail-fast"]);
        let (mut passed, mut failed) = (0, 0);
        let succeeded = shell::run_with_lines(&mut command, |line| {
            if !line.ends_with("... ok") && !line.trim().is_empty() {
                println!("{line}");
            }
            if let Some((ok, bad)) = parse_test_result(line) {
                (passed, failed) = (passed + ok, failed + bad);
            }
        })?;
        self.passed += passed;
        self.failed.extend((0..failed).map(|_| "a test of cargo test".to_owned()));
        match (succeeded, passed) {
            (false, _) => Err("cargo test failed".to_owned()),
            (true, 0) => Err("cargo test ran no test".to_owned()),
            (true, _) => Ok(()),
        }
    }
}

pub fn run(options: &Options) -> Result {
    let began = Instant::now();
    let mut tally = Tally::default();
    tally.step("format", || shell::run(cargo().args(["fmt", "--all", "--check"])));
    tally.step("tidy", tidy::run);
    tally.step("scripts", check_scripts);
    tally.step("licences", licences::check_all);
    tally.step("lints", || {
        let lints = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
        shell::run(cargo().args(lints))
    });
    println!("\n== tests");
    if let Err(why) = tally.cargo_tests() {
        println!("== tests: FAILED: {why}");
        tally.failed.push("tests".to_owned());
    }
    tally.step("fuzzing, blind", || fuzz::run_all_blind(options.fuzz_seconds));
    simulation(&mut tally, Simulator::Array, KNOWN_SEEDS, options.sim_seconds);
    simulation(&mut tally, Simulator::Pair, KNOWN_PAIR_SEEDS, options.sim_seconds / 5);
    let matrix_seed = simulate::fresh_seed() / 1_000_000;
    tally.step(
        &format!(
            "crash matrix, every {MATRIX_STEP}th cut, seed {matrix_seed}; all: cargo xtask crash-matrix"
        ),
        || simulate::crash_matrix(Profile::Development, MATRIX_STEP, matrix_seed, None),
    );
    if options.quick {
        println!("\n== conformance and demo: left out, as --quick says");
    } else {
        conformance(&mut tally);
    }
    println!("\n{} minutes", began.elapsed().as_secs().div_ceil(60));
    tally.failed.iter().for_each(|name| println!("FAILED: {name}"));
    println!("{} passed, {} failed", tally.passed, tally.failed.len());
    if tally.failed.is_empty() {
        Ok(())
    } else {
        Err("something failed; the lines above say what".to_owned())
    }
}

fn simulation(tally: &mut Tally, simulator: Simulator, known: u64, seconds: u64) {
    let name = simulator.package();
    tally.step(&format!("{name}, seeds that are known to pass"), || simulate::known(simulator, known));
    let first = simulate::fresh_seed();
    let replay = simulate::replay(simulator);
    tally.step(&format!("{name}, fresh seeds from {first}; one is replayed by: {replay}"), || {
        simulate::batch(simulator, Profile::Development, first, seconds)
            .map(|passed| println!("{passed} seeds passed"))
    });
}

/// The scripts, with the programs that the tests have built.
fn conformance(tally: &mut Tally) {
    let build = |package| shell::build(Profile::Development, package);
    let (tangelo, xtask) = match (build("tangelo"), build("xtask")) {
        (Ok(tangelo), Ok(xtask)) => (tangelo, xtask),
        (Err(why), _) | (_, Err(why)) => return tally.step("programs for conformance", || Err(why)),
    };
    let script = |path: &std::path::Path| {
        let mut script = program(path);
        script.env("TANGELO", &tangelo).env("XTASK", &xtask);
        script
    };
    for name in [
        "install",
        "userspace-clients",
        "libiscsi-suite",
        "api",
        "users",
        "register",
        "pair",
        "pair-administration",
        "pair-floating",
        "bad-luck",
        "drive-life",
        "bad-night",
        "ext4-through-crashes",
        "real-drives",
    ] {
        let name = format!("conformance/{name}");
        tally.step(&name, || shell::run(&mut script(name.as_ref())));
    }
    tally.step("storm, half a minute", || {
        shell::run(script(&xtask).args(["storm", "--minutes", "0.5", "--connects", "500"]))
    });
    let demo = |directory: &std::path::Path| -> Command {
        let mut demo = script("scripts/demo".as_ref());
        demo.env("DEMO_ONCE", "1").env("DEMO_DIR", directory);
        demo
    };
    let directory = shell::target().join("conformance/demo");
    let _nothing_there = std::fs::remove_dir_all(&directory);
    tally.step("demo, first run", || expect_line(demo(&directory), "proved: "));
    tally.step("demo, second run", || expect_line(demo(&directory), "found: "));
    let _nothing_there = std::fs::remove_dir_all(&directory);
}

/// Succeeds if the program does, and says a line that begins so.
fn expect_line(mut command: Command, beginning: &str) -> Result {
    let mut said = false;
    let succeeded = shell::run_with_lines(&mut command, |line| {
        println!("{line}");
        said |= line.starts_with(beginning);
    })?;
    match (succeeded, said) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("it did not say \"{beginning}\"")),
        (false, _) => Err("it failed".to_owned()),
    }
}

/// Every script can at least be parsed.
fn check_scripts() -> Result {
    let is_script = |file: &std::path::Path| {
        let beginning = std::fs::read(shell::tree().join(file)).unwrap_or_default();
        beginning.starts_with(b"#!/usr/bin/env bash")
            || file.extension().is_some_and(|extension| extension == "sh")
    };
    let mut count = 0;
    for file in shell::files()?.iter().filter(|file| is_script(file)) {
        shell::run(program("bash").arg("-n").arg(file))?;
        count += 1;
    }
    println!("{count} scripts");
    Ok(())
}

/// `test result: ok. 12 passed; 0 failed; ...`
fn parse_test_result(line: &str) -> Option<(u64, u64)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let mut counts = counts.split("; ").filter_map(|count| count.split_once(' '));
    let (passed, failed) = (counts.next()?, counts.next()?);
    ((passed.1, failed.1) == ("passed", "failed")).then_some((passed.0.parse().ok()?, failed.0.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_test_are_counted() {
        let line =
            "test result: ok. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(parse_test_result(line), Some((12, 1)));
        let line = "test result: FAILED. 0 passed; 3 failed; 0 ignored";
        assert_eq!(parse_test_result(line), Some((0, 3)));
        assert_eq!(parse_test_result("test a ... ok"), None);
    }
}
