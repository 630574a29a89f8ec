//! Memory that direct I/O accepts: whole, zero-filled, 4 KiB-aligned blocks.

use bytes::Bytes;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::units::BLOCK_BYTES;

#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4096))]
struct AlignedBlock([u8; BLOCK_BYTES]);

const _: () = assert!(size_of::<AlignedBlock>() == BLOCK_BYTES && align_of::<AlignedBlock>() == BLOCK_BYTES);

/// A run of whole 4 KiB blocks, aligned for direct I/O. The length is a multiple of [`BLOCK_BYTES`].
#[derive(Clone)]
pub struct AlignedBuffer(Vec<AlignedBlock>);

impl AlignedBuffer {
    /// `blocks` blocks of zeros. Panics where memory cannot be had.
    pub fn zeroed(blocks: usize) -> AlignedBuffer {
        AlignedBuffer(AlignedBlock::new_vec_zeroed(blocks).expect("out of memory"))
    }

    /// As many whole blocks as hold `bytes`, copied, the rest zero.
    pub fn copied_from(bytes: &[u8]) -> AlignedBuffer {
        let mut buffer = AlignedBuffer::zeroed(bytes.len().div_ceil(BLOCK_BYTES));
        buffer[..bytes.len()].copy_from_slice(bytes);
        buffer
    }

    pub fn blocks(&self) -> usize {
        self.0.len()
    }

    pub fn block(&self, index: usize) -> &[u8] {
        self.0[index].as_bytes()
    }

    pub fn block_mut(&mut self, index: usize) -> &mut [u8] {
        self.0[index].as_mut_bytes()
    }

    /// The same memory as shared, immutable bytes: no copy, and slices at block boundaries stay aligned.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl std::ops::Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_slice().as_bytes()
    }
}

impl std::ops::DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice().as_mut_bytes()
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
    fn copied_from_pads_with_zeros() {
        let buffer = AlignedBuffer::copied_from(&[1; 5000]);
        assert_eq!(buffer.blocks(), 2);
        assert_eq!(buffer[4999], 1);
        assert!(buffer[5000..].iter().all(|&b| b == 0));
    }
}
