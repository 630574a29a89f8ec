//! One slab: its bytes, the writes that arrived while it was shared, and the blocks in use.

use std::ops::Range;

use base::{BLOCK_BYTES, aligned_zeros};
use bytes::{Bytes, BytesMut};

use crate::payload::Payload;

/// Large enough that the slabs of some GiB are found without leaving the caches: finding one is what a read pays for.
pub(super) const SLAB_BYTES: usize = 4 << 20;
pub(super) const SLAB_BLOCKS: usize = SLAB_BYTES / BLOCK_BYTES;

/// Zeros wherever no block is mapped.
pub(super) struct Slab {
    data: Bytes,
    beside: Option<Box<Beside>>,
    mapped_blocks: u32,
    /// One bit for each block.
    mapped: Box<[u64; SLAB_BLOCKS / 64]>,
}

/// With the number that it is found by, a slab is one line of the cache.
const _: () = assert!(size_of::<(u64, Slab)>() <= 64);

/// Blocks written while a slab was shared, newer than what is in it. Each once.
#[derive(Default)]
struct Beside(Vec<(usize, BytesMut)>);

impl Beside {
    fn find(&self, block: usize) -> Option<&BytesMut> {
        self.0.iter().find(|(index, _)| *index == block).map(|(_, newer)| newer)
    }
}

impl Slab {
    pub fn new() -> Slab {
        let mapped = Box::new([0; SLAB_BLOCKS / 64]);
        Slab { data: aligned_zeros(SLAB_BYTES).freeze(), beside: None, mapped_blocks: 0, mapped }
    }

    pub fn read(&self, range: Range<usize>, into: &mut Payload) {
        let Some(beside) = &self.beside else {
            return into.push(self.data.slice(range));
        };
        for (block, within) in blocks(range) {
            let start = block * BLOCK_BYTES;
            into.push(match beside.find(block) {
                Some(newer) => Bytes::copy_from_slice(&newer[within]),
                None => self.data.slice(start + within.start..start + within.end),
            });
        }
    }

    /// `fill` is given the bytes of the range, one piece after the other, and how far into the range each begins.
    pub fn write(&mut self, range: Range<usize>, fill: impl FnMut(usize, &mut [u8])) {
        if self.mapped_blocks < SLAB_BLOCKS as u32 {
            self.map(range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES), true);
        }
        self.change(range, fill);
    }

    /// Zeros in the range. Blocks that are in it as a whole are not in use any more.
    pub fn clear(&mut self, range: Range<usize>) {
        self.map(range.start.div_ceil(BLOCK_BYTES)..range.end / BLOCK_BYTES, false);
        self.change(range, |_, bytes| bytes.fill(0));
    }

    fn map(&mut self, blocks: Range<usize>, mapped: bool) {
        for block in blocks {
            if self.is_mapped(block) != mapped {
                self.mapped[block / 64] ^= 1 << (block % 64);
                self.mapped_blocks = if mapped { self.mapped_blocks + 1 } else { self.mapped_blocks - 1 };
            }
        }
    }

    pub fn is_mapped(&self, block: usize) -> bool {
        self.mapped[block / 64] >> (block % 64) & 1 != 0
    }

    pub fn mapped_blocks(&self) -> u32 {
        self.mapped_blocks
    }

    fn change(&mut self, range: Range<usize>, mut fill: impl FnMut(usize, &mut [u8])) {
        match std::mem::take(&mut self.data).try_into_mut() {
            Ok(mut data) => {
                for (block, newer) in self.beside.take().into_iter().flat_map(|beside| beside.0) {
                    data[block * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(&newer);
                }
                fill(0, &mut data[range]);
                self.data = data.freeze();
            }
            Err(shared) => {
                self.data = shared;
                let mut at = 0;
                for (block, within) in blocks(range) {
                    let length = within.len();
                    fill(at, &mut self.beside(block)[within]);
                    at += length;
                }
            }
        }
    }

    /// The copy of a block beside the slab, made where there is none.
    fn beside(&mut self, block: usize) -> &mut BytesMut {
        let Beside(beside) = &mut **self.beside.get_or_insert_default();
        let found = beside.iter().position(|(index, _)| *index == block);
        let place = found.unwrap_or_else(|| {
            let now = &self.data[block * BLOCK_BYTES..][..BLOCK_BYTES];
            beside.push((block, BytesMut::from(now)));
            beside.len() - 1
        });
        &mut beside[place].1
    }
}

/// A range within a slab as blocks: each with the part of it that lies in the range.
fn blocks(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    (range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES)).map(move |block| {
        let start = block * BLOCK_BYTES;
        (block, range.start.max(start) - start..range.end.min(start + BLOCK_BYTES) - start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(slab: &Slab, range: Range<usize>) -> Vec<u8> {
        let mut payload = Payload::new();
        slab.read(range, &mut payload);
        payload.to_vec()
    }

    #[test]
    fn a_read_keeps_what_it_has_seen_and_later_ones_see_what_was_written() {
        let mut slab = Slab::new();
        slab.write(0..2 * BLOCK_BYTES, |_, bytes| bytes.fill(1));
        let mut held = Payload::new();
        slab.read(0..SLAB_BYTES, &mut held);
        // over a border of blocks, in parts of both, twice
        let middle = BLOCK_BYTES - 10..BLOCK_BYTES + 10;
        for value in [2, 3] {
            slab.write(middle.clone(), |at, bytes| bytes.fill(value + at as u8));
        }
        slab.clear(5..6);
        assert!(held.to_vec()[..2 * BLOCK_BYTES].iter().all(|&byte| byte == 1));
        let seen = content(&slab, 0..SLAB_BYTES);
        assert_eq!((seen[4], seen[5], seen[6], seen[BLOCK_BYTES - 11]), (1, 0, 1, 1));
        assert_eq!(seen[middle.clone()], [[3; 10], [13; 10]].concat());
        assert_eq!(slab.beside.as_ref().map(|beside| beside.0.len()), Some(2));
        drop(held);
        slab.write(SLAB_BYTES - 1..SLAB_BYTES, |_, bytes| bytes.fill(9));
        assert!(slab.beside.is_none(), "folded in");
        assert_eq!(content(&slab, 0..SLAB_BYTES - 1), seen[..SLAB_BYTES - 1]);
        assert_eq!(slab.mapped_blocks(), 3);
    }

    #[test]
    fn only_whole_blocks_go_out_of_use() {
        let mut slab = Slab::new();
        slab.write(0..3 * BLOCK_BYTES, |_, bytes| bytes.fill(7));
        slab.clear(1..3 * BLOCK_BYTES - 1);
        assert_eq!((0..4).map(|block| slab.is_mapped(block)).collect::<Vec<_>>(), [true, false, true, false]);
        assert_eq!(content(&slab, 0..2), [7, 0]);
    }
}
