//! An iSCSI client for measuring and checking: loads a logical unit, or compares it with a file.
//!
//! One blocking socket, driven by the sans-IO initiator of crate `iscsi`. Of the server it knows only the wire, so it
//! serves any target alike. It must not share code with the target's side beyond the layouts.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a client is at the edge to the world"
)]

mod compare;
mod load;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An iSCSI client for measuring and checking
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    unit: session::Unit,
    #[command(subcommand)]
    work: Work,
}

#[derive(Subcommand)]
enum Work {
    /// 4 KiB at random places for some seconds; prints a line of JSON
    Load(load::Load),
    /// Read the whole logical unit and compare it with a file; what is behind the file's end must be zeros
    Compare {
        file: PathBuf,
        /// Keep what was read
        #[arg(long, value_name = "FILE")]
        copy: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.work {
        Work::Load(load) => load::run(&cli.unit, load).map(|report| println!("{report}")),
        Work::Compare { file, copy } => {
            compare::run(&cli.unit, file, copy.as_deref()).map(|bytes| println!("identical: {bytes} bytes"))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}
