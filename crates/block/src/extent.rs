//! The byte range of a request, for targets and filters.

use base::Lba;

use crate::payload::Payload;
use crate::request::{BlockRequest, Geometry};

/// What kind of work a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    Read,
    /// Write, WriteZeroes, CompareAndWrite.
    Write,
    Unmap,
    Flush,
    MapStatus,
}

impl BlockRequest {
    /// What is to be written; empty where nothing is.
    pub fn into_data(self) -> Payload {
        match self {
            BlockRequest::Write { data, .. } | BlockRequest::CompareAndWrite { data, .. } => data,
            BlockRequest::Read { .. }
            | BlockRequest::WriteZeroes { .. }
            | BlockRequest::Unmap { .. }
            | BlockRequest::Flush
            | BlockRequest::MapStatus { .. } => Payload::new(),
        }
    }

    pub fn kind(&self) -> RequestKind {
        match self {
            BlockRequest::Read { .. } => RequestKind::Read,
            BlockRequest::Write { .. }
            | BlockRequest::WriteZeroes { .. }
            | BlockRequest::CompareAndWrite { .. } => RequestKind::Write,
            BlockRequest::Unmap { .. } => RequestKind::Unmap,
            BlockRequest::Flush => RequestKind::Flush,
            BlockRequest::MapStatus { .. } => RequestKind::MapStatus,
        }
    }

    /// First logical block and number of logical blocks; `None` for a flush.
    pub fn extent(&self, block_bytes: u32) -> Option<(Lba, u64)> {
        let blocks = |bytes: usize| bytes as u64 / u64::from(block_bytes);
        match self {
            BlockRequest::Read { lba, blocks } => Some((*lba, u64::from(*blocks))),
            BlockRequest::Write { lba, data, .. } | BlockRequest::CompareAndWrite { lba, data, .. } => {
                Some((*lba, blocks(data.len())))
            }
            BlockRequest::WriteZeroes { lba, blocks }
            | BlockRequest::Unmap { lba, blocks }
            | BlockRequest::MapStatus { lba, blocks } => Some((*lba, *blocks)),
            BlockRequest::Flush => None,
        }
    }
}

impl Geometry {
    /// Asserts what the edge has validated: the request lies within the volume and is whole blocks.
    pub(crate) fn assert_valid(&self, request: &BlockRequest) {
        if let BlockRequest::Write { data, .. } | BlockRequest::CompareAndWrite { data, .. } = request {
            assert!(data.len().is_multiple_of(self.block_bytes as usize), "{request:?} is not whole blocks");
        }
        if let BlockRequest::CompareAndWrite { expected, data, .. } = request {
            assert_eq!(expected.len(), data.len(), "{request:?}");
        }
        assert!(self.holds(request), "{request:?} reaches outside of {} blocks", self.blocks);
    }

    /// Whether the request's range is not empty and lies within the volume.
    pub fn holds(&self, request: &BlockRequest) -> bool {
        request
            .extent(self.block_bytes)
            .is_none_or(|(lba, blocks)| lba.0 < self.blocks && blocks > 0 && blocks <= self.blocks - lba.0)
    }
}
