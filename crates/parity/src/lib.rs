//! P and Q: the parity columns of a row, and the reconstruction of lost columns.
//!
//! ```text
//! P = D0 ^ D1 ^ ... ^ Dn-1                                       any one column is lost: XOR of the others
//! Q = g^0 D0 ^ g^1 D1 ^ ... ^ g^(n-1) Dn-1      in GF(2^8)       any two columns are lost: two equations
//! ```
//!
//! The field is GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11D) with g = 2: the usual RAID-6 code.
//! These bytes are on disk, so field and generator never change.
//!
//! What always holds:
//! - with one data column, P and Q are copies of it: this is how mirrors work;
//! - trailing data columns of zeros change neither P nor Q, so they can be omitted;
//! - every kernel returns exactly the bytes of the plain oracle (`oracle`); the tests check this.
//!
//! The crate also has streaming stores and prefetching (`stream`), because they need processor instructions, too.
//!
//! This crate only computes. It does no I/O, keeps no state except the choice of a kernel, and does not verify: wrong
//! input gives wrong output, and checksums are the caller's task. It is one of the two crates with `unsafe`:
//! for SIMD instructions, behind functions that assert the lengths.

#[cfg(target_arch = "aarch64")]
mod arm;
mod field;
mod generic;
mod kernel;
#[cfg(test)]
mod oracle;
mod reconstruct;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod wide;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use reconstruct::{Column, TooManyLost, reconstruct};
pub use stream::{bring_closer, copy_past_caches};

use kernel::Kernel;

/// Data columns that P and Q can tell apart: the powers of g repeat after this many.
pub const DATA_COLUMNS_MAX: usize = 255;

/// P over the data columns: overwrites `p`. No column at all gives zeros.
///
/// Panics where a column is not as long as `p`.
pub fn compute_p(columns: &[&[u8]], p: &mut [u8]) {
    check_columns(columns, p.len());
    (Kernel::chosen().p)(columns, p);
}

/// P and Q over the data columns, in one pass: overwrites `p` and `q`. Column i has the coefficient g^i.
///
/// Panics where a column or `q` is not as long as `p`.
pub fn compute_pq(columns: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    check_columns(columns, p.len());
    assert_eq!(p.len(), q.len(), "P and Q are equally long");
    (Kernel::chosen().pq)(columns, p, q);
}

/// Folds one more data column into P, which started as zeros. Twice the same column takes it out again.
///
/// Panics where the lengths differ.
pub fn accumulate_p(p: &mut [u8], data: &[u8]) {
    assert_eq!(p.len(), data.len(), "columns are equally long");
    (Kernel::chosen().xor)(p, data);
}

/// Folds data column `index` into Q, which started as zeros: the coefficient is g^index. Twice takes it out again.
///
/// Panics where the lengths differ or there cannot be such a column.
pub fn accumulate_q(q: &mut [u8], data: &[u8], index: usize) {
    assert_eq!(q.len(), data.len(), "columns are equally long");
    assert!(index < DATA_COLUMNS_MAX, "no data column {index}");
    (Kernel::chosen().multiply_xor)(q, data, field::power_of_g(index));
}

/// The kernel that this machine runs, for people to read: "avx512-gfni", "avx512", "avx2" or "portable".
pub fn kernel_name() -> &'static str {
    Kernel::chosen().name
}

fn check_columns(columns: &[&[u8]], length: usize) {
    assert!(columns.len() <= DATA_COLUMNS_MAX, "{} data columns", columns.len());
    assert!(columns.iter().all(|column| column.len() == length), "columns are equally long");
}
