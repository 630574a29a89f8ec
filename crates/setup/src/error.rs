//! What can go wrong when a pair is set up: the thing, the cause, and what to do.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::HeadId;
use register::{ClientError, KeyError};
use thiserror::Error;

use crate::ports::PortsError;
use crate::refusal::Refusal;
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
    #[error("this server cannot listen on {address}: {error}{}", listen_advice(.error))]
    Listen { address: SocketAddr, error: io::Error },
    #[error("{program} is not installed; install Debian's package {package}")]
    NotInstalled { program: &'static str, package: &'static str },
    #[error(
        "this server is part of a pair already: {path} is there; to begin anew, move the state directory away"
    )]
    Paired { path: PathBuf },
    #[error(
        "{path} has {what}, and a server that joins gives up what it has; delete that first, or, if it is not needed, move {path} away"
    )]
    HasArray { path: PathBuf, what: String },
    #[error(
        "{path} is not there; `tangelo pair create`, `tangelo pair join` or `tangelo witness join` makes it"
    )]
    NoMember { path: PathBuf },
    #[error("{path}: etcd runs there already, supervised by another process; stop that one first")]
    MemberRuns { path: PathBuf },
    /// A change may have been carried out.
    #[error("etcd does not do it: {why}")]
    Etcd { why: String },
    #[error("this head does not own the array; give the command on the head that does")]
    NotTheOwner,
    #[error("the other head is there, and in sync; it cannot be replaced. Stop it first if it is to go")]
    PartnerInSync,
    #[error(
        "the other head is in sync: without it, the array is not served if this head is lost; if that is meant, add --force"
    )]
    ForgetsInSync,
    #[error(
        "this head is not of the pair any more: the register names two others; give the command on one of those"
    )]
    NotOfThePair,
    #[error("the register: {0}")]
    Register(ClientError),
    #[error(
        "etcd has the register of another pair of heads: {owner} and {partner}; look whose etcd it is before anything else"
    )]
    OtherRegister { owner: HeadId, partner: HeadId },
    /// Before the join was complete: the token may be used up.
    #[error(
        "{door}: {why}; see that the head runs and that this server reaches it, and make another token if this one is refused"
    )]
    Door { door: SocketAddr, why: String },
    #[error(
        "the server at {door} is not the head that has made this token; see that the address is that head's"
    )]
    WrongAuthority { door: SocketAddr },
    #[error("{0}")]
    Refused(Refusal),
}

impl SetupError {
    pub(crate) fn damaged(path: &Path, why: impl ToString) -> SetupError {
        SetupError::Damaged { path: path.to_owned(), why: why.to_string() }
    }

    /// What the door has sent is no answer.
    pub(crate) fn not_understood(door: SocketAddr) -> SetupError {
        SetupError::Door { door, why: "an answer of another version of Tangelo".to_owned() }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root",
        io::ErrorKind::StorageFull => "; make room there",
        _ => "",
    }
}

fn listen_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop what listens there, or give another port",
        io::ErrorKind::AddrNotAvailable => "; give an address of this server",
        _ => advice(error),
    }
}
