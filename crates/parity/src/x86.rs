//! The x86-64 kernels: AVX-512 with GFNI (a product is one instruction), and AVX-512 or AVX2 (two byte shuffles look
//! up the products of the nibbles).
//!
//! This file returns a kernel only if the processor has its features, so its functions are safe to call.

use core::arch::x86_64::*;
use std::is_x86_feature_detected as has;

use crate::field::{BIT_MATRICES, NIBBLE_PRODUCTS, POLYNOMIAL_LOW};
use crate::generic::Vector;
use crate::kernel::Kernel;
use crate::wide::kernel;

/// Those that this processor can run, the fastest first.
pub fn available() -> Vec<Kernel> {
    let avx512 = has!("avx512f") && has!("avx512bw");
    let candidates =
        [(avx512 && has!("gfni"), gfni::KERNEL), (avx512, avx512::KERNEL), (has!("avx2"), avx2::KERNEL)];
    candidates.into_iter().filter(|(runs, _)| *runs).map(|(_, kernel)| kernel).collect()
}

kernel!(gfni, "avx512-gfni", Gfni, "avx512f,avx512bw,gfni");
kernel!(avx512, "avx512", Avx512, "avx512f,avx512bw");
kernel!(avx2, "avx2", Avx2, "avx2");

/// 64 bytes; products by GF2P8AFFINEQB with the factor's bit matrix.
#[derive(Clone, Copy)]
struct Gfni(__m512i);

// SAFETY: needs avx512f, avx512bw and gfni; loads and stores are unaligned ones of 64 bytes.
unsafe impl Vector for Gfni {
    const BYTES: usize = 64;
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Gfni {
        // SAFETY: avx512f by the contract.
        Gfni(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Gfni {
        // SAFETY: avx512f and 64 readable bytes by the contract.
        Gfni(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: avx512f and 64 writable bytes by the contract.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Gfni) -> Gfni {
        // SAFETY: avx512f by the contract.
        Gfni(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn double(self) -> Gfni {
        // SAFETY: the features by the contract.
        unsafe { self.times(Gfni::factor(2)) }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> __m512i {
        // SAFETY: avx512f by the contract.
        unsafe { _mm512_set1_epi64(BIT_MATRICES[factor as usize].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn times(self, factor: __m512i) -> Gfni {
        // SAFETY: gfni and avx512f by the contract.
        Gfni(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, factor) })
    }
}

/// 64 bytes; products by looking up nibbles.
#[derive(Clone, Copy)]
struct Avx512(__m512i);

// SAFETY: needs avx512f and avx512bw; loads and stores are unaligned ones of 64 bytes.
unsafe impl Vector for Avx512 {
    const BYTES: usize = 64;
    /// The products of low and of high nibbles, in every 16-byte lane.
    type Factor = (__m512i, __m512i);

    #[inline(always)]
    unsafe fn zero() -> Avx512 {
        // SAFETY: avx512f by the contract.
        Avx512(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Avx512 {
        // SAFETY: avx512f and 64 readable bytes by the contract.
        Avx512(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: avx512f and 64 writable bytes by the contract.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Avx512) -> Avx512 {
        // SAFETY: avx512f by the contract.
        Avx512(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn double(self) -> Avx512 {
        // SAFETY: avx512f and avx512bw by the contract.
        unsafe {
            let carries = _mm512_movepi8_mask(self.0);
            let reduction = _mm512_maskz_set1_epi8(carries, POLYNOMIAL_LOW.cast_signed());
            Avx512(_mm512_xor_si512(_mm512_add_epi8(self.0, self.0), reduction))
        }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> (__m512i, __m512i) {
        let [low, high] = &NIBBLE_PRODUCTS[factor as usize];
        // SAFETY: avx512f by the contract; the tables have the 16 bytes that are loaded.
        unsafe {
            let low = _mm_loadu_si128(low.as_ptr().cast());
            let high = _mm_loadu_si128(high.as_ptr().cast());
            (_mm512_broadcast_i32x4(low), _mm512_broadcast_i32x4(high))
        }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): (__m512i, __m512i)) -> Avx512 {
        // SAFETY: avx512f and avx512bw by the contract.
        unsafe {
            let nibble = _mm512_set1_epi8(0x0F);
            let low = _mm512_shuffle_epi8(low, _mm512_and_si512(self.0, nibble));
            let high = _mm512_shuffle_epi8(high, _mm512_and_si512(_mm512_srli_epi16::<4>(self.0), nibble));
            Avx512(_mm512_xor_si512(low, high))
        }
    }
}

/// 32 bytes; products by looking up nibbles.
#[derive(Clone, Copy)]
struct Avx2(__m256i);

// SAFETY: needs avx2; loads and stores are unaligned ones of 32 bytes.
unsafe impl Vector for Avx2 {
    const BYTES: usize = 32;
    /// The products of low and of high nibbles, in both 16-byte lanes.
    type Factor = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn zero() -> Avx2 {
        // SAFETY: avx2 by the contract.
        Avx2(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Avx2 {
        // SAFETY: avx2 and 32 readable bytes by the contract.
        Avx2(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: avx2 and 32 writable bytes by the contract.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Avx2) -> Avx2 {
        // SAFETY: avx2 by the contract.
        Avx2(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn double(self) -> Avx2 {
        // SAFETY: avx2 by the contract.
        unsafe {
            let carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
            let reduction = _mm256_and_si256(carries, _mm256_set1_epi8(POLYNOMIAL_LOW.cast_signed()));
            Avx2(_mm256_xor_si256(_mm256_add_epi8(self.0, self.0), reduction))
        }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> (__m256i, __m256i) {
        let [low, high] = &NIBBLE_PRODUCTS[factor as usize];
        // SAFETY: avx2 by the contract; the tables have the 16 bytes that are loaded.
        unsafe {
            let low = _mm_loadu_si128(low.as_ptr().cast());
            let high = _mm_loadu_si128(high.as_ptr().cast());
            (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high))
        }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): (__m256i, __m256i)) -> Avx2 {
        // SAFETY: avx2 by the contract.
        unsafe {
            let nibble = _mm256_set1_epi8(0x0F);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, nibble));
            let high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), nibble));
            Avx2(_mm256_xor_si256(low, high))
        }
    }
}
