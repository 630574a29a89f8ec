//! A target in memory: a sparse map of slabs of 128 KiB. For tests, and for measuring without drives.
//!
//! Every request takes effect as a whole when it is executed, so that nothing overlaps. A read shares its slab; a write
//! changes the slab in place where nobody reads it any more, and a copy of it otherwise.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use base::{BLOCK_BYTES, HashMap, Lba};
use bytes::{Bytes, BytesMut};

use crate::null::zeros;
use crate::payload::Payload;
use crate::request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};

/// How many 4 KiB blocks one map status looks at.
const STATUS_BLOCKS_MAX: u64 = 4096;
/// Small enough that a write seldom meets a read of the same slab, large enough that the map stays in the caches.
const SLAB_BYTES: usize = 128 << 10;
const SLAB_BLOCKS: usize = SLAB_BYTES / BLOCK_BYTES;
const _: () = assert!(SLAB_BLOCKS == u32::BITS as usize);

/// Zeros wherever no block is mapped.
struct Slab {
    data: Bytes,
    /// One bit for each block.
    mapped: u32,
}

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
        let blocks: u32 = self.slabs.borrow().values().map(|slab| slab.mapped.count_ones()).sum();
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
                Some(slab) => data.push(slab.data.slice(within)),
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
            slab.mapped |= mask(within.start / BLOCK_BYTES..within.end.div_ceil(BLOCK_BYTES));
            let length = within.len();
            slab.change(|bytes| data.copy_to(offset, &mut bytes[within]));
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
            slab.mapped &= !mask(within.start.div_ceil(BLOCK_BYTES)..within.end / BLOCK_BYTES);
            slab.change(|bytes| bytes[within].fill(0));
            if slab.mapped == 0 {
                slabs.remove(&index);
            }
        }
    }

    fn map_status(&self, range: Range<u64>) -> BlockOutput {
        let slabs = self.slabs.borrow();
        let is_mapped = |block: u64| {
            let slab = slabs.get(&(block / SLAB_BLOCKS as u64));
            slab.is_some_and(|slab| slab.mapped >> (block % SLAB_BLOCKS as u64) & 1 != 0)
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

impl Slab {
    fn new() -> Slab {
        Slab { data: shared(BytesMut::zeroed(SLAB_BYTES + 1)).freeze(), mapped: 0 }
    }

    /// Changes the slab, in place if nobody shares it.
    fn change(&mut self, change: impl FnOnce(&mut [u8])) {
        let mut data = match std::mem::take(&mut self.data).try_into_mut() {
            Ok(data) => data,
            Err(read_by_others) => {
                let mut copy = BytesMut::with_capacity(SLAB_BYTES + 1);
                copy.extend_from_slice(&read_by_others);
                copy.extend_from_slice(&[0]);
                shared(copy)
            }
        };
        change(&mut data);
        self.data = data.freeze();
    }
}

/// Cuts a buffer to a slab. It is counted from here on, so that sharing it allocates nothing.
fn shared(mut buffer: BytesMut) -> BytesMut {
    drop(buffer.split_off(SLAB_BYTES));
    buffer
}

/// Bits of blocks of a slab.
fn mask(blocks: Range<usize>) -> u32 {
    let below = |end: usize| ((1u64 << end) - 1) as u32;
    if blocks.is_empty() { 0 } else { below(blocks.end) & !below(blocks.start) }
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
