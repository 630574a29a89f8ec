//! The results of starting or continuing a command.

use block::{BlockRequest, Payload};
use bytes::Bytes;
use reservation::{AccessState, ReservationRequest};
use wire::scsi::provisioning::UnmapRange;
use wire::scsi::{Sense, SenseFormat, Status};

use crate::commands::copy::{self, CopyStretch, Naa};
use crate::commands::{lba_status, or_write, write_same};
use crate::fault::Denial;

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: Status,
    /// Sense data as it goes on the wire, in the format the initiator chose (D_SENSE); with CHECK CONDITION only.
    pub sense: Option<Bytes>,
    /// Data for the initiator, in order, already cut to the CDB's allocation or transfer length.
    pub data_in: Payload,
    /// The number of bytes of data-out that the CDB asks for, independent of the delivered bytes. The transport's residual is
    /// the difference from its expected length (RFC 7143 §11.4.5.1). If the CDB was refused before this number was
    /// known, it is the number of delivered bytes.
    pub data_out_bytes: usize,
}

impl Response {
    pub(crate) fn good(data_out_bytes: usize) -> Response {
        Response { status: Status::Good, sense: None, data_in: Payload::new(), data_out_bytes }
    }

    pub(crate) fn with_data(data_in: Payload) -> Response {
        Response { status: Status::Good, sense: None, data_in, data_out_bytes: 0 }
    }

    pub(crate) fn denied(denial: Denial, format: SenseFormat, data_out_bytes: usize) -> Response {
        match denial {
            Denial::Fault(fault) => Response::check(fault.sense(), format, data_out_bytes),
            Denial::Conflict => Response {
                status: Status::ReservationConflict,
                sense: None,
                data_in: Payload::new(),
                data_out_bytes,
            },
        }
    }

    pub(crate) fn check(sense: Sense, format: SenseFormat, data_out_bytes: usize) -> Response {
        let sense = Some(sense.emit(format));
        Response { status: Status::CheckCondition, sense, data_in: Payload::new(), data_out_bytes }
    }

    /// Bytes of data-in.
    pub fn data_in_bytes(&self) -> usize {
        self.data_in.len()
    }
}

/// What has to happen next.
#[derive(Debug)]
pub enum Step {
    /// The command has ended.
    Done(Response),
    /// Have the reservations' owner carry it out, then call [`crate::LogicalUnit::finish_reserve`].
    Reserve(ReservationRequest, Continuation),
    /// Have the access states' owner give these port groups these states, then call the same.
    SetAccess(Vec<(u16, AccessState)>, Continuation),
    /// Execute the request, then call [`crate::LogicalUnit::finish`] with its result.
    Block(BlockRequest, Continuation),
    /// The same, on the logical unit of this NAA designator: a copy's source or destination.
    BlockOf(Box<Naa>, BlockRequest, Continuation),
    /// Copy by reference where that is possible, then call [`crate::LogicalUnit::finish_stretch`] with what is left.
    Copy(CopyStretch, Continuation),
}

/// It is handed on by every layer, with every command.
const _: () = assert!(size_of::<Step>() <= 128);

/// Where a command stands while its block request is executed.
#[derive(Debug)]
pub struct Continuation {
    /// As in [`Response`].
    pub(crate) data_out_bytes: usize,
    pub(crate) pending: Pending,
}

/// What to do with the block request's result. What is large is boxed: reads and writes move it along.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Its data goes to the initiator; so many bytes.
    Read { bytes: usize },
    /// Nothing more: an error is about reading or about writing.
    Last { writing: bool },
    /// A copy's next piece.
    Copy(Box<copy::Job>),
    /// An ORWRITE's next piece.
    OrWrite(Box<or_write::Job>),
    /// The answer of the reservations' or access states' owner.
    Reserve,
    /// Only whether the target can be reached counts.
    Ready,
    /// Compare the data with this.
    Verify(Box<Expected>),
    /// Read this many blocks back and compare them.
    ReadBack { lba: u64, blocks: u32, expected: Box<Expected> },
    /// Unmap the rest, last range first.
    Unmap { rest: Vec<UnmapRange> },
    /// Write the pattern over the rest.
    WriteSame(Box<write_same::Rest>),
    /// Ask about the rest.
    LbaStatus(Box<lba_status::Rest>),
}

/// What verified data must be.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Readable, whatever it is.
    Anything,
    /// This.
    Data(Payload),
    /// This block, again and again.
    Repeated(Bytes),
}
