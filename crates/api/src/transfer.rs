//! Transfers: whole volumes that the control plane reads or writes, range by range. The design is in
//! `docs/design/0015-bulk-channel.md`.
//!
//! A command begins a transfer and says which shard to ask. Requests to that shard move the data. Each holds credit
//! from the shard's memory until its data is dropped, in whatever thread that is.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;

/// Names a transfer. Not used twice while the array runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransferId(pub u64);

/// What is to be moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferOrder {
    /// The content of a snapshot, or of a volume at this moment.
    Export { volume: String, snapshot: Option<String> },
    /// New content for a volume, which it gets as a whole by [`crate::Command::TransferComplete`]. Refused while it is
    /// mapped; and while it holds data, unless `overwrite`. `length_bytes`: how much there is to come, if that is known.
    Import { volume: String, length_bytes: Option<u64>, overwrite: bool },
}

/// A transfer that has begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferGrant {
    pub transfer: TransferId,
    /// The shard that takes its requests.
    pub shard: u16,
    /// Of the volume or snapshot, in bytes: a multiple of [`base::BLOCK_BYTES`].
    pub size_bytes: u64,
    /// Equal for equal content: the array and the layer.
    pub content: String,
    /// Whether a later transfer of the same name can have the same content.
    pub can_resume: bool,
}

/// Says whether somebody still wants something. The other half is a [`LeaseHolder`]. Commands that differ only in their
/// leases ask for the same.
#[derive(Clone)]
pub struct Lease(Weak<()>);

/// Whoever wants it; see [`Lease`].
#[derive(Debug)]
pub struct LeaseHolder(Arc<()>);

impl LeaseHolder {
    #[expect(clippy::new_without_default, reason = "each holder is another")]
    pub fn new() -> LeaseHolder {
        LeaseHolder(Arc::new(()))
    }

    pub fn lease(&self) -> Lease {
        Lease(Arc::downgrade(&self.0))
    }
}

impl Lease {
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl PartialEq for Lease {
    fn eq(&self, _: &Lease) -> bool {
        true
    }
}

impl Eq for Lease {}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_gone() { "Lease(gone)" } else { "Lease" })
    }
}

/// Part of a shard's memory. It is given back when this and all data that belongs to it has been dropped.
#[derive(Clone, Debug)]
pub struct Credit {
    _token: Arc<()>,
}

impl Credit {
    /// With what the shard knows it by.
    pub fn new() -> (Credit, Lease) {
        let token = Arc::new(());
        let lease = Lease(Arc::downgrade(&token));
        (Credit { _token: token }, lease)
    }

    /// Data that keeps this credit as long as any slice of it is there.
    pub fn with(&self, data: Bytes) -> Bytes {
        Bytes::from_owner(Lent { data, _credit: self.clone() })
    }
}

struct Lent {
    data: Bytes,
    _credit: Credit,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// A request to the shard that a [`TransferGrant`] names. Offsets and lengths are in bytes, multiples of
/// [`base::BLOCK_BYTES`]; a length is at most [`base::limits::BULK_BYTES_MAX`].
#[derive(Debug)]
pub enum BulkRequest {
    /// Which ranges from here on hold data; see [`Extents`]. → [`BulkOutput::Extents`]
    Extents { from_bytes: u64 },
    /// → [`BulkOutput::Data`]
    Read { offset_bytes: u64, length_bytes: usize },
    /// Memory for a write of this length. → [`BulkOutput::Credit`]
    Credit { length_bytes: usize },
    /// The credit is given back when it is answered. → [`BulkOutput::Written`]
    Write { offset_bytes: u64, data: Vec<Bytes>, credit: Credit },
}

/// Ranges that hold data, in order. What is between them, up to `until_bytes`, is zeros.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Extents {
    pub ranges: Vec<Range<u64>>,
    pub until_bytes: u64,
}

/// What a request gives.
#[derive(Debug)]
pub enum BulkOutput {
    Extents(Extents),
    /// The pieces of a read, in order. They hold their credit.
    Data(Vec<Bytes>),
    Credit(Credit),
    Written,
}

/// Why a request was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkError {
    /// There is no such transfer, or no more: its snapshot was deleted, or the pool was opened anew.
    Ended,
    /// The array is stopping, or its queue of messages is full.
    Unavailable,
    /// There was no memory for it in time.
    NoCredit,
    /// The range is empty, too long, not whole blocks or not inside.
    OutOfRange,
    /// This transfer reads, or this one writes.
    WrongDirection,
    /// Data at this address can neither be read nor rebuilt.
    Medium {
        offset_bytes: u64,
    },
    OutOfSpace,
    /// The pool is offline.
    NotReady,
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BulkError::Ended => f.write_str("its snapshot was deleted, or its pool was opened anew"),
            BulkError::Unavailable => f.write_str("the array is stopping, or has too much to do"),
            BulkError::NoCredit => f.write_str("the array has no memory for it"),
            BulkError::OutOfRange => f.write_str("the range is not inside the volume"),
            BulkError::WrongDirection => f.write_str("the transfer goes the other way"),
            BulkError::Medium { offset_bytes } => {
                write!(f, "the data at byte {offset_bytes} can neither be read nor rebuilt")
            }
            BulkError::OutOfSpace => f.write_str("the pool is full"),
            BulkError::NotReady => f.write_str("the pool is offline"),
        }
    }
}

pub type BulkResult = Result<BulkOutput, BulkError>;

/// A request of a transfer.
#[derive(Debug)]
pub struct Bulk {
    pub transfer: TransferId,
    pub request: BulkRequest,
    /// Whoever waits for the answer.
    pub caller: Lease,
}

/// How the answer finds its way back. Called once, on the shard's thread; must not block.
pub type BulkReply = Box<dyn FnOnce(BulkResult) + Send>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_held_by_each_slice_of_its_data() {
        let (credit, lease) = Credit::new();
        let data = credit.with(Bytes::from_static(b"abcdef"));
        drop(credit);
        let slice = data.slice(2..4);
        drop(data);
        assert!(!lease.is_gone() && &slice[..] == b"cd");
        drop(slice);
        assert!(lease.is_gone());
    }
}
