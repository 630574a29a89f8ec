//! The plain definition, byte by byte. Every kernel is tested against it. It is slow and obviously correct.

use crate::field::{multiply, power_of_g};

pub fn p(columns: &[Vec<u8>], length: usize) -> Vec<u8> {
    (0..length).map(|at| columns.iter().fold(0, |sum, column| sum ^ column[at])).collect()
}

pub fn q(columns: &[Vec<u8>], length: usize) -> Vec<u8> {
    let term = |at: usize, index: usize| multiply(power_of_g(index), columns[index][at]);
    (0..length).map(|at| (0..columns.len()).fold(0, |sum, index| sum ^ term(at, index))).collect()
}
