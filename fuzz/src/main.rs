//! Runs fuzz targets without a fuzzer: one input again, or for some seconds mutations of the corpus.
//!
//! Mutations are blind. The fuzzer that is led by coverage is `fuzz/libfuzzer`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a tool reads files and a clock")]

mod mutate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use fuzz::{TARGETS, Target};

/// Runs fuzz targets without a fuzzer
#[derive(Parser)]
enum Work {
    /// Name the targets
    List,
    /// Run one input
    Replay { target: String, input: PathBuf },
    /// Mutate the corpora for some seconds in all
    Smoke {
        #[arg(long, default_value = "10")]
        seconds: u64,
        #[arg(long)]
        seed: u64,
        #[command(subcommand)]
        only: Option<Only>,
    },
}

#[derive(Subcommand)]
enum Only {
    /// One target alone
    Target { name: String },
}

fn main() -> ExitCode {
    let result = match Work::parse() {
        Work::List => {
            TARGETS.iter().for_each(|target| println!("{:<20} {}", target.name, target.what));
            Ok(())
        }
        Work::Replay { target, input } => replay(&target, &input),
        Work::Smoke { seconds, seed, only } => smoke(seconds, seed, only),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fuzz: {why}");
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Result<&'static Target, String> {
    fuzz::find(name).ok_or_else(|| format!("no target {name}; `fuzz list` names them"))
}

fn replay(name: &str, input: &Path) -> Result<(), String> {
    let target = find(name)?;
    let bytes = std::fs::read(input).map_err(|error| format!("{}: {error}", input.display()))?;
    (target.run)(&bytes);
    println!("{name} bears {} bytes", bytes.len());
    Ok(())
}

fn smoke(seconds: u64, seed: u64, only: Option<Only>) -> Result<(), String> {
    let targets: Vec<&Target> = match only {
        Some(Only::Target { name }) => vec![find(&name)?],
        None => TARGETS.iter().collect(),
    };
    let each = Duration::from_secs(seconds) / targets.len() as u32;
    // What breaks a target ends this process: its input is where it can be found.
    install_hook(&std::env::temp_dir().join(format!("fuzz-{}", std::process::id())));
    for target in targets {
        let corpus = corpus(target)?;
        let (began, mut runs) = (Instant::now(), 0u64);
        let mut dice = mutate::Dice::new(seed);
        let mut input = Vec::new();
        while began.elapsed() < each {
            for _ in 0..64 {
                if dice.below(8) != 0 || input.is_empty() {
                    input = corpus[dice.below(corpus.len())].clone();
                }
                let other = &corpus[dice.below(corpus.len())];
                mutate::mutate(&mut input, other, &mut dice, target.bytes_max);
                LAST.with_borrow_mut(|last| last.clone_from(&input));
                (target.run)(&input);
                runs += 1;
            }
        }
        println!("{:<20} bore {runs} inputs", target.name);
    }
    Ok(())
}

thread_local! {
    static LAST: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// A panic leaves its input behind.
fn install_hook(path: &Path) {
    let (path, before) = (path.to_owned(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        let written = LAST.with_borrow(|last| std::fs::write(&path, last));
        let kept = if written.is_ok() { "its input is" } else { "its input could not be written to" };
        eprintln!("fuzz: a target broke; {kept} {}", path.display());
        before(info);
    }));
}

fn corpus(target: &Target) -> Result<Vec<Vec<u8>>, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let why = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut paths: Vec<PathBuf> =
        directory.read_dir().map_err(why)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // In order, or a seed would not be the same twice.
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<Result<_, _>>().map_err(why)?;
    if inputs.is_empty() { Err(format!("{} is empty", directory.display())) } else { Ok(inputs) }
}
