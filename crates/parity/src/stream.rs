//! Cache hints: streaming stores, for memory that is not read soon, and prefetching, for memory that is used soon.
//!
//! An ordinary copy to memory outside the caches first reads the target lines. This evicts other data, and the copy
//! waits for it. A streaming copy writes whole cache lines and reads nothing. If the target is read soon, or is already
//! in the caches, the streaming copy is the slower one.

/// Copies below this length, in bytes, are ordinary ones: a part of a line is no saving.
const STREAMED_BYTES_MIN: usize = 1024;

/// Copies `from` into `to`, as a whole: other threads that learn of the copy see it.
///
/// Panics where the lengths differ.
#[inline(never)] // so that a profile shows it
pub fn copy_past_caches(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "as much as there is room for");
    if to.len() < STREAMED_BYTES_MIN {
        return to.copy_from_slice(from);
    }
    stream(to, from);
}

/// Prefetches `bytes` into the L2 cache, without waiting: for data in cold memory that is read a few
/// microseconds later, for example by a send. Not into the L1 cache, which is too small and would lose
/// data that is in use.
#[inline(never)] // so that a profile shows it
pub fn bring_closer(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes.len()).step_by(LINE_BYTES) {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: SSE is a part of x86-64; nothing is read or written, and `at` lies within.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// A cache line.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

#[cfg(target_arch = "x86_64")]
fn stream(to: &mut [u8], from: &[u8]) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const VECTOR_BYTES: usize = size_of::<__m128i>();
    let (head, from) = from.split_at(to.as_ptr().align_offset(LINE_BYTES).min(to.len()));
    let (first, to) = to.split_at_mut(head.len());
    first.copy_from_slice(head);
    let mut lines = to.chunks_exact_mut(LINE_BYTES);
    for (line, bytes) in lines.by_ref().zip(from.chunks_exact(LINE_BYTES)) {
        for at in (0..LINE_BYTES).step_by(VECTOR_BYTES) {
            // SAFETY: SSE2 is a part of x86-64. Both are as long as a line, and `line` begins at a multiple of its length.
            unsafe {
                let vector = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
                _mm_stream_si128(line.as_mut_ptr().add(at).cast(), vector);
            }
        }
    }
    let rest = lines.into_remainder();
    rest.copy_from_slice(&from[from.len() - rest.len()..]);
    // SAFETY: SSE is a part of x86-64. Streaming stores are not ordered with those that follow, until here.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_target_changes() {
        let source: Vec<u8> = (0..9000u32).map(|index| ((index * 31) >> 3) as u8).collect();
        for (offset, shift, length) in
            [(0, 0, 4096), (1, 0, 4096), (63, 7, 1024), (17, 3, 1023), (64, 1, 8192), (5, 9, 1100), (0, 0, 0)]
        {
            let mut target = vec![0xEE; 9000];
            copy_past_caches(&mut target[offset..offset + length], &source[shift..shift + length]);
            assert_eq!(
                target[offset..offset + length],
                source[shift..shift + length],
                "{length} at {offset}"
            );
            assert!(target[..offset].iter().chain(&target[offset + length..]).all(|&byte| byte == 0xEE));
        }
    }
}
