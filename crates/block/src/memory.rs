//! A target in memory: a sparse map of slabs of 4 MiB. For tests, and for measuring without drives.
//!
//! Every request takes effect at once, as a whole, so requests never overlap. A read shares its slab, and while it is
//! shared nobody may change it. Writes during this time are kept beside the slab, block by block. The next write that
//! finds the slab unshared merges them into it.
//!
//! ```text
//!   slab     | block 0 | block 1 | ... | block 1023 |      shared with reads that are being sent
//!   beside   { 1: newer }                                  new reads see it; a later write merges it into the slab
//! ```

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use base::{BLOCK_BYTES, HashMap, Lba};

use crate::null::zeros;
use crate::payload::Payload;
use crate::request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};

mod slab;

use slab::{SLAB_BLOCKS, SLAB_BYTES, Slab};

/// How many 4 KiB blocks one map status looks at.
const STATUS_BLOCKS_MAX: u64 = 4096;

/// Keeps what is written for as long as it lives. Holds as much memory as the slabs that are touched.
pub struct Memory {
    geometry: Geometry,
    slabs: Rc<RefCell<HashMap<u64, Slab>>>,
}

impl Memory {
    /// The size need not be whole 4 KiB blocks.
    pub fn new(geometry: Geometry) -> Memory {
        Memory { geometry, slabs: Rc::default() }
    }

    /// The same memory with a larger size; requests to either reach it.
    pub fn grown(&self, geometry: Geometry) -> Memory {
        assert!(geometry.size_bytes() >= self.geometry.size_bytes());
        Memory { geometry, slabs: self.slabs.clone() }
    }

    /// Blocks in use, in bytes.
    pub fn mapped_bytes(&self) -> u64 {
        let blocks: u32 = self.slabs.borrow().values().map(Slab::mapped_blocks).sum();
        u64::from(blocks) * BLOCK_BYTES as u64
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
                let now = self.read(self.bytes(*lba, blocks)).to_vec();
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

    fn read(&self, range: Range<u64>) -> Payload {
        let slabs = self.slabs.borrow();
        let mut data = Payload::new();
        for (index, within) in split(range) {
            match slabs.get(&index) {
                Some(slab) => slab.read(within, &mut data),
                None => zeros(within.len()).into_iter().for_each(|piece| data.push(piece)),
            }
        }
        data
    }

    fn write(&self, start_bytes: u64, data: &Payload) {
        let mut slabs = self.slabs.borrow_mut();
        let mut offset = 0;
        for (index, within) in split(start_bytes..start_bytes + data.len() as u64) {
            let slab = slabs.entry(index).or_insert_with(Slab::new);
            let length = within.len();
            slab.write(within, |at, bytes| data.stream_to(offset + at, bytes));
            offset += length;
        }
    }

    fn clear(&self, range: Range<u64>) {
        let mut slabs = self.slabs.borrow_mut();
        let size = SLAB_BYTES as u64;
        let whole = range.start.div_ceil(size)..range.end / size;
        if whole.end.saturating_sub(whole.start) > slabs.len() as u64 {
            slabs.retain(|index, _| !whole.contains(index));
        } else {
            whole.for_each(|index| drop(slabs.remove(&index)));
        }
        for (index, within) in edges(range) {
            let Some(slab) = slabs.get_mut(&index) else { continue };
            slab.clear(within);
            if slab.mapped_blocks() == 0 {
                slabs.remove(&index);
            }
        }
    }

    fn map_status(&self, range: Range<u64>) -> BlockOutput {
        let slabs = self.slabs.borrow();
        let is_mapped = |block: u64| {
            let slab = slabs.get(&(block / SLAB_BLOCKS as u64));
            slab.is_some_and(|slab| slab.is_mapped((block % SLAB_BLOCKS as u64) as usize))
        };
        let size = BLOCK_BYTES as u64;
        let blocks = range.start / size..range.end.div_ceil(size);
        let mapped = is_mapped(blocks.start);
        let mut same =
            blocks.take(STATUS_BLOCKS_MAX as usize).take_while(|&block| is_mapped(block) == mapped);
        let last = same.by_ref().last().expect("the range is not empty");
        let end = range.end.min((last + 1) * size);
        BlockOutput::MapStatus { mapped, blocks: (end - range.start) / u64::from(self.geometry.block_bytes) }
    }
}

/// A byte range as slabs: each index with the part of the slab that lies in the range.
fn split(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let size = SLAB_BYTES as u64;
    (range.start / size..range.end.div_ceil(size)).map(move |index| {
        let start = range.start.max(index * size) - index * size;
        let end = range.end.min((index + 1) * size) - index * size;
        (index, start as usize..end as usize)
    })
}

/// Those of [`split`] that are parts of a slab: at most the first and the last.
fn edges(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let last = (range.end - 1) / SLAB_BYTES as u64;
    let first = range.start / SLAB_BYTES as u64;
    let tail = range.start.max(last * SLAB_BYTES as u64)..range.end;
    let tail = split(tail).filter(move |_| last != first);
    split(range).take(1).chain(tail).filter(|(_, within)| within.len() < SLAB_BYTES)
}

impl BlockTarget for Memory {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        self.answer(&request)
    }
}
