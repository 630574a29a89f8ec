//! CRC-32C (Castagnoli), the checksum of every block, header, label and iSCSI digest.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C of `bytes` (RFC 7143 §13.1; check value of "123456789" is 0xE3069283).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Where a block is divided: not at a boundary of sectors or records.
const CUT: usize = 1360;

/// The checksum of a block of data: a non-linear combination of the CRC-32C of its two parts.
///
/// Plain CRC-32C is the same for all data that ends in its own CRC-32C, and it is linear: the CRC of the sum of three blocks is
/// the sum of their CRCs. Hosts store such blocks. A stale block, or one of another address, must not have the same checksum.
pub fn block_checksum(block: &[u8]) -> u32 {
    let (head, tail) = block.split_at(CUT.min(block.len()));
    crc32c(head).wrapping_mul(0x9E37_79B1).wrapping_add(crc32c(tail))
}

/// CRC-32C over several pieces in order. As small as its value: it is carried along where nothing is checked, too.
pub struct Crc32c(u32);

impl Crc32c {
    pub fn new() -> Crc32c {
        Crc32c(!0)
    }

    pub fn update(&mut self, bytes: &[u8]) {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(self.0));
        digest.update(bytes);
        self.0 = digest.get_state() as u32;
    }

    pub fn finish(&self) -> u32 {
        !self.0
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Crc32c::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bitwise(bytes: &[u8]) -> u32 {
        let mut crc = !0u32;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 };
            }
        }
        !crc
    }

    #[test]
    fn published_check_values() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA); // RFC 7143 appendix A.4
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
    }

    #[test]
    fn blocks_that_end_in_their_own_checksum_differ() {
        let block = |seed: u8| {
            let mut block: Vec<u8> =
                (0..4096).map(|at: usize| (at as u8).wrapping_mul(seed) ^ seed).collect();
            let crc = crc32c(&block[..4092]).to_le_bytes();
            block[4092..].copy_from_slice(&crc);
            block
        };
        let (a, b, c) = (block(3), block(5), block(7));
        assert_eq!(crc32c(&a), crc32c(&b));
        assert_ne!(block_checksum(&a), block_checksum(&b));
        let sum: Vec<u8> = (0..4096).map(|at| a[at] ^ b[at] ^ c[at]).collect();
        assert_eq!(crc32c(&sum), crc32c(&a));
        assert!([&a, &b, &c].iter().all(|block| block_checksum(block) != block_checksum(&sum)));
    }

    proptest! {
        #[test]
        fn equals_the_bitwise_definition(bytes in proptest::collection::vec(any::<u8>(), 0..5000), cut in 0usize..5000) {
            prop_assert_eq!(crc32c(&bytes), bitwise(&bytes));
            let cut = cut.min(bytes.len());
            let mut pieces = Crc32c::new();
            pieces.update(&bytes[..cut]);
            pieces.update(&bytes[cut..]);
            prop_assert_eq!(pieces.finish(), bitwise(&bytes));
        }
    }
}
