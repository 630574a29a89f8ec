//! Buffers for direct I/O: whole, 4 KiB-aligned blocks. Each thread reuses the memory of freed buffers.

use std::cell::RefCell;
use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::units::BLOCK_BYTES;

/// Memory comes in these sizes, in blocks; larger buffers are as large as asked for.
const SIZES: [usize; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// Bytes of freed buffers that a thread keeps for reuse; and, separately, bytes of lent buffers that it tracks.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// Lent buffers that are checked for one that is free again.
const LOOKED_AT_MAX: usize = 4;

/// Memory of freed buffers, and of lent ones, by size. New memory would cost page faults and clearing.
struct Kept {
    bytes: usize,
    lent_bytes: usize,
    by_size: [Vec<BytesMut>; SIZES.len()],
    /// The oldest first: that is the most likely to have come back.
    lent: [VecDeque<Bytes>; SIZES.len()],
}

thread_local! {
    static KEPT: RefCell<Kept> = const {
        RefCell::new(Kept {
            bytes: 0,
            lent_bytes: 0,
            by_size: [const { Vec::new() }; SIZES.len()],
            lent: [const { VecDeque::new() }; SIZES.len()],
        })
    };
}

impl Kept {
    fn take(&mut self, size: usize) -> Option<BytesMut> {
        if let Some(memory) = self.by_size[size].pop() {
            self.bytes -= memory.len();
            return Some(memory);
        }
        let lent = &mut self.lent[size];
        for _ in 0..LOOKED_AT_MAX.min(lent.len()) {
            match lent.pop_front()?.try_into_mut() {
                Ok(memory) => {
                    self.lent_bytes -= memory.len();
                    return Some(memory);
                }
                Err(held) => lent.push_back(held),
            }
        }
        None
    }

    fn lend(&mut self, size: usize, memory: Bytes) {
        if self.lent_bytes + memory.len() <= KEPT_BYTES_MAX {
            self.lent_bytes += memory.len();
            self.lent[size].push_back(memory);
        }
    }
}

fn size_for(blocks: usize) -> Option<usize> {
    SIZES.iter().position(|&size| size >= blocks)
}

/// The size of memory that is kept.
fn size_of_kept(memory: &[u8]) -> Option<usize> {
    SIZES.iter().position(|&size| size * BLOCK_BYTES == memory.len())
}

/// Takes memory for this number of blocks from the buffers that this thread keeps.
fn take_kept(blocks: usize) -> Option<BytesMut> {
    let size = size_for(blocks)?;
    KEPT.with_borrow_mut(|kept| kept.take(size))
}

/// Zeros, aligned to the block size. Sharing them allocates nothing.
pub fn aligned_zeros(bytes: usize) -> BytesMut {
    let mut memory = BytesMut::zeroed(bytes + BLOCK_BYTES);
    memory.advance(memory.as_ptr().align_offset(BLOCK_BYTES));
    // counted from here on
    drop(memory.split_off(bytes));
    assert!(memory.as_ptr().addr().is_multiple_of(BLOCK_BYTES));
    memory
}

/// A run of whole 4 KiB blocks, aligned for direct I/O. The length is a multiple of [`BLOCK_BYTES`].
pub struct AlignedBuffer {
    /// The length is one of [`SIZES`], or the requested one.
    memory: BytesMut,
    blocks: usize,
}

impl AlignedBuffer {
    /// `blocks` blocks of zeros. Panics if memory cannot be allocated.
    pub fn zeroed(blocks: usize) -> AlignedBuffer {
        match take_kept(blocks) {
            Some(memory) => {
                let mut buffer = AlignedBuffer { memory, blocks };
                buffer.fill(0);
                buffer
            }
            None => AlignedBuffer::fresh(blocks),
        }
    }

    /// `blocks` blocks with undefined content (that of an earlier buffer). The caller must write all of it before reading.
    pub fn uncleared(blocks: usize) -> AlignedBuffer {
        let Some(memory) = take_kept(blocks) else { return AlignedBuffer::fresh(blocks) };
        let mut buffer = AlignedBuffer { memory, blocks };
        if cfg!(debug_assertions) {
            buffer.fill(0xdb);
        }
        buffer
    }

    fn fresh(blocks: usize) -> AlignedBuffer {
        let size = size_for(blocks).map_or(blocks, |size| SIZES[size]);
        AlignedBuffer { memory: aligned_zeros(size * BLOCK_BYTES), blocks }
    }

    /// As many whole blocks as hold `bytes`, copied, the rest zero.
    pub fn copied_from(bytes: &[u8]) -> AlignedBuffer {
        let mut buffer = AlignedBuffer::uncleared(bytes.len().div_ceil(BLOCK_BYTES));
        let (copied, rest) = buffer.split_at_mut(bytes.len());
        copied.copy_from_slice(bytes);
        rest.fill(0);
        buffer
    }

    pub fn blocks(&self) -> usize {
        self.blocks
    }

    pub fn block(&self, index: usize) -> &[u8] {
        &self[index * BLOCK_BYTES..(index + 1) * BLOCK_BYTES]
    }

    pub fn block_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self[index * BLOCK_BYTES..(index + 1) * BLOCK_BYTES]
    }

    /// The same memory as shared, immutable bytes: no copy, and slices at block boundaries stay aligned.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }

    /// The same, for users that drop it soon: this thread then reuses the memory. This allocates nothing.
    pub fn lend(mut self) -> Bytes {
        let memory = std::mem::take(&mut self.memory).freeze();
        let lent = memory.slice(..self.blocks * BLOCK_BYTES);
        if let Some(size) = size_of_kept(&memory) {
            KEPT.with_borrow_mut(|kept| kept.lend(size, memory));
        }
        lent
    }
}

