//! Memory that direct I/O accepts: whole, 4 KiB-aligned blocks. A thread uses the memory of buffers that are gone again.

use std::cell::RefCell;

use bytes::Bytes;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::units::BLOCK_BYTES;

#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4096))]
struct AlignedBlock([u8; BLOCK_BYTES]);

const _: () = assert!(size_of::<AlignedBlock>() == BLOCK_BYTES && align_of::<AlignedBlock>() == BLOCK_BYTES);

/// Memory comes in these sizes, in blocks; larger buffers are as large as asked for.
const SIZES: [usize; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// What a thread keeps for the next buffers, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Memory of buffers that are gone, by size: fresh memory of this kind costs page faults and clearing.
struct Kept {
    bytes: usize,
    by_size: [Vec<Vec<AlignedBlock>>; SIZES.len()],
}

thread_local! {
    static KEPT: RefCell<Kept> =
        const { RefCell::new(Kept { bytes: 0, by_size: [const { Vec::new() }; SIZES.len()] }) };
}

fn size_for(blocks: usize) -> Option<usize> {
    SIZES.iter().position(|&size| size >= blocks)
}

/// Takes memory for so many blocks from what this thread keeps.
fn take_kept(blocks: usize) -> Option<Vec<AlignedBlock>> {
    let size = size_for(blocks)?;
    KEPT.with_borrow_mut(|kept| {
        let memory = kept.by_size[size].pop()?;
        kept.bytes -= memory.len() * BLOCK_BYTES;
        Some(memory)
    })
}

/// A run of whole 4 KiB blocks, aligned for direct I/O. The length is a multiple of [`BLOCK_BYTES`].
pub struct AlignedBuffer {
    memory: Vec<AlignedBlock>,
    blocks: usize,
}

impl AlignedBuffer {
    /// `blocks` blocks of zeros. Panics where memory cannot be had.
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

    /// `blocks` blocks that hold whatever an earlier buffer held: for those who write all of it before they read any.
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
        AlignedBuffer { memory: AlignedBlock::new_vec_zeroed(size).expect("out of memory"), blocks }
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
        self.memory[..self.blocks][index].as_bytes()
    }

    pub fn block_mut(&mut self, index: usize) -> &mut [u8] {
        self.memory[..self.blocks][index].as_mut_bytes()
    }

    /// The same memory as shared, immutable bytes: no copy, and slices at block boundaries stay aligned.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
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
        let Some(size) = SIZES.iter().position(|&size| size == memory.len()) else { return };
        // a thread that ends keeps nothing any more
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let bytes = memory.len() * BLOCK_BYTES;
            if kept.bytes + bytes <= KEPT_BYTES_MAX {
                kept.bytes += bytes;
                kept.by_size[size].push(memory);
            }
        });
    }
}

impl std::ops::Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.memory[..self.blocks].as_bytes()
    }
}

impl std::ops::DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory[..self.blocks].as_mut_bytes()
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
