//! Operations, their results, and their errors.

use std::fmt;
use std::net::SocketAddr;

use base::AlignedBuffer;
use bytes::{Bytes, BytesMut};

use crate::reservation::{Reservation, ReservationAsk};

/// Names a submitted operation until it completes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// An open drive. Valid on every shard of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DriveHandle(pub u32);

/// A listening socket of this shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListenerHandle(pub u32);

/// A connected socket of this shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionHandle(pub u32);

/// Something to be done by the environment.
#[derive(Debug)]
pub enum Operation {
    /// Opens a block device or a file for direct I/O. A writable open excludes every other process
    /// ([`IoError::Busy`] otherwise). → [`Outcome::DriveOpened`]
    DriveOpen { path: String, writable: bool },
    /// Gives up a handle; operations in flight complete first. → [`Outcome::Done`]
    DriveClose { drive: DriveHandle },
    /// Fills the whole buffer from `offset_bytes` (a multiple of 4096). A read past the end of the drive is
    /// [`IoError::Media`]. Where the drive ends inside the buffer's last 4 KiB block, the drive fills the sectors it
    /// has; the rest of that block is undefined. → [`Outcome::DriveRead`]
    DriveRead { drive: DriveHandle, offset_bytes: u64, buffer: AlignedBuffer },
    /// Writes the pieces one after the other at `offset_bytes`. Every piece is 4096-aligned in memory and a
    /// multiple of 4096 long; on a drive that has ended inside a 4 KiB block, the last piece is whole 512-byte
    /// sectors. `durable`: the data has survived power loss when this completes (FUA, or as strong).
    /// → [`Outcome::Done`]
    DriveWrite { drive: DriveHandle, offset_bytes: u64, data: Vec<Bytes>, durable: bool },
    /// Makes every write that completed before this was submitted durable. → [`Outcome::Done`]
    DriveFlush { drive: DriveHandle },
    /// Tells the drive that the range's content is not needed. Reads of the range are undefined afterwards.
    /// A hint: unsupported is [`Outcome::Done`].
    DriveDiscard { drive: DriveHandle, offset_bytes: u64, length_bytes: u64 },
    /// Measures the current size of the drive. From then on the drive can be used up to this size. If the drive became
    /// smaller, access behind the new end returns [`IoError::Gone`]. → [`Outcome::DriveMeasured`]
    DriveMeasure { drive: DriveHandle },
    /// Asks about the drive's persistent reservation, or changes it. [`IoError::Unsupported`]: the drive has none.
    DriveReservation { drive: DriveHandle, ask: ReservationAsk },
    /// → [`Outcome::Listening`]
    Listen { address: SocketAddr },
    /// Listens for connections to this portal of the other head of a pair, which forwards them. Only the world of an owner can do that; any
    /// other: [`IoError::AddressNotAvailable`]. → [`Outcome::Listening`]
    ListenForwarded { address: SocketAddr },
    /// Stops listening; a pending accept fails with [`IoError::Closed`]. → [`Outcome::Done`]
    CloseListener { listener: ListenerHandle },
    /// → [`Outcome::Accepted`]
    Accept { listener: ListenerHandle },
    /// → [`Outcome::Connected`]
    Connect { address: SocketAddr },
    /// Appends at least one byte to the buffer's spare capacity, which must not be empty; no byte means that
    /// the peer has finished sending. One receive at a time. → [`Outcome::Received`]
    Receive { connection: ConnectionHandle, buffer: BytesMut },
    /// Sends all of it, in order; one send at a time. → [`Outcome::Done`]
    Send { connection: ConnectionHandle, data: Vec<Bytes> },
    /// Shuts the connection down both ways; what is in flight fails with [`IoError::Closed`], and the handle
    /// ends. → [`Outcome::Done`]
    CloseConnection { connection: ConnectionHandle },
}

/// How an operation ended.
#[derive(Debug)]
pub enum Outcome {
    Done,
    Failed(IoError),
    DriveOpened(DriveHandle, DriveInfo),
    /// The buffer comes back in either case; its content counts only where there is no error.
    DriveRead(AlignedBuffer, Result<(), IoError>),
    /// As [`DriveInfo::end_bytes`].
    DriveMeasured(u64),
    DriveReservation(Reservation),
    /// With the address bound, for port 0.
    Listening(ListenerHandle, SocketAddr),
    Accepted {
        connection: ConnectionHandle,
        peer: SocketAddr,
        local: SocketAddr,
    },
    Connected {
        connection: ConnectionHandle,
        local: SocketAddr,
    },
    Received(BytesMut, Result<(), IoError>),
}

/// The end of an operation.
#[derive(Debug)]
pub struct Completion {
    pub token: Token,
    pub outcome: Outcome,
}

/// What a drive is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveKind {
    File,
    BlockDevice,
    Simulated,
}

/// What is known of a drive when it is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveInfo {
    pub path: String,
    pub kind: DriveKind,
    /// Usable size, rounded down to whole 4 KiB.
    pub size_bytes: u64,
    /// Where its last whole sector ends: a multiple of 512, less than 4 KiB behind `size_bytes`.
    pub end_bytes: u64,
    /// Whether completed writes that were not `durable` need a flush to survive power loss.
    pub volatile_cache: bool,
    /// Model and serial number where the system knows them, else empty.
    pub model: String,
    pub serial: String,
    /// The bay: the name that the enclosure or the PCI slot gives; empty if unknown.
    pub bay: String,
    pub identity: DriveIdentity,
}

/// The identity of the device or file, independent of the path by which it was opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DriveIdentity {
    /// The number of a block device (`st_rdev`).
    Device(u64),
    /// A file: of its file system, and in it (`st_dev`, `st_ino`).
    File { file_system: u64, inode: u64 },
}

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum IoError {
    /// No such file or device.
    NotFound,
    PermissionDenied,
    /// Held by another process, or mounted.
    Busy,
    /// Not a file or block device, or too small for one 4 KiB block.
    NotADrive,
    /// The file system below a file drive, or the storage below a thin device, is full.
    NoSpace,
    /// The drive could not read or write this place.
    Media,
    /// The drive is not there any more.
    Gone,
    ReadOnly,
    /// Another host has reserved the drive.
    Reserved,
    /// The drive does not know what it is asked for.
    Unsupported,
    /// The connection was closed, by us or by the peer.
    Closed,
    Refused,
    AddressInUse,
    AddressNotAvailable,
    TimedOut,
    TooMany,
    /// Anything else, as errno.
    Other(i32),
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            IoError::NotFound => "not found",
            IoError::PermissionDenied => "permission denied",
            IoError::Busy => "in use by another process or mounted",
            IoError::NotADrive => "neither a file nor a block device of at least 4 KiB",
            IoError::NoSpace => "the file system or thin device below is full",
            IoError::Media => "media error",
            IoError::Gone => "the drive is gone",
            IoError::ReadOnly => "read-only",
            IoError::Reserved => "reserved by another host",
            IoError::Unsupported => "not supported by the drive",
            IoError::Closed => "closed",
            IoError::Refused => "connection refused",
            IoError::AddressInUse => "address already in use",
            IoError::AddressNotAvailable => "address not available on this machine",
            IoError::TimedOut => "timed out",
            IoError::TooMany => "too many open files or connections",
            IoError::Other(errno) => return write!(f, "system error {errno}"),
        };
        f.write_str(text)
    }
}

impl std::error::Error for IoError {}
