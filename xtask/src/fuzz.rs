//! Fuzzing: libFuzzer, led by coverage, where a C++ compiler can build it; blind mutations of the corpora otherwise.

use std::path::PathBuf;

use clap::Args;

use crate::shell::{self, Result, cargo, output_of, program, run};
use crate::simulate::fresh_seed;

/// What stable rustc needs to be told to count edges and comparisons for libFuzzer.
const COVERAGE_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code --cfg fuzzing";

#[derive(Args)]
pub struct Options {
    /// Which one; "all" takes them in turn, "list" names them
    target: String,
    /// For each target
    #[arg(long, default_value = "60")]
    seconds: u64,
    /// Keep the corpus small: merge what was found into fuzz/corpus
    #[arg(long)]
    merge: bool,
    /// Without coverage: mutations alone, which need no C++ compiler
    #[arg(long)]
    blind: bool,
}

pub fn run_all_blind(seconds: u64) -> Result {
    let seed = fresh_seed().to_string();
    println!(
        "fuzz: blind mutations of the corpora, seed {seed}; `cargo xtask fuzz` is the one led by coverage"
    );
    let mut smoke = program(shell::build(shell::Profile::Development, "fuzz")?);
    run(smoke.args(["smoke", "--seed", &seed, "--seconds", &seconds.to_string()]))
}

pub fn fuzz(options: &Options) -> Result {
    let list = output_of(cargo().args(["run", "--quiet", "--package", "fuzz", "--", "list"]))?;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    if options.target == "list" {
        print!("{list}");
        return Ok(());
    }
    let chosen: Vec<&str> = match options.target.as_str() {
        "all" => names,
        name if names.contains(&name) => vec![name],
        name => return Err(format!("there is no target {name}; `cargo xtask fuzz list` names them")),
    };
    if options.blind {
        let seed = fresh_seed().to_string();
        for name in chosen {
            let mut smoke = cargo();
            smoke.args(["run", "--quiet", "--release", "--package", "fuzz", "--", "smoke", "--seed", &seed]);
            run(smoke.args(["--seconds", &options.seconds.to_string(), "target", name]))?;
        }
        return Ok(());
    }
    let fuzzer = build()?;
    for name in chosen {
        fuzz_one(&fuzzer, name, options)?;
    }
    Ok(())
}

fn build() -> Result<PathBuf> {
    if !shell::is_installed("c++") && !shell::is_installed("g++") && !shell::is_installed("clang++") {
        return Err(
            "libFuzzer needs a C++ compiler: install the Debian package g++, or use --blind".to_owned()
        );
    }
    let host = output_of(program("rustc").arg("-vV"))?;
    let host =
        host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc does not say its host")?;
    let target_dir = shell::target().join("fuzz");
    let mut build = cargo();
    build.args(["build", "--quiet", "--release", "--manifest-path", "fuzz/libfuzzer/Cargo.toml"]);
    // A target of its own keeps the flags away from build scripts and macros.
    build.args(["--target", host]).arg("--target-dir").arg(&target_dir);
    run(build.env("RUSTFLAGS", COVERAGE_FLAGS))?;
    Ok(target_dir.join(host).join("release/libfuzzer"))
}

fn fuzz_one(fuzzer: &PathBuf, name: &str, options: &Options) -> Result {
    let corpus = shell::tree().join("fuzz/corpus").join(name);
    let found = shell::target().join("fuzz/found").join(name);
    std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
    println!("fuzz: {name} for {} s", options.seconds);
    let mut command = program(fuzzer);
    command.env("FUZZ_TARGET", name).arg(&found).arg(&corpus);
    command.args([format!("-max_total_time={}", options.seconds), "-print_final_stats=1".to_owned()]);
    command.args(["-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"]);
    command.arg(format!("-artifact_prefix={}/broke-{name}-", shell::target().join("fuzz").display()));
    run(&mut command).map_err(|why| {
        format!(
            "{name}: {why}; replay it: cargo run -p fuzz -- replay {name} FILE, with the file named above"
        )
    })?;
    if options.merge {
        run(program(fuzzer)
            .env("FUZZ_TARGET", name)
            .args(["-merge=1", "-verbosity=0"])
            .arg(&corpus)
            .arg(&found))?;
    }
    Ok(())
}
