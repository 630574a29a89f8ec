//! What the owner's side wants done, and the values in it.

use env::IoError;
use pair::StoreEvent;

use crate::geometry::Geometry;
use crate::record::{Record, Synchrony, TwinId};

/// A write or flush, as the caller names it. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RequestId(pub u64);

/// A piece on its way to the partner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CopyId(pub u64);

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Begin this request on the own drive, and send it to the partner if `far`. Answered by [`Mirror::on_own`] and
    /// [`Mirror::on_far`].
    Begin { request: RequestId, far: bool },
    /// The request has ended.
    Done { request: RequestId, result: Result<(), IoError> },
    /// Write this record to the own drive, durably. Answered by [`Mirror::on_recorded`].
    Record { drive: usize, record: Record },
    /// Read this from the own drive and, if [`Mirror::wants`] still says so when it was read, have it written durably to the partner's.
    /// Answered by [`Mirror::on_copied`].
    Copy { copy: CopyId, drive: usize, offset_bytes: u64, length_bytes: u64 },
    /// Send this request to the partner again: the connection is a new one.
    SendAgain { request: RequestId },
    /// End the connection and make a new one: what is on its way over the old one does not count any more. The partner waits until all of
    /// it has ended.
    Reconnect,
    /// The partner is to record on these drives that both are in sync by this name, and nothing is marked. Not on drives that are being
    /// filled: what these lack has no marks.
    TellSynchrony { synchrony: Synchrony, drives: Vec<usize> },
    /// The head is to be told.
    Tell(StoreEvent),
    /// More of the partner's drives have failed than its copy survives, or it has started anew and may have lost what its drives had
    /// not flushed. It must leave.
    PartnerIsUnfit,
}

/// A drive of a head that has become the owner.
#[derive(Clone, Debug)]
pub struct OwnDrive {
    /// As its pool calls it.
    pub id: TwinId,
    pub geometry: Geometry,
    /// What the drive holds. Without one, the partner may lack everything.
    pub record: Option<Record>,
}

/// Why a piece was not copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyError {
    /// The own drive could not be read; the pool has the same error when it reads there.
    Own,
    /// The partner's drive could not be written.
    Far,
}
