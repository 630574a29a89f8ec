//! The one program: `tangelo serve` runs the array, every other command asks it.
#![allow(clippy::disallowed_methods, reason = "the program's edge to the world: files, threads, clocks")]

mod cli;
mod client;
mod generate;

mod serve;
mod show;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (mut out, mut errors) = (io::stdout().lock(), io::stderr());
    let result = match &cli.command {
        Command::Serve(serve) => return serve::run(serve),
        Command::Completions { shell } => generate::completions(*shell, &mut out).map(|()| 0),
        Command::Man { directory } => generate::man_pages(directory).map(|()| 0),
        _ => client::run(&cli, &mut out, &mut errors),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // Whoever read our output has had enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
