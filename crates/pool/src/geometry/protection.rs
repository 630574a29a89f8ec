//! How a pool survives the loss of drives. One implementation covers all five protections: W columns, of which P hold
//! parity.
//!
//! A mirror is the case of one data column: its P (and Q) parity equal the data.

use std::fmt;
use std::str::FromStr;

use base::limits::WIDTH_MAX;

/// The protection of a pool; chosen when it is created.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protection {
    /// No redundancy: a lost drive loses data.
    Stripe,
    /// Two copies: one drive may be lost.
    Mirror2,
    /// Three copies: two drives may be lost.
    Mirror3,
    /// One parity column: one drive may be lost.
    Parity1,
    /// Two parity columns: two drives may be lost.
    Parity2,
}

/// A protection cannot have the requested width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WidthOutOfRange {
    pub min: u8,
    pub max: u8,
}

impl Protection {
    pub const ALL: [Protection; 5] = [
        Protection::Stripe,
        Protection::Mirror2,
        Protection::Mirror3,
        Protection::Parity1,
        Protection::Parity2,
    ];

    /// Parity columns, which is also the number of drives that may be lost.
    pub fn parity(self) -> u8 {
        match self {
            Protection::Stripe => 0,
            Protection::Mirror2 | Protection::Parity1 => 1,
            Protection::Mirror3 | Protection::Parity2 => 2,
        }
    }

    fn is_mirror(self) -> bool {
        matches!(self, Protection::Mirror2 | Protection::Mirror3)
    }

    /// The fewest columns a healthy segment has.
    pub fn width_min(self) -> u8 {
        match self {
            Protection::Stripe => 1,
            Protection::Mirror2 => 2,
            Protection::Mirror3 | Protection::Parity1 => 3,
            Protection::Parity2 => 4,
        }
    }

    /// The columns of a segment on `drives` drives: at most one per drive; `wanted` may request fewer. Without
    /// `wanted`: a mirror's copies, otherwise all drives up to 8.
    pub fn width(self, drives: usize, wanted: Option<u8>) -> Result<u8, WidthOutOfRange> {
        let min = self.width_min();
        let max = if self.is_mirror() { min } else { drives.min(WIDTH_MAX) as u8 };
        let width = wanted.unwrap_or(max.min(8));
        let fits = (min..=max).contains(&width) && usize::from(width) <= drives;
        if fits { Ok(width) } else { Err(WidthOutOfRange { min, max }) }
    }

    /// The shape of a new segment if `online` drives can take a column. It is narrower than the pool's width if drives
    /// are missing, and has absent columns if a narrower one would lose parity columns.
    pub fn segment_shape(self, width: u8, online: usize) -> Shape {
        let narrowest = self.parity() + 1;
        let columns = (online.min(usize::from(width)) as u8).max(narrowest);
        Shape::new(columns, self.parity())
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Protection::Stripe => 1,
            Protection::Mirror2 => 2,
            Protection::Mirror3 => 3,
            Protection::Parity1 => 4,
            Protection::Parity2 => 5,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Protection> {
        Protection::ALL.into_iter().find(|protection| protection.code() == code)
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protection::Stripe => "stripe",
            Protection::Mirror2 => "mirror-2",
            Protection::Mirror3 => "mirror-3",
            Protection::Parity1 => "parity-1",
            Protection::Parity2 => "parity-2",
        })
    }
}

/// Not the name of a protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownProtection;

impl fmt::Display for UnknownProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a protection is one of stripe, mirror-2, mirror-3, parity-1, parity-2")
    }
}

impl std::error::Error for UnknownProtection {}

impl FromStr for Protection {
    type Err = UnknownProtection;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Protection::ALL.into_iter().find(|protection| protection.to_string() == text).ok_or(UnknownProtection)
    }
}

/// Columns of one segment: `width` in all, `parity` of them redundant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    width: u8,
    parity: u8,
}

impl Shape {
    pub fn new(width: u8, parity: u8) -> Shape {
        assert!(
            parity <= 2 && width > parity && usize::from(width) <= WIDTH_MAX,
            "no such shape: {width}+{parity}"
        );
        Shape { width, parity }
    }

    pub fn width(self) -> usize {
        usize::from(self.width)
    }

    pub fn parity(self) -> usize {
        usize::from(self.parity)
    }

    pub fn data(self) -> usize {
        usize::from(self.width - self.parity)
    }

    /// Copies of a batch's header: one more than drives may fail.
    pub fn header_copies(self) -> usize {
        self.parity() + 1
    }

    /// How many of the header copies are in data columns; the others are in parity columns, in place of the parity of a
    /// row without data.
    pub fn headers_in_data(self) -> usize {
        self.header_copies().min(self.data())
    }

    /// Rows that a batch of `blocks` data blocks takes.
    pub fn rows_for(self, blocks: usize) -> usize {
        (blocks + self.headers_in_data()).div_ceil(self.data())
    }

    /// Data blocks that fit a batch of `rows` rows.
    pub fn blocks_in(self, rows: usize) -> usize {
        rows * self.data() - self.headers_in_data().min(rows * self.data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_codes_are_stable() {
        for (protection, name, code) in [
            (Protection::Stripe, "stripe", 1),
            (Protection::Mirror2, "mirror-2", 2),
            (Protection::Mirror3, "mirror-3", 3),
            (Protection::Parity1, "parity-1", 4),
            (Protection::Parity2, "parity-2", 5),
        ] {
            assert_eq!(protection.to_string(), name);
            assert_eq!(name.parse(), Ok(protection));
            assert_eq!(Protection::from_code(code), Some(protection));
        }
        assert!("raid5".parse::<Protection>().is_err());
        assert_eq!(Protection::from_code(9), None);
    }

    #[test]
    fn widths() {
        assert_eq!(Protection::Parity1.width(6, None), Ok(6));
        assert_eq!(Protection::Parity2.width(24, None), Ok(8));
        assert_eq!(Protection::Parity2.width(24, Some(12)), Ok(12));
        assert_eq!(Protection::Mirror2.width(6, None), Ok(2));
        assert_eq!(Protection::Parity1.width(2, None), Err(WidthOutOfRange { min: 3, max: 2 }));
        assert_eq!(Protection::Mirror3.width(6, Some(2)), Err(WidthOutOfRange { min: 3, max: 3 }));
        assert_eq!(Protection::Stripe.width(1, None), Ok(1));
    }

    #[test]
    fn segments_get_narrower_when_drives_are_missing_but_keep_their_parity() {
        assert_eq!(Protection::Parity1.segment_shape(6, 5), Shape::new(5, 1));
        assert_eq!(Protection::Parity2.segment_shape(4, 2), Shape::new(3, 2));
        assert_eq!(Protection::Mirror2.segment_shape(2, 1), Shape::new(2, 1));
        assert_eq!(Protection::Stripe.segment_shape(4, 3), Shape::new(3, 0));
    }
}
