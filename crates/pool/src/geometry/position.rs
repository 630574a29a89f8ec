//! The position of a block in the log.
//!
//! ```text
//!  63            32 31          16 15      8 7       0
//! | segment id     | batch row    | rows    | slot    |
//!
//!  63                   24 23   16 15      8 7       0
//! | block               | 1       | 0       | 0       |   a reference: the block is elsewhere, see `references.rs`
//! ```
//!
//! A position names a batch (segment, first row, number of rows) and a slot in it. With the segment's columns, this is
//! enough to find the cell. While a pool is open, no segment id is used twice, so a position always names the same
//! bytes. A conditional entry can therefore rely on the check "the map still points there".

use std::fmt;

/// A segment of one lane. Ids are counted up from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId(pub u32);

/// A block's position in the log, a reference, or one of three special values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// Limit of the block numbers that a reference can name.
pub const REFERRED_MAX: u64 = 1 << 40;
const REFERS: u64 = 1 << 16;
const ROWS: u64 = 0xFF << 8;

impl Position {
    /// For a block whose segment is gone; only in memory. No segment has this id.
    pub(crate) const LOST: Position = Position((u32::MAX as u64) << 32 | 1 << 8);
    /// Not mapped in this layer: the layer below decides.
    pub const ABSENT: Position = Position(0);
    /// Unmapped in this layer: reads as zeros, whatever the layers below say.
    pub const ZERO: Position = Position(1);
    /// In the layer of forwards: a layer was merged into another; the checksum field holds the other's id.
    pub const FORWARD: Position = Position(2);

    pub fn new(segment: SegmentId, row: usize, rows: usize, slot: usize) -> Position {
        assert!(segment.0 > 0 && row <= 0xFFFF && (1..=0xFF).contains(&rows) && slot <= 0xFF);
        Position(u64::from(segment.0) << 32 | (row as u64) << 16 | (rows as u64) << 8 | slot as u64)
    }

    /// A reference to this block of another layer; the checksum field holds the layer.
    pub fn referring(block: u64) -> Position {
        assert!(block < REFERRED_MAX);
        Position(block << 24 | REFERS)
    }

    /// Whether this is a position in the log.
    pub fn is_stored(self) -> bool {
        self.0 & ROWS != 0 && self.0 >> 32 != 0
    }

    /// The block that this reference names, if this is a reference.
    pub fn referred(self) -> Option<u64> {
        (self.0 & 0x00FF_FFFF == REFERS).then_some(self.0 >> 24)
    }

    /// Whether the block has content: a position, or a reference.
    pub fn is_mapped(self) -> bool {
        self.is_stored() || self.referred().is_some()
    }

    pub fn segment(self) -> SegmentId {
        SegmentId((self.0 >> 32) as u32)
    }

    /// The first row of the batch.
    pub fn row(self) -> usize {
        (self.0 >> 16 & 0xFFFF) as usize
    }

    /// Rows of the batch. Zero only in positions that were read from damaged memory.
    pub fn rows(self) -> usize {
        (self.0 >> 8 & 0xFF) as usize
    }

    /// Which of the batch's data blocks.
    pub fn slot(self) -> usize {
        (self.0 & 0xFF) as usize
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Position::ABSENT => f.write_str("absent"),
            Position::ZERO => f.write_str("zero"),
            Position::FORWARD => f.write_str("forward"),
            _ if self.referred().is_some() => write!(f, "elsewhere, {}", self.0 >> 24),
            _ => write!(f, "{}:{}+{}#{}", self.segment().0, self.row(), self.rows(), self.slot()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks() {
        let position = Position::new(SegmentId(u32::MAX), 65535, 255, 159);
        assert_eq!(
            (position.segment(), position.row(), position.rows(), position.slot()),
            (SegmentId(u32::MAX), 65535, 255, 159)
        );
        assert!(position.is_stored());
        assert!(position.is_mapped() && position.referred().is_none());
        assert!(!Position::ABSENT.is_stored() && !Position::ZERO.is_stored());
        for block in [0, 1, 255, 256, REFERRED_MAX - 1] {
            let reference = Position::referring(block);
            assert_eq!((reference.referred(), reference.is_stored()), (Some(block), false));
            assert!(reference.is_mapped());
        }
        for silent in [Position::ABSENT, Position::ZERO, Position::FORWARD] {
            assert!(!silent.is_mapped());
        }
        assert_eq!(format!("{:?}", Position::new(SegmentId(3), 4, 5, 6)), "3:4+5#6");
    }
}
