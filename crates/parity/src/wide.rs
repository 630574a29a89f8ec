//! The common part of all kernels with wide vectors.

/// A module with the kernel of one vector type: the generic loops, compiled for its features.
macro_rules! kernel {
    ($module:ident, $name:literal, $vector:ty, $features:literal) => {
        mod $module {
            use super::*;
            use crate::{generic, kernel};

            pub const KERNEL: Kernel = Kernel { name: $name, p, pq, xor, multiply_xor, multiply };

            fn p(columns: &[&[u8]], p: &mut [u8]) {
                #[target_feature(enable = $features)]
                unsafe fn wide(columns: &[&[u8]], p: &mut [u8]) -> usize {
                    // SAFETY: the features are enabled here; the lengths are the caller's promise.
                    unsafe { generic::p::<$vector, 4>(columns, p, 0) }
                }
                assert!(columns.iter().all(|column| column.len() == p.len()));
                // SAFETY: `available` has seen the features; the lengths have just been checked.
                let at = unsafe { wide(columns, p) };
                kernel::finish_p(columns, p, at);
            }

            fn pq(columns: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
                #[target_feature(enable = $features)]
                unsafe fn wide(columns: &[&[u8]], p: &mut [u8], q: &mut [u8]) -> usize {
                    // SAFETY: the features are enabled here; the lengths are the caller's promise.
                    unsafe { generic::pq::<$vector, 4>(columns, p, q, 0) }
                }
                assert!(p.len() == q.len() && columns.iter().all(|column| column.len() == p.len()));
                // SAFETY: `available` has seen the features; the lengths have just been checked.
                let at = unsafe { wide(columns, p, q) };
                kernel::finish_pq(columns, p, q, at);
            }

            fn xor(target: &mut [u8], data: &[u8]) {
                #[target_feature(enable = $features)]
                unsafe fn wide(target: &mut [u8], data: &[u8]) -> usize {
                    // SAFETY: the features are enabled here; the lengths are the caller's promise.
                    unsafe { generic::xor::<$vector>(target, data, 0) }
                }
                assert_eq!(target.len(), data.len());
                // SAFETY: `available` has seen the features; the lengths have just been checked.
                let at = unsafe { wide(target, data) };
                kernel::finish_xor(target, data, at);
            }

            fn multiply_xor(target: &mut [u8], data: &[u8], factor: u8) {
                #[target_feature(enable = $features)]
                unsafe fn wide(target: &mut [u8], data: &[u8], factor: u8) -> usize {
                    // SAFETY: the features are enabled here; the lengths are the caller's promise.
                    unsafe { generic::multiply_xor::<$vector>(target, data, factor, 0) }
                }
                assert_eq!(target.len(), data.len());
                // SAFETY: `available` has seen the features; the lengths have just been checked.
                let at = unsafe { wide(target, data, factor) };
                kernel::finish_multiply_xor(target, data, factor, at);
            }

            fn multiply(target: &mut [u8], factor: u8) {
                #[target_feature(enable = $features)]
                unsafe fn wide(target: &mut [u8], factor: u8) -> usize {
                    // SAFETY: the features are enabled here.
                    unsafe { generic::multiply::<$vector>(target, factor, 0) }
                }
                // SAFETY: `available` has seen the features.
                let at = unsafe { wide(target, factor) };
                kernel::finish_multiply(target, factor, at);
            }
        }
    };
}

pub(crate) use kernel;