impl Clone for AlignedBuffer {
    fn clone(&self) -> AlignedBuffer {
        AlignedBuffer::copied_from(self)
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let Some(size) = size_of_kept(&memory) else { return };
        // a thread that ends keeps nothing any more
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.bytes + memory.len() <= KEPT_BYTES_MAX {
                kept.bytes += memory.len();
                kept.by_size[size].push(memory);
            }
        });
    }
}

impl std::ops::Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[..self.blocks * BLOCK_BYTES]
    }
}

impl std::ops::DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.blocks * BLOCK_BYTES]
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} blocks)", self.blocks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_shared_bytes_stay_aligned() {
        let mut buffer = AlignedBuffer::zeroed(3);
        buffer.block_mut(1).fill(7);
        assert_eq!(buffer.len(), 3 * BLOCK_BYTES);
        let bytes = buffer.into_bytes();
        let second = bytes.slice(BLOCK_BYTES..2 * BLOCK_BYTES);
        assert_eq!(second.as_ptr() as usize % BLOCK_BYTES, 0);
        assert!(second.iter().all(|&b| b == 7));
    }

    #[test]
    fn memory_is_used_again_and_what_was_in_it_is_not_seen() {
        let mut buffer = AlignedBuffer::zeroed(5);
        let place = buffer.as_ptr();
        buffer.fill(7);
        drop(buffer.into_bytes());
        let buffer = AlignedBuffer::zeroed(6);
        assert_eq!((buffer.as_ptr(), buffer.blocks(), buffer.len()), (place, 6, 6 * BLOCK_BYTES));
        assert!(buffer.iter().all(|&byte| byte == 0));
        drop(buffer);
        let buffer = AlignedBuffer::uncleared(5);
        assert_eq!((buffer.as_ptr(), buffer.blocks()), (place, 5));
        assert_eq!((AlignedBuffer::zeroed(0).len(), AlignedBuffer::zeroed(257).blocks()), (0, 257));
    }

    #[test]
    fn what_was_lent_is_used_again_when_nobody_holds_it_and_not_before() {
        let mut buffer = AlignedBuffer::zeroed(11);
        buffer.fill(7);
        let place = buffer.as_ptr();
        let lent = buffer.lend();
        let part = lent.slice(BLOCK_BYTES..2 * BLOCK_BYTES);
        drop(lent);
        let other = AlignedBuffer::zeroed(12);
        assert_ne!(other.as_ptr(), place);
        assert!(part.len() == BLOCK_BYTES && part.iter().all(|&byte| byte == 7));
        drop((part, other.lend()));
        // both have come back
        let (first, second) = (AlignedBuffer::zeroed(12), AlignedBuffer::zeroed(12));
        assert!(first.as_ptr() == place || second.as_ptr() == place);
        assert!(first.iter().chain(second.iter()).all(|&byte| byte == 0));
        assert_eq!((first.as_ptr().addr() | second.as_ptr().addr()) % BLOCK_BYTES, 0);
    }

    #[test]
    fn what_is_held_for_long_is_in_nobodys_way() {
        let held: Vec<Bytes> = (0..100).map(|_| AlignedBuffer::zeroed(256).lend()).collect();
        assert_eq!(KEPT.with_borrow(|kept| kept.lent_bytes), KEPT_BYTES_MAX);
        assert_eq!(AlignedBuffer::zeroed(256).lend().len(), 256 * BLOCK_BYTES);
        drop(held);
        drop(AlignedBuffer::zeroed(256));
        assert!(KEPT.with_borrow(|kept| kept.lent_bytes) < KEPT_BYTES_MAX);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let many: Vec<AlignedBuffer> = (0..100).map(|_| AlignedBuffer::zeroed(256)).collect();
        drop(many);
        assert_eq!(KEPT.with_borrow(|kept| kept.bytes), KEPT_BYTES_MAX);
    }

    #[test]
    fn copied_from_pads_with_zeros() {
        let buffer = AlignedBuffer::copied_from(&[1; 5000]);
        assert_eq!(buffer.blocks(), 2);
        assert_eq!(buffer[4999], 1);
        assert!(buffer[5000..].iter().all(|&b| b == 0));
    }
}
