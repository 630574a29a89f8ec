//! A target without storage: it discards writes and returns zeros. For measuring the front end alone.

use bytes::Bytes;

use crate::payload::Payload;
use crate::request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};

static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// `bytes` of zeros, sharing one piece of memory.
pub(crate) fn zeros(mut bytes: usize) -> Payload {
    let mut pieces = Payload::new();
    while bytes > 0 {
        let take = bytes.min(ZEROS.len());
        pieces.push(Bytes::from_static(&ZEROS[..take]));
        bytes -= take;
    }
    pieces
}

/// The first byte that is not zero.
fn first_nonzero(data: &Payload) -> Option<usize> {
    let mut offset = 0;
    for piece in data.pieces() {
        if let Some(at) = piece.iter().position(|&byte| byte != 0) {
            return Some(offset + at);
        }
        offset += piece.len();
    }
    None
}

/// Discards what is written.
#[derive(Clone, Debug)]
pub struct Null {
    geometry: Geometry,
}

impl Null {
    pub fn new(geometry: Geometry) -> Null {
        Null { geometry }
    }

    /// Carries out a request at once.
    pub fn answer(&self, request: &BlockRequest) -> BlockResult {
        self.geometry.assert_valid(request);
        Ok(match request {
            BlockRequest::Read { blocks, .. } => {
                BlockOutput::Data(zeros(*blocks as usize * self.geometry.block_bytes as usize))
            }
            BlockRequest::CompareAndWrite { expected, .. } => match first_nonzero(expected) {
                Some(offset) => return Err(BlockError::Miscompare { offset_bytes: offset as u32 }),
                None => BlockOutput::None,
            },
            BlockRequest::MapStatus { blocks, .. } => {
                BlockOutput::MapStatus { mapped: !self.geometry.thin, blocks: *blocks }
            }
            BlockRequest::Write { .. }
            | BlockRequest::WriteZeroes { .. }
            | BlockRequest::Unmap { .. }
            | BlockRequest::Flush => BlockOutput::None,
        })
    }
}

impl BlockTarget for Null {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        self.answer(&request)
    }
}

#[cfg(test)]
mod tests {
    use base::Lba;

    use super::*;

    #[test]
    fn reads_are_zeros_and_compares_are_with_zeros() {
        let null = Null::new(Geometry { block_bytes: 512, blocks: 8192, thin: true, write_back: false });
        let Ok(BlockOutput::Data(pieces)) = null.answer(&BlockRequest::Read { lba: Lba(0), blocks: 8192 })
        else {
            panic!("reads give data")
        };
        assert_eq!(pieces.len(), 4 << 20);
        assert!(pieces.pieces().iter().all(|piece| piece.iter().all(|&byte| byte == 0)));
        let compare = |expected: Vec<u8>| BlockRequest::CompareAndWrite {
            lba: Lba(1),
            data: vec![1; expected.len()].into(),
            expected: Box::new(expected.into()),
            durable: false,
        };
        assert!(null.answer(&compare(vec![0; 512])).is_ok());
        let mut other = vec![0; 1024];
        other[700] = 1;
        assert_eq!(null.answer(&compare(other)).unwrap_err(), BlockError::Miscompare { offset_bytes: 700 });
    }

    #[test]
    #[should_panic(expected = "reaches outside")]
    fn what_the_edge_should_have_refused_is_a_bug() {
        let null = Null::new(Geometry { block_bytes: 512, blocks: 8, thin: false, write_back: false });
        let _ = null.answer(&BlockRequest::Read { lba: Lba(8), blocks: 1 });
    }
}
