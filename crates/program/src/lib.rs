//! Runs a program of somebody else: with a time limit, without a shell, and with bounded output.
//!
//! What always holds: the caller gets an answer within the time of its order; a program that is late, or prints without end, is killed
//! with all processes of its group; the process is waited for, and until it is really gone, `gate` is held. A process that the kernel does
//! not let go (state D) therefore costs one process and one task, and the holder of the gate starts no second one.
//!
//! It inherits no environment but PATH.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

mod run;

pub use run::run;

use std::ffi::OsStr;
use std::time::Duration;

use thiserror::Error;

/// What to run, and within which limits.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// A name that is looked for in PATH, or a path.
    pub program: &'a str,
    pub arguments: &'a [&'a OsStr],
    /// Its standard input.
    pub input: &'a [u8],
    /// Beside PATH and LC_ALL.
    pub environment: &'a [(&'a str, &'a str)],
    pub time: Duration,
    /// What is kept of its standard output; the rest is thrown away. Its errors have the same limit.
    pub output_bytes_max: u64,
}

/// How a program has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// `None`: by a signal.
    pub code: Option<i32>,
    /// The beginning of its standard output.
    pub out: Vec<u8>,
    /// The last line that it has said, on its standard error first. It is as the program wrote it, at most `output_bytes_max` long.
    pub last_words: String,
}

/// Why a program has given no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RunError {
    #[error("{program} is not installed")]
    NotInstalled { program: String },
    #[error("{program} cannot be run: {why}")]
    NotRun { program: String, why: String },
    #[error("{program} has not answered within {seconds} s")]
    TimedOut { program: String, seconds: u64 },
    #[error("{program} prints without end")]
    Endless { program: String },
}
