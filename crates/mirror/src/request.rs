//! A request that the owner's side has been given.

use env::IoError;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Write { offset_bytes: u64, length_bytes: u64, durable: bool },
    Flush,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub drive: usize,
    pub kind: Kind,
    /// `None` until it begins.
    pub begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub serial: u64,
    pub own: Option<Result<(), IoError>>,
    /// The partner's answer is waited for.
    pub awaits_far: bool,
}
