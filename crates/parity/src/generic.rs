//! The loops of all kernels, written once and generic over a vector of bytes; and the portable vector, a `u64`.
//!
//! A loop starts at byte `at`, processes as many whole vectors (or groups of them) as fit, and returns where it
//! stopped. The rest is processed with narrower vectors, down to single bytes.

use crate::field::{self, POLYNOMIAL_LOW};

/// A register full of field elements.
///
/// # Safety
/// Every method needs the processor features that the implementation names. `load` and `store` need `BYTES`
/// readable or writable bytes, at any alignment.
pub unsafe trait Vector: Copy {
    const BYTES: usize;
    /// A factor, prepared for [`Vector::times`].
    type Factor: Copy;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    unsafe fn xor(self, other: Self) -> Self;
    /// Every element times g.
    unsafe fn double(self) -> Self;
    unsafe fn factor(factor: u8) -> Self::Factor;
    unsafe fn times(self, factor: Self::Factor) -> Self;
}

/// P of the columns, `GROUP` vectors at a time, from byte `at` to the returned one.
///
/// # Safety
/// The features of `V`; every column is at least as long as `p`.
#[inline(always)]
pub unsafe fn p<V: Vector, const GROUP: usize>(columns: &[&[u8]], p: &mut [u8], mut at: usize) -> usize {
    while at + GROUP * V::BYTES <= p.len() {
        // SAFETY: the group lies inside `p` by the loop's condition, and inside each column by the contract.
        unsafe {
            let mut sums = [V::zero(); GROUP];
            for column in columns {
                let from = column.as_ptr().add(at);
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.xor(V::load(from.add(i * V::BYTES)));
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                sum.store(p.as_mut_ptr().add(at + i * V::BYTES));
            }
        }
        at += GROUP * V::BYTES;
    }
    at
}

/// P and Q of the columns, from byte `at` to the returned one. Q by Horner's rule: from the last column to the first, doubling in between.
///
/// # Safety
/// The features of `V`; `q` and every column are at least as long as `p`.
#[inline(always)]
pub unsafe fn pq<V: Vector, const GROUP: usize>(
    columns: &[&[u8]],
    p: &mut [u8],
    q: &mut [u8],
    mut at: usize,
) -> usize {
    while at + GROUP * V::BYTES <= p.len() {
        // SAFETY: the group lies inside `p` by the loop's condition, and inside the others by the contract.
        unsafe {
            let mut sums = [[V::zero(); 2]; GROUP];
            for column in columns.iter().rev() {
                let from = column.as_ptr().add(at);
                for (i, [p, q]) in sums.iter_mut().enumerate() {
                    let data = V::load(from.add(i * V::BYTES));
                    *p = p.xor(data);
                    *q = q.double().xor(data);
                }
            }
            for (i, [p_sum, q_sum]) in sums.into_iter().enumerate() {
                p_sum.store(p.as_mut_ptr().add(at + i * V::BYTES));
                q_sum.store(q.as_mut_ptr().add(at + i * V::BYTES));
            }
        }
        at += GROUP * V::BYTES;
    }
    at
}

/// target ^= data, from byte `at` to the returned one.
///
/// # Safety
/// The features of `V`; `data` is at least as long as `target`.
#[inline(always)]
pub unsafe fn xor<V: Vector>(target: &mut [u8], data: &[u8], mut at: usize) -> usize {
    while at + V::BYTES <= target.len() {
        // SAFETY: the vector lies inside `target` by the loop's condition, and inside `data` by the contract.
        unsafe {
            let to = target.as_mut_ptr().add(at);
            V::load(to).xor(V::load(data.as_ptr().add(at))).store(to);
        }
        at += V::BYTES;
    }
    at
}

/// target ^= factor * data, from byte `at` to the returned one.
///
/// # Safety
/// The features of `V`; `data` is at least as long as `target`.
#[inline(always)]
pub unsafe fn multiply_xor<V: Vector>(target: &mut [u8], data: &[u8], factor: u8, mut at: usize) -> usize {
    // SAFETY: the features are there by the contract.
    let factor = unsafe { V::factor(factor) };
    while at + V::BYTES <= target.len() {
        // SAFETY: the vector lies inside `target` by the loop's condition, and inside `data` by the contract.
        unsafe {
            let to = target.as_mut_ptr().add(at);
            V::load(to).xor(V::load(data.as_ptr().add(at)).times(factor)).store(to);
        }
        at += V::BYTES;
    }
    at
}

/// target *= factor, from byte `at` to the returned one.
///
/// # Safety
/// The features of `V`.
#[inline(always)]
pub unsafe fn multiply<V: Vector>(target: &mut [u8], factor: u8, mut at: usize) -> usize {
    // SAFETY: the features are there by the contract.
    let factor = unsafe { V::factor(factor) };
    while at + V::BYTES <= target.len() {
        // SAFETY: the vector lies inside `target` by the loop's condition.
        unsafe {
            let to = target.as_mut_ptr().add(at);
            V::load(to).times(factor).store(to);
        }
        at += V::BYTES;
    }
    at
}

/// Eight bytes `value` in a `u64`.
const fn splat(value: u8) -> u64 {
    u64::from_ne_bytes([value; 8])
}

// SAFETY: needs no feature; loads and stores are unaligned ones of `BYTES` bytes.
unsafe impl Vector for u64 {
    const BYTES: usize = 8;
    type Factor = u8;

    #[inline(always)]
    unsafe fn zero() -> u64 {
        0
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> u64 {
        // SAFETY: readable by the contract; no alignment asked for.
        unsafe { from.cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: writable by the contract; no alignment asked for.
        unsafe { to.cast::<u64>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: u64) -> u64 {
        self ^ other
    }

    #[inline(always)]
    unsafe fn double(self) -> u64 {
        let carries = self >> 7 & splat(1);
        ((self & splat(0x7F)) << 1) ^ (carries * u64::from(POLYNOMIAL_LOW))
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> u8 {
        factor
    }

    #[inline(always)]
    unsafe fn times(self, factor: u8) -> u64 {
        let (mut sum, mut power) = (0, self);
        for bit in 0..8 {
            if factor >> bit & 1 != 0 {
                sum ^= power;
            }
            // SAFETY: a u64 needs no feature.
            power = unsafe { power.double() };
        }
        sum
    }
}

// SAFETY: needs no feature; loads and stores one byte.
unsafe impl Vector for u8 {
    const BYTES: usize = 1;
    type Factor = u8;

    #[inline(always)]
    unsafe fn zero() -> u8 {
        0
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> u8 {
        // SAFETY: readable by the contract.
        unsafe { from.read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: writable by the contract.
        unsafe { to.write(self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: u8) -> u8 {
        self ^ other
    }

    #[inline(always)]
    unsafe fn double(self) -> u8 {
        field::multiply(self, 2)
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> u8 {
        factor
    }

    #[inline(always)]
    unsafe fn times(self, factor: u8) -> u8 {
        field::multiply(self, factor)
    }
}
