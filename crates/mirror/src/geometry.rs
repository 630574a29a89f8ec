//! How a drive is divided: into regions, of which the record on the drive has one bit each, and these into pieces, which are
//! copied one by one.

use std::ops::RangeInclusive;

use crate::bits::Bits;
use crate::record::REGIONS_MAX;

/// Bytes of a piece, the unit of copying. A power of two.
pub const PIECE_BYTES: u64 = 256 << 10;
/// The smallest region.
const REGION_BYTES_MIN: u64 = 4 << 20;

/// See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    drive_bytes: u64,
    region_bytes: u64,
    piece_bytes: u64,
}

impl Geometry {
    /// Of a drive of this size: the smallest regions for which the record has room, at least 4 MiB.
    pub fn of(drive_bytes: u64) -> Geometry {
        let enough = drive_bytes.div_ceil(u64::from(REGIONS_MAX)).next_power_of_two();
        Geometry::new(drive_bytes, enough.max(REGION_BYTES_MIN), PIECE_BYTES)
    }

    pub(crate) fn new(drive_bytes: u64, region_bytes: u64, piece_bytes: u64) -> Geometry {
        assert!(drive_bytes > 0 && piece_bytes.is_power_of_two() && region_bytes.is_multiple_of(piece_bytes));
        let geometry = Geometry { drive_bytes, region_bytes, piece_bytes };
        assert!(geometry.regions() <= REGIONS_MAX, "the record has room for all regions");
        geometry
    }

    pub fn drive_bytes(&self) -> u64 {
        self.drive_bytes
    }

    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    pub fn regions(&self) -> u32 {
        self.drive_bytes.div_ceil(self.region_bytes) as u32
    }

    pub fn pieces(&self) -> u32 {
        self.drive_bytes.div_ceil(self.piece_bytes) as u32
    }

    /// Where a piece begins, and how long it is: the last one may be shorter.
    pub fn extent(&self, piece: u32) -> (u64, u64) {
        let offset = u64::from(piece) * self.piece_bytes;
        (offset, self.piece_bytes.min(self.drive_bytes - offset))
    }

    /// Bytes of these pieces.
    pub fn bytes_of(&self, pieces: &Bits) -> u64 {
        let last = self.pieces() - 1;
        let missing = if pieces.has(last) { self.piece_bytes - self.extent(last).1 } else { 0 };
        u64::from(pieces.len()) * self.piece_bytes - missing
    }

    pub fn pieces_of(&self, offset_bytes: u64, length_bytes: u64) -> RangeInclusive<u32> {
        self.divided(self.piece_bytes, offset_bytes, length_bytes)
    }

    pub fn regions_of(&self, offset_bytes: u64, length_bytes: u64) -> RangeInclusive<u32> {
        self.divided(self.region_bytes, offset_bytes, length_bytes)
    }

    pub fn pieces_of_region(&self, region: u32) -> RangeInclusive<u32> {
        let offset = u64::from(region) * self.region_bytes;
        self.pieces_of(offset, self.region_bytes.min(self.drive_bytes - offset))
    }

    fn divided(&self, by: u64, offset_bytes: u64, length_bytes: u64) -> RangeInclusive<u32> {
        assert!(length_bytes > 0 && offset_bytes + length_bytes <= self.drive_bytes, "within the drive");
        (offset_bytes / by) as u32..=((offset_bytes + length_bytes - 1) / by) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_drives_have_large_regions() {
        let region = |bytes| Geometry::of(bytes).region_bytes();
        assert_eq!(region(64 << 20), 4 << 20);
        assert_eq!(region(1 << 40), 32 << 20);
        assert_eq!(region(30 << 40), 512 << 20);
        let odd = Geometry::of((1 << 40) + 4096);
        assert_eq!(odd.extent(odd.pieces() - 1), (1 << 40, 4096));
        let mut pieces = Bits::empty(odd.pieces());
        [0, 9, odd.pieces() - 1].into_iter().for_each(|piece| pieces.insert(piece));
        assert_eq!(odd.bytes_of(&pieces), 2 * PIECE_BYTES + 4096);
        assert_eq!(odd.pieces_of_region(odd.regions() - 1), odd.pieces() - 1..=odd.pieces() - 1);
    }
}
