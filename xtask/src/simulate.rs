//! Seeds of the simulator: one by hand, many in a hunt, a batch of fresh ones in the test command.
//!
//! A seed is the same world under every profile of the build.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::shell::{self, Profile, Result, program, run};

/// A simulator: a package and its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Simulator {
    /// Pools and arrays, with all that is stored.
    Array,
    /// The ownership of a pair.
    Pair,
}

impl Simulator {
    pub fn package(self) -> &'static str {
        match self {
            Simulator::Array => "sim",
            Simulator::Pair => "pairsim",
        }
    }

    /// Builds the simulator and gives its program.
    fn build(self, profile: Profile) -> Result<PathBuf> {
        shell::build(profile, self.package())
    }
}

pub fn one(simulator: Simulator, seed: u64, trace: bool) -> Result {
    let mut sim = program(simulator.build(Profile::Release)?);
    sim.arg(seed.to_string());
    if trace {
        sim.arg("--trace");
    }
    run(&mut sim)
}

/// The command that runs a seed again.
pub fn replay(simulator: Simulator) -> &'static str {
    match simulator {
        Simulator::Array => "cargo xtask sim SEED --trace",
        Simulator::Pair => "cargo xtask sim --pair SEED --trace",
    }
}

/// A seed that nobody has run before, short enough to be typed.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Seconds in front, so that batches of two runs do not overlap.
    now.as_secs() * 1_000_000
}

pub fn hunt(simulator: Simulator, minutes: u64, from: Option<u64>) -> Result {
    let from = from.unwrap_or_else(fresh_seed);
    println!("seeds from {from}; one is replayed by: {}", replay(simulator));
    let passed = batch(simulator, Profile::Release, from, minutes * 60)?;
    println!("no seed of {passed} failed");
    Ok(())
}

/// Runs every scenario, and seeds from `from` on for some seconds; how many passed, or what failed. What was never
/// exercised has failed, too.
pub fn batch(simulator: Simulator, profile: Profile, from: u64, seconds: u64) -> Result<u64> {
    let path = simulator.build(profile)?;
    let mut sim = program(&path);
    sim.args(["--from", &from.to_string(), "--count", "1000000", "--seconds", &seconds.to_string()]);
    let (mut result, mut failing, mut never) = (None, Vec::new(), Vec::new());
    let succeeded = shell::run_with_lines(sim.arg("--coverage"), |line| {
        println!("{line}");
        result = parse_result(line).or(result);
        failing.extend(parse_failing(line));
        never.extend(line.strip_prefix("NEVER exercised: ").map(str::to_owned));
    })?;
    keep(simulator, &path, &failing)?;
    match result {
        Some((passed, 0)) if succeeded && passed > 0 => Ok(passed),
        Some((_, 0)) if !never.is_empty() => Err(format!("never exercised: {}", never.join("; "))),
        Some((passed, failed)) => Err(format!("{failed} seeds failed, {passed} passed, from seed {from}")),
        None => Err(format!("the simulator did not end as it should, from seed {from}")),
    }
}

/// Seeds of one batch that are made smaller; the others are as good as these.
const SHRUNK: usize = 3;

/// Writes down seeds that failed, the first of them made as small as they get.
fn keep(simulator: Simulator, sim: &Path, failing: &[u64]) -> Result {
    if failing.is_empty() {
        return Ok(());
    }
    let kept = shell::target().join("failing-seeds");
    let commit = shell::output_of(shell::program("git").args(["rev-parse", "--short", "HEAD"]))?;
    let mut text = std::fs::read_to_string(&kept).unwrap_or_default();
    for (index, seed) in failing.iter().enumerate() {
        text += &format!("{} {seed} at {}\n", simulator.package(), commit.trim());
        if index < SHRUNK && simulator == Simulator::Array {
            shell::run_with_lines(program(sim).args(["--shrink", &seed.to_string()]), |line| {
                println!("{line}");
                text += &format!("    {line}\n");
            })?;
        }
    }
    std::fs::write(&kept, text).map_err(|error| format!("{}: {error}", kept.display()))?;
    println!("failing seeds are kept in {}", kept.display());
    Ok(())
}

/// Cuts the power after every `every`-th drive operation of scripted cases.
pub fn crash_matrix(profile: Profile, every: u64, seed: u64, case: Option<&str>) -> Result {
    let mut sim = program(Simulator::Array.build(profile)?);
    sim.args(["--matrix", "--every", &every.to_string(), "--seed", &seed.to_string()]);
    if let Some(case) = case {
        sim.args(["--case", case]);
    }
    run(&mut sim)
}

/// Runs seeds 1 to `count`, all of which must pass.
pub fn known(simulator: Simulator, count: u64) -> Result {
    let mut sim = program(simulator.build(Profile::Development)?);
    sim.args(["--from", "1", "--count", &count.to_string()]);
    run(&mut sim)
}

/// `seed 12 FAILED: why`
fn parse_failing(line: &str) -> Option<u64> {
    line.strip_prefix("seed ")?.split_once(" FAILED: ")?.0.parse().ok()
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
        assert_eq!(parse_failing("seed 12 FAILED: volume 3"), Some(12));
        assert_eq!(parse_failing("scenario x FAILED with seed 12: y"), None);
    }
}
