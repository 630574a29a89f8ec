//! CRC-32C (Castagnoli), the checksum of every block, header, label and iSCSI digest.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C of `bytes` (RFC 7143 §13.1; check value of "123456789" is 0xE3069283).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC-32C over several pieces in order.
pub struct Crc32c(Digest);

impl Crc32c {
    pub fn new() -> Crc32c {
        Crc32c(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> u32 {
        self.0.finalize() as u32
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
