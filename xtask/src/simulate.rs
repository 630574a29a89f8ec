//! Seeds of the simulator: one by hand, many in a hunt, a batch of fresh ones in the test command.
//!
//! Built with assertions as in development, and optimised: a seed is the same world under every profile.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::shell::{self, Result, cargo, run};

/// Builds the simulator and gives its program.
pub fn build() -> Result<Command> {
    run(cargo().args(["build", "--quiet", "--release", "--package", "sim", "--bin", "sim"]))?;
    Ok(shell::program(shell::target().join("release/sim")))
}

pub fn one(seed: u64, trace: bool) -> Result {
    let mut sim = build()?;
    sim.arg(seed.to_string());
    if trace {
        sim.arg("--trace");
    }
    run(&mut sim)
}

/// A seed that nobody has run before, short enough to be typed.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Seconds in front, so that batches of two runs do not overlap.
    now.as_secs() * 1_000_000
}

pub fn hunt(minutes: u64, from: Option<u64>) -> Result {
    let from = from.unwrap_or_else(fresh_seed);
    println!("seeds from {from}; one is replayed by: cargo xtask sim SEED --trace");
    let passed = batch(from, minutes * 60)?;
    println!("no seed of {passed} failed");
    Ok(())
}

/// Runs seeds from `from` on for some seconds; how many passed, or what failed.
pub fn batch(from: u64, seconds: u64) -> Result<u64> {
    let mut sim = build()?;
    sim.args(["--from", &from.to_string(), "--count", "1000000", "--seconds", &seconds.to_string()]);
    let mut result = None;
    let succeeded = shell::run_with_lines(&mut sim, |line| {
        println!("{line}");
        result = parse_result(line).or(result);
    })?;
    match result {
        Some((passed, 0)) if succeeded && passed > 0 => Ok(passed),
        Some((passed, failed)) => Err(format!("{failed} seeds failed, {passed} passed, from seed {from}")),
        None => Err(format!("the simulator did not end as it should, from seed {from}")),
    }
}

/// Runs seeds 1 to `count`, all of which must pass.
pub fn known(count: u64) -> Result {
    let mut sim = build()?;
    sim.args(["--from", "1", "--count", &count.to_string()]);
    run(&mut sim)
}

/// `12 seeds passed, 0 failed`
fn parse_result(line: &str) -> Option<(u64, u64)> {
    let (passed, failed) = line.split_once(" seeds passed, ")?;
    Some((passed.parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulators_last_line_is_understood() {
        assert_eq!(parse_result("12 seeds passed, 3 failed"), Some((12, 3)));
        assert_eq!(parse_result("seed 12 FAILED: 3 seeds passed, no"), None);
    }
}
