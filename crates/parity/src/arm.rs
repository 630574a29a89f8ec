//! The kernel for 64-bit ARM: NEON, which looks up the products of the nibbles in tables.
//!
//! This file returns a kernel only if the processor has its features, so its functions are safe to call.

use core::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected as has;

use crate::field::{NIBBLE_PRODUCTS, POLYNOMIAL_LOW};
use crate::generic::Vector;
use crate::kernel::Kernel;
use crate::wide::kernel;

/// Those that this processor can run, the fastest first.
pub fn available() -> Vec<Kernel> {
    if has!("neon") { vec![neon::KERNEL] } else { Vec::new() }
}

kernel!(neon, "neon", Neon, "neon");

/// 16 bytes; products by looking up nibbles.
#[derive(Clone, Copy)]
struct Neon(uint8x16_t);

// SAFETY: needs neon; loads and stores are unaligned ones of 16 bytes.
unsafe impl Vector for Neon {
    const BYTES: usize = 16;
    /// The products of low and of high nibbles.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> Neon {
        // SAFETY: neon by the contract.
        Neon(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Neon {
        // SAFETY: neon and 16 readable bytes by the contract.
        Neon(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: neon and 16 writable bytes by the contract.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Neon) -> Neon {
        // SAFETY: neon by the contract.
        Neon(unsafe { veorq_u8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn double(self) -> Neon {
        // SAFETY: neon by the contract.
        unsafe {
            let carries = vcltzq_s8(vreinterpretq_s8_u8(self.0));
            let reduction = vandq_u8(carries, vdupq_n_u8(POLYNOMIAL_LOW));
            Neon(veorq_u8(vshlq_n_u8::<1>(self.0), reduction))
        }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> (uint8x16_t, uint8x16_t) {
        let [low, high] = &NIBBLE_PRODUCTS[factor as usize];
        // SAFETY: neon by the contract; the tables have the 16 bytes that are loaded.
        unsafe { (vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): (uint8x16_t, uint8x16_t)) -> Neon {
        // SAFETY: neon by the contract.
        unsafe {
            let low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(0x0F)));
            let high = vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0));
            Neon(veorq_u8(low, high))
        }
    }
}
