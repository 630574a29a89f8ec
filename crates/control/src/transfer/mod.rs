//! The content of whole volumes on its way through the control plane. The design is in `docs/design/0015-bulk-channel.md`.
//!
//! | file | what is in it |
//! |---|---|
//! | `records` | a volume without its holes, as bytes |
//! | `export` | from the array into a stream of bytes |
//! | `import` | from a stream of bytes into the array |

pub(crate) mod export;
pub(crate) mod import;
pub mod records;

use std::time::Duration;

use api::{
    Bulk, BulkError, BulkRequest, BulkResult, CommandError, CommandErrorKind, LeaseHolder, TransferGrant,
};

use crate::array::{Array, BulkAnswer};

/// A volume without its holes; see [`records`].
pub const EXTENTS_TYPE: &str = "application/vnd.tangelo.extents";
/// The raw image.
pub const IMAGE_TYPE: &str = "application/octet-stream";
/// The size of the volume or snapshot, in bytes: also where the length of the answer is not known.
pub const SIZE_HEADER: &str = "tangelo-size-bytes";

/// How long a client may take for the next piece.
pub(crate) const STALL_TIME_MAX: Duration = Duration::from_secs(300);
/// Requests of one transfer under way. Its client holds as much again.
const WINDOW: usize = 2;

/// A transfer that goes on as long as this is there.
pub(crate) struct RunningTransfer {
    pub(crate) grant: TransferGrant,
    pub(crate) holder: LeaseHolder,
}

impl RunningTransfer {
    /// Sends at once.
    fn send(&self, array: &dyn Array, request: BulkRequest) -> BulkAnswer {
        let bulk = Bulk { transfer: self.grant.transfer, request, caller: self.holder.lease() };
        array.bulk(self.grant.shard, bulk)
    }

    async fn ask(&self, array: &dyn Array, request: BulkRequest) -> BulkResult {
        self.send(array, request).await
    }
}

/// What a client is told of a request that was not carried out.
pub(crate) fn command_error(error: BulkError) -> CommandError {
    let (kind, hint) = match error {
        BulkError::OutOfSpace => {
            (CommandErrorKind::Full, "`tangelo status` shows the pools; free space and import again")
        }
        BulkError::OutOfRange | BulkError::WrongDirection => (CommandErrorKind::Invalid, ""),
        BulkError::Medium { .. } => (CommandErrorKind::Io, "`tangelo status` says what is lost"),
        BulkError::Ended | BulkError::Unavailable | BulkError::NoCredit | BulkError::NotReady => {
            (CommandErrorKind::Unavailable, "`tangelo status` says what is wrong")
        }
    };
    CommandError::new(kind, error.to_string(), hint)
}
