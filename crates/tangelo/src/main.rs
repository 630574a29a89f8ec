//! The one program: `tangelo serve` runs the array, every other command asks it.
#![allow(clippy::disallowed_methods, reason = "the program's edge to the world: files, threads, clocks")]

mod cli;
mod client;
mod complete;
mod founding;
mod generate;
#[cfg(test)]
mod hints;

mod serve;
mod show;
mod usage;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::{Command, Output};

/// Requests of a pool allocate their tasks and buffers: the C library's allocator takes a seventh of such a read.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match usage::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error, std::env::args_os()),
    };
    match &cli.command {
        Command::Serve(serve) => return serve::run(serve),
        // its threads write, too, so nobody may hold the lock of the standard output
        Command::Register(register) => return founding::register(register),
        _ => {}
    }
    let (mut out, mut errors) = (io::stdout().lock(), io::stderr());
    let result = match &cli.command {
        Command::Pair(pair) if pair.is_local() => return founding::pair(pair, &mut out),
        Command::Witness(witness) => return founding::witness(witness, &mut out),
        Command::Bench(bench) => return measure(bench, cli.global.output, &mut out),
        Command::Completions { shell } => generate::completions(*shell, &mut out).map(|()| 0),
        Command::Complete { words } => out.write_all(complete::names(words).as_bytes()).map(|()| 0),
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

/// The lab knows nothing of the array's API: it measures whatever is there.
fn measure(bench: &lab::cli::Bench, output: Output, out: &mut dyn io::Write) -> ExitCode {
    let form = match output {
        Output::Table => lab::Form::Table,
        Output::Json => lab::Form::Json,
    };
    match lab::run_command(bench, form, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}
