//! What starting or continuing a command gives.

use block::BlockRequest;
use bytes::Bytes;
use wire::scsi::Status;

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: Status,
    /// Sense data as it goes on the wire, in the format the initiator chose (D_SENSE); with CHECK CONDITION only.
    pub sense: Option<Bytes>,
    /// Data for the initiator, in order, already cut to the CDB's allocation or transfer length.
    pub data_in: Vec<Bytes>,
    /// How many bytes of data-out the CDB called for, whatever was delivered: the transport's residual is
    /// this against what it expected (RFC 7143 §11.4.5.1).
    pub data_out_bytes: usize,
}

/// What has to happen next.
#[derive(Debug)]
pub enum Step {
    /// The command has ended.
    Done(Response),
    /// Execute the request, then call [`crate::LogicalUnit::finish`] with its result.
    Block(BlockRequest, Continuation),
}

/// Where a command stands while its block request is executed.
#[derive(Debug)]
pub struct Continuation {}
