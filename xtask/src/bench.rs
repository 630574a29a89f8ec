//! 4 KiB random reads and writes through iSCSI, beside tgt, with the same client: `bench/run` does the work.

use clap::Args;

use crate::shell::{self, Result, cargo, program, run};

#[derive(Args)]
pub struct Options {
    /// Measured seconds of each run
    #[arg(long, default_value = "3")]
    seconds: u64,
    /// Runs of each kind; the median counts
    #[arg(long, default_value = "3")]
    rounds: u64,
}

pub fn run_bench(options: &Options) -> Result {
    run(cargo().args(["build", "--quiet", "--release", "-p", "tangelo", "-p", "bench"]))?;
    let report = shell::target().join("bench.json");
    let mut script = program("bench/run");
    script.env("SECONDS_EACH", options.seconds.to_string()).env("ROUNDS", options.rounds.to_string());
    run(script.arg(&report))?;
    println!("all figures: {}", report.display());
    Ok(())
}
