//! What can go wrong when a pair is set up: the thing, the cause, and what to do.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use register::KeyError;
use thiserror::Error;

use crate::ports::PortsError;
use crate::token::TokenError;

/// A file of a later program, which this one must not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadOnly {
    pub path: PathBuf,
    pub version: u64,
    pub known: u32,
}

/// Why a step of setting up a pair was not done. Where nothing else is said, nothing was changed.
#[derive(Debug, Error)]
pub enum SetupError {
    #[error("{path}: {error}{}", advice(.error))]
    File { path: PathBuf, error: io::Error },
    #[error("{path}: everybody on this machine may read or change it, but it holds keys: `chmod 600` it")]
    OpenToAll { path: PathBuf },
    #[error("{path} cannot be used: {why}; restore it from a backup of this head's state directory")]
    Damaged { path: PathBuf, why: String },
    #[error(
        "{} has version {}, this program knows {}; update Tangelo on this server",
        .0.path.display(), .0.version, .0.known
    )]
    Later(ReadOnly),
    #[error(
        "this server is part of no pair: {path} is not there; `tangelo pair create` or `tangelo pair join` makes it"
    )]
    NoPair { path: PathBuf },
    #[error("{0}")]
    Ports(#[from] PortsError),
    #[error("{0}")]
    Token(#[from] TokenError),
    #[error("{0}")]
    Keys(#[from] KeyError),
    #[error("this server cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
}

impl SetupError {
    pub(crate) fn damaged(path: &Path, why: impl ToString) -> SetupError {
        SetupError::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root",
        io::ErrorKind::StorageFull => "; make room there",
        _ => "",
    }
}
