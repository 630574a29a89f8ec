//! The record of a mirrored drive, in the first 16 KiB of the drive, which pools do not use. It says in which of the drive's
//! regions the two copies may differ.
//!
//! ```text
//!   two slots of 8 KiB, A at 0 and B at 8 KiB; a new record goes to the slot that does not hold the newest one
//!     0  magic `TNGMIRR\x01`     8  version (2), 0 (2)    12  CRC-32C of the slot (4)
//!    16  generation (8)         24  synchrony (16)        40  bytes of a region (8)     48  regions (4), 0 (4)
//!    56  bytes that are mirrored, behind the record (8)    64  id of the twins (16)
//!    80  one bit for each region, the lowest bit first
//! ```

use base::crc32c;

use crate::bits::Bits;

pub const SLOT_BYTES: usize = 8 << 10;
/// Both slots, at the beginning of the drive.
pub const RECORD_BYTES: usize = 2 * SLOT_BYTES;
const HEADER_BYTES: usize = 80;
/// Regions for which a slot has room.
pub const REGIONS_MAX: u32 = ((SLOT_BYTES - HEADER_BYTES) * 8) as u32;
const MAGIC: &[u8; 8] = b"TNGMIRR\x01";
const VERSION: u16 = 1;

/// A time in which both copies were in sync. Random; both sides have it. Where the two sides name different ones, nothing is
/// known about what they have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Synchrony(pub u128);

/// Names a drive and its twin. Random, given when they became twins; both have it in their records, so that each is found, whatever its
/// path is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TwinId(pub u128);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub twin: TwinId,
    pub generation: u64,
    pub synchrony: Synchrony,
    pub region_bytes: u64,
    /// How much behind the record is mirrored: the same on both drives, of which one may be longer.
    pub mirrored_bytes: u64,
    /// Regions in which the copies may differ.
    pub marked: Bits,
}

impl Record {
    /// Where a record of this generation is written.
    pub fn offset_bytes(&self) -> u64 {
        (self.generation % 2) * SLOT_BYTES as u64
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut slot = vec![0; SLOT_BYTES];
        slot[..8].copy_from_slice(MAGIC);
        slot[8..10].copy_from_slice(&VERSION.to_le_bytes());
        slot[16..24].copy_from_slice(&self.generation.to_le_bytes());
        slot[24..40].copy_from_slice(&self.synchrony.0.to_le_bytes());
        slot[40..48].copy_from_slice(&self.region_bytes.to_le_bytes());
        slot[48..52].copy_from_slice(&self.marked.end().to_le_bytes());
        slot[56..64].copy_from_slice(&self.mirrored_bytes.to_le_bytes());
        slot[64..80].copy_from_slice(&self.twin.0.to_le_bytes());
        let marks = self.marked.to_bytes();
        slot[HEADER_BYTES..HEADER_BYTES + marks.len()].copy_from_slice(&marks);
        let checksum = crc32c(&slot);
        slot[12..16].copy_from_slice(&checksum.to_le_bytes());
        slot
    }

    /// The record in a slot. `None` if there is none, or none that makes sense.
    pub fn decode(slot: &[u8]) -> Option<Record> {
        let slot: &[u8; SLOT_BYTES] = slot.try_into().ok()?;
        let mut unsigned = *slot;
        unsigned[12..16].fill(0);
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| slot[at + byte]));
        let is_whole = number(12) as u32 == crc32c(&unsigned);
        if slot[..8] != *MAGIC || !is_whole || u16::from_le_bytes([slot[8], slot[9]]) != VERSION {
            return None;
        }
        let regions = number(48) as u32;
        if regions == 0 || regions > REGIONS_MAX {
            return None;
        }
        let marks = &slot[HEADER_BYTES..HEADER_BYTES + regions.div_ceil(8) as usize];
        let id = |at: usize| u128::from(number(at + 8)) << 64 | u128::from(number(at));
        Some(Record {
            twin: TwinId(id(64)),
            generation: number(16),
            synchrony: Synchrony(id(24)),
            region_bytes: number(40),
            mirrored_bytes: number(56),
            marked: Bits::from_bytes(regions, marks)?,
        })
    }

    /// The newest record of a drive, from its first 16 KiB.
    pub fn newest(slots: &[u8]) -> Option<Record> {
        let records = slots.chunks(SLOT_BYTES).take(2).filter_map(Record::decode);
        records.max_by_key(|record| record.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_a_changed_one_does_not() {
        let mut marked = Bits::empty(REGIONS_MAX);
        [0, 77, REGIONS_MAX - 1].into_iter().for_each(|region| marked.insert(region));
        let record = Record {
            twin: TwinId(4),
            generation: 7,
            synchrony: Synchrony(1 << 100 | 5),
            region_bytes: 4 << 20,
            mirrored_bytes: 9 << 20,
            marked,
        };
        let slot = record.encode();
        assert_eq!(Record::decode(&slot).as_ref(), Some(&record));
        for at in [0, 9, 13, 20, 41, 50, 64, SLOT_BYTES - 1] {
            let mut changed = slot.clone();
            changed[at] ^= 16;
            assert_eq!(Record::decode(&changed), None, "byte {at}");
        }
        let older = Record { generation: 6, ..record.clone() };
        let slots = [older.encode(), slot].concat();
        assert_eq!(Record::newest(&slots), Some(record));
        assert_eq!(Record::newest(&vec![0; 2 * SLOT_BYTES]), None);
    }

    #[test]
    fn a_record_that_is_sealed_but_makes_no_sense_is_none() {
        let mut slot = Record {
            twin: TwinId(4),
            generation: 1,
            synchrony: Synchrony(1),
            region_bytes: 4 << 20,
            mirrored_bytes: 9 << 20,
            marked: Bits::full(3),
        }
        .encode();
        slot[HEADER_BYTES] = 0xFF;
        slot[12..16].fill(0);
        let checksum = crc32c(&slot);
        slot[12..16].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Record::decode(&slot), None, "a mark behind the last region");
    }
}
