//! A target in memory: a sparse map of 4 KiB blocks. For tests, and for measuring without drives.
//!
//! Every request takes effect as a whole when it is executed, so that nothing overlaps. A block is immutable
//! once stored: a read shares it, a write puts another in its place.

use std::cell::RefCell;
use std::ops::Range;

use base::{BLOCK_BYTES, HashMap, Lba};
use bytes::Bytes;

use crate::null::zeros;
use crate::payload::Payload;
use crate::request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};

/// How many 4 KiB blocks one map status looks at.
const STATUS_BLOCKS_MAX: u64 = 4096;

/// Keeps what is written for as long as it lives. Holds as much memory as is mapped.
pub struct Memory {
    geometry: Geometry,
    blocks: RefCell<HashMap<u64, Bytes>>,
}

impl Memory {
    /// The size need not be whole 4 KiB blocks.
    pub fn new(geometry: Geometry) -> Memory {
        Memory { geometry, blocks: RefCell::default() }
    }

    /// Memory in use, in bytes.
    pub fn mapped_bytes(&self) -> u64 {
        (self.blocks.borrow().len() * BLOCK_BYTES) as u64
    }

    /// Carries out a request at once.
    pub fn answer(&self, request: &BlockRequest) -> BlockResult {
        self.geometry.assert_valid(request);
        match request {
            BlockRequest::Read { lba, blocks } => {
                Ok(BlockOutput::Data(self.read(self.bytes(*lba, u64::from(*blocks)))))
            }
            BlockRequest::Write { lba, data, .. } => {
                self.write(lba.0 * u64::from(self.geometry.block_bytes), data);
                Ok(BlockOutput::None)
            }
            BlockRequest::WriteZeroes { lba, blocks } | BlockRequest::Unmap { lba, blocks } => {
                self.clear(self.bytes(*lba, *blocks));
                Ok(BlockOutput::None)
            }
            BlockRequest::CompareAndWrite { lba, expected, data, .. } => {
                let blocks = expected.len() as u64 / u64::from(self.geometry.block_bytes);
                let now = self.read(self.bytes(*lba, blocks)).concat();
                if let Some(at) = now.iter().zip(expected.to_vec()).position(|(have, want)| *have != want) {
                    return Err(BlockError::Miscompare { offset_bytes: at as u32 });
                }
                self.write(lba.0 * u64::from(self.geometry.block_bytes), data);
                Ok(BlockOutput::None)
            }
            BlockRequest::Flush => Ok(BlockOutput::None),
            BlockRequest::MapStatus { lba, blocks } => Ok(self.map_status(self.bytes(*lba, *blocks))),
        }
    }

    fn bytes(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let block_bytes = u64::from(self.geometry.block_bytes);
        lba.0 * block_bytes..(lba.0 + blocks) * block_bytes
    }

    fn read(&self, range: Range<u64>) -> Vec<Bytes> {
        let blocks = self.blocks.borrow();
        let mut pieces = Vec::with_capacity(split(range.clone()).count());
        for (index, within) in split(range) {
            match blocks.get(&index) {
                Some(block) => pieces.push(block.slice(within)),
                None => pieces.extend(zeros(within.len())),
            }
        }
        pieces
    }

    fn write(&self, start_bytes: u64, data: &Payload) {
        let mut blocks = self.blocks.borrow_mut();
        let mut offset = 0;
        for (index, within) in split(start_bytes..start_bytes + data.len() as u64) {
            let mut block = match blocks.get(&index) {
                Some(block) if within.len() < BLOCK_BYTES => block.to_vec(),
                _ => vec![0; BLOCK_BYTES],
            };
            let length = within.len();
            data.copy_to(offset, &mut block[within]);
            offset += length;
            blocks.insert(index, Bytes::from(block));
        }
    }

    fn clear(&self, range: Range<u64>) {
        let mut blocks = self.blocks.borrow_mut();
        let whole = range.start.div_ceil(BLOCK_BYTES as u64)..range.end / BLOCK_BYTES as u64;
        if whole.end.saturating_sub(whole.start) > blocks.len() as u64 {
            blocks.retain(|index, _| !whole.contains(index));
        } else {
            whole.for_each(|index| drop(blocks.remove(&index)));
        }
        for (index, within) in edges(range) {
            if let Some(block) = blocks.get_mut(&index) {
                let mut changed = block.to_vec();
                changed[within].fill(0);
                *block = Bytes::from(changed);
            }
        }
    }

    fn map_status(&self, range: Range<u64>) -> BlockOutput {
        let blocks = self.blocks.borrow();
        let mut pieces = split(range.clone()).take(STATUS_BLOCKS_MAX as usize);
        let (first, within) = pieces.next().expect("the range is not empty");
        let mapped = blocks.contains_key(&first);
        let mut end = first * BLOCK_BYTES as u64 + within.end as u64;
        for (index, within) in pieces {
            if blocks.contains_key(&index) != mapped {
                break;
            }
            end = index * BLOCK_BYTES as u64 + within.end as u64;
        }
        BlockOutput::MapStatus { mapped, blocks: (end - range.start) / u64::from(self.geometry.block_bytes) }
    }
}

/// A byte range as 4 KiB blocks: each index with the part of the block that lies in the range.
fn split(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let size = BLOCK_BYTES as u64;
    (range.start / size..range.end.div_ceil(size)).map(move |index| {
        let start = range.start.max(index * size) - index * size;
        let end = range.end.min((index + 1) * size) - index * size;
        (index, start as usize..end as usize)
    })
}

/// Those of [`split`] that are parts of a block: at most the first and the last.
fn edges(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let last = (range.end - 1) / BLOCK_BYTES as u64;
    let first = range.start / BLOCK_BYTES as u64;
    let tail = range.start.max(last * BLOCK_BYTES as u64)..range.end;
    let tail = split(tail).filter(move |_| last != first);
    split(range).take(1).chain(tail).filter(|(_, within)| within.len() < BLOCK_BYTES)
}

impl BlockTarget for Memory {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        self.answer(&request)
    }
}
