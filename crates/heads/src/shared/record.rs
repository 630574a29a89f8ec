//! What makes a drive a shared one: a record in its first 16 KiB, which pools do not use. It is written once.
//!
//! ```text
//!   0  magic `TNGSHAR\x01`     8  version (2), 0 (2)    12  CRC-32C of the block (4)
//!  16  array id (16)          32  id of the drive (16), random: both heads find it by this, whatever its path is
//! ```

use base::{ArrayId, BLOCK_BYTES, crc32c};
use mirror::{RECORD_BYTES, TwinId};

const MAGIC: &[u8; 8] = b"TNGSHAR\x01";
const VERSION: u16 = 1;

/// See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedRecord {
    pub array: ArrayId,
    pub drive: TwinId,
}

impl SharedRecord {
    /// All that the first 16 KiB hold then.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_BYTES];
        let block = &mut bytes[..BLOCK_BYTES];
        block[..8].copy_from_slice(MAGIC);
        block[8..10].copy_from_slice(&VERSION.to_le_bytes());
        block[16..32].copy_from_slice(&self.array.0.to_le_bytes());
        block[32..48].copy_from_slice(&self.drive.0.to_le_bytes());
        let checksum = crc32c(block);
        block[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Of a drive that begins so.
    pub fn decode(start: &[u8]) -> Option<SharedRecord> {
        let block: &[u8; BLOCK_BYTES] = start.get(..BLOCK_BYTES)?.try_into().ok()?;
        let mut unsigned = *block;
        unsigned[12..16].fill(0);
        let checksum = u32::from_le_bytes(std::array::from_fn(|byte| block[12 + byte]));
        let version = u16::from_le_bytes([block[8], block[9]]);
        let number = |at: usize| u128::from_le_bytes(std::array::from_fn(|byte| block[at + byte]));
        (block[..8] == *MAGIC && checksum == crc32c(&unsigned) && version == VERSION)
            .then(|| SharedRecord { array: ArrayId(number(16)), drive: TwinId(number(32)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_a_changed_one_does_not() {
        let record = SharedRecord { array: ArrayId(7), drive: TwinId(1 << 100 | 9) };
        let bytes = record.encode();
        assert_eq!(SharedRecord::decode(&bytes), Some(record));
        for at in [0, 8, 13, 20, 40, 100, BLOCK_BYTES - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert_eq!(SharedRecord::decode(&changed), None, "byte {at}");
        }
        assert_eq!(SharedRecord::decode(&[0; BLOCK_BYTES]), None);
        assert_eq!(SharedRecord::decode(&[]), None);
    }
}
