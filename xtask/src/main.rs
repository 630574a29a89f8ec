//! The project's own tools: `cargo xtask`.
//!
//! Knows the tree, the toolchain and the scripts; of the product it knows only checksums (to forge labels) and how an
//! initiator speaks (for the storm). It must not be needed to build or run the product.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tools start processes and read files"
)]

mod fuzz;
mod label;
mod licences;
mod mutate;
mod shell;
mod simulate;
mod storm;
mod test;
mod tidy;
mod volatile;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tangelo's own tools
#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
enum Task {
    /// Everything that must pass: format, lints, tests, simulation, fuzzing, licences, conformance
    Test(test::Options),
    /// Run one seed of the simulator
    Sim {
        seed: u64,
        /// Of the simulator of a pair
        #[arg(long)]
        pair: bool,
        /// Print every operation
        #[arg(long)]
        trace: bool,
    },
    /// Cut the power after every drive operation of scripted cases, and recover
    CrashMatrix {
        /// Only every so-manieth cut
        #[arg(long, default_value = "1")]
        every: u64,
        #[arg(long, default_value = "1")]
        seed: u64,
        /// Only this case
        #[arg(long)]
        case: Option<String>,
    },
    /// Run fresh seeds for a while; what fails is kept, and made smaller
    Hunt {
        #[arg(long, default_value = "10")]
        minutes: u64,
        /// The first seed; fresh if not given
        #[arg(long)]
        from: Option<u64>,
        /// In the simulator of a pair
        #[arg(long)]
        pair: bool,
    },
    /// Aborts, resets and dropped sessions at random, over real TCP against a real daemon; connections that are killed;
    /// a thousand LUNs
    Storm(storm::Options),
    /// Check the style that no lint knows
    Tidy,
    /// Check the licences of everything that is built in
    Licences,
    /// Look for inputs that a parser or a state machine cannot bear
    Fuzz(fuzz::Options),
    /// Break the code on purpose, and demand that the simulator notices
    Mutate {
        /// Only patches with one of these in their name
        names: Vec<String>,
    },
    /// For conformance/: tools that scripts cannot be
    #[command(subcommand)]
    Helper(Helper),
}

#[derive(Subcommand)]
enum Helper {
    /// Give the labels of a drive another version, with a good checksum
    LabelVersion { drive: PathBuf, version: u16 },
    /// Show the files of a directory as drives whose power can be cut; ends when they are unmounted
    VolatileDrives {
        backing: PathBuf,
        mountpoint: PathBuf,
        /// What is lost at a power cut follows from it
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn simulator(pair: bool) -> simulate::Simulator {
    if pair { simulate::Simulator::Pair } else { simulate::Simulator::Array }
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Test(options) => test::run(&options),
        Task::Sim { seed, pair, trace } => simulate::one(simulator(pair), seed, trace),
        Task::CrashMatrix { every, seed, case } => {
            simulate::crash_matrix(shell::Profile::Release, every, seed, case.as_deref())
        }
        Task::Hunt { minutes, from, pair } => simulate::hunt(simulator(pair), minutes, from),
        Task::Storm(options) => storm::run(&options),
        Task::Tidy => tidy::run(),
        Task::Licences => licences::check_all(),
        Task::Fuzz(options) => fuzz::fuzz(&options),
        Task::Mutate { names } => mutate::run_all(&names),
        Task::Helper(Helper::LabelVersion { drive, version }) => label::set_version(&drive, version),
        Task::Helper(Helper::VolatileDrives { backing, mountpoint, seed }) => {
            volatile::serve(&backing, &mountpoint, seed)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
