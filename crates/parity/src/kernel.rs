//! The kernels that this machine supports, and the choice of one of them, which is made once.

use std::sync::OnceLock;

use crate::generic;

/// One implementation of everything. Lengths are the caller's to check: the functions assert nothing but rely on
/// columns that are equally long, which is why they are called from this crate alone.
pub struct Kernel {
    pub name: &'static str,
    /// P of the columns, overwritten.
    pub p: fn(&[&[u8]], &mut [u8]),
    /// P and Q of the columns, overwritten.
    pub pq: fn(&[&[u8]], &mut [u8], &mut [u8]),
    /// target ^= data
    pub xor: fn(&mut [u8], &[u8]),
    /// target ^= factor * data
    pub multiply_xor: fn(&mut [u8], &[u8], u8),
    /// target *= factor
    pub multiply: fn(&mut [u8], u8),
}

impl Kernel {
    /// The best one for this machine.
    pub fn chosen() -> &'static Kernel {
        static CHOSEN: OnceLock<Kernel> = OnceLock::new();
        CHOSEN.get_or_init(|| Kernel::available().swap_remove(0))
    }

    /// All that this machine can run, the fastest first.
    pub fn available() -> Vec<Kernel> {
        #[cfg(target_arch = "x86_64")]
        let mut kernels = crate::x86::available();
        #[cfg(target_arch = "aarch64")]
        let mut kernels = crate::arm::available();
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let mut kernels = Vec::new();
        kernels.push(PORTABLE);
        kernels
    }
}

const PORTABLE: Kernel = Kernel {
    name: "portable",
    p: |columns, p| finish_p(columns, p, 0),
    pq: |columns, p, q| finish_pq(columns, p, q, 0),
    xor: |target, data| finish_xor(target, data, 0),
    multiply_xor: |target, data, factor| finish_multiply_xor(target, data, factor, 0),
    multiply: |target, factor| finish_multiply(target, factor, 0),
};

// What wide vectors leave over, from byte `at` on: eight bytes at a time, then single ones. Where a length does not
// fit, they panic instead of reading what is not theirs.

pub fn finish_p(columns: &[&[u8]], p: &mut [u8], at: usize) {
    assert!(columns.iter().all(|column| column.len() == p.len()));
    // SAFETY: u64 and u8 need no feature; the lengths have just been checked.
    unsafe {
        let at = generic::p::<u64, 4>(columns, p, at);
        let at = generic::p::<u64, 1>(columns, p, at);
        generic::p::<u8, 1>(columns, p, at);
    }
}

pub fn finish_pq(columns: &[&[u8]], p: &mut [u8], q: &mut [u8], at: usize) {
    assert!(p.len() == q.len() && columns.iter().all(|column| column.len() == p.len()));
    // SAFETY: u64 and u8 need no feature; the lengths have just been checked.
    unsafe {
        let at = generic::pq::<u64, 4>(columns, p, q, at);
        let at = generic::pq::<u64, 1>(columns, p, q, at);
        generic::pq::<u8, 1>(columns, p, q, at);
    }
}

pub fn finish_xor(target: &mut [u8], data: &[u8], at: usize) {
    assert_eq!(target.len(), data.len());
    // SAFETY: u64 and u8 need no feature; the lengths have just been checked.
    unsafe {
        let at = generic::xor::<u64>(target, data, at);
        generic::xor::<u8>(target, data, at);
    }
}

pub fn finish_multiply_xor(target: &mut [u8], data: &[u8], factor: u8, at: usize) {
    assert_eq!(target.len(), data.len());
    // SAFETY: u64 and u8 need no feature; the lengths have just been checked.
    unsafe {
        let at = generic::multiply_xor::<u64>(target, data, factor, at);
        generic::multiply_xor::<u8>(target, data, factor, at);
    }
}

pub fn finish_multiply(target: &mut [u8], factor: u8, at: usize) {
    // SAFETY: u64 and u8 need no feature.
    unsafe {
        let at = generic::multiply::<u64>(target, factor, at);
        generic::multiply::<u8>(target, factor, at);
    }
}
