//! Which cell of a batch holds what. Pure arithmetic.
//!
//! A batch covers `rows` rows of its segment. Its columns have *roles*: the data roles 0..D, then the parity roles
//! D..W. From batch to batch, the assignment of roles to physical columns rotates. Copies of the header are in row 0 of
//! the first P+1 roles. Data blocks fill the data columns downwards, role by role. Cells after the last block are
//! padding: they count as zeros and are never written.
//!
//! ```text
//!        role 0   role 1   role 2   role 3   role 4 = P     D=4 P=1, 9 blocks, 3 rows
//! row 0  header   header   4        7        p
//! row 1  0        2        5        8        p
//! row 2  1        3        6        padding  p
//! ```

use std::ops::Range;

use crate::geometry::position::{Position, SegmentId};
use crate::geometry::protection::Shape;

/// What a cell of a batch holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    Header,
    /// The data block of this slot.
    Data(usize),
    /// Zeros that are not written.
    Padding,
    /// P (0) or Q (1).
    Parity(usize),
}

/// The arrangement of one batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    shape: Shape,
    rotation: usize,
    row: usize,
    rows: usize,
}

impl Layout {
    /// A batch of `rows` rows that begins at `row`.
    pub fn new(shape: Shape, segment: SegmentId, row: usize, rows: usize) -> Layout {
        assert!(rows > 0, "a batch has at least one row");
        Layout { shape, rotation: (segment.0 as usize + row) % shape.width(), row, rows }
    }

    /// The batch that a position names. `None` if no batch of this shape can be there.
    pub fn of_position(shape: Shape, position: Position) -> Option<Layout> {
        if position.rows() == 0 || position.slot() >= shape.blocks_in(position.rows()) {
            return None;
        }
        Some(Layout::new(shape, position.segment(), position.row(), position.rows()))
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The batch's first row within the segment.
    pub fn row(&self) -> usize {
        self.row
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The physical column that has a role.
    pub fn column(&self, role: usize) -> usize {
        assert!(role < self.shape.width());
        (role + self.rotation) % self.shape.width()
    }

    pub fn roles(&self) -> Range<usize> {
        0..self.shape.width()
    }

    pub fn is_parity(&self, role: usize) -> bool {
        role >= self.shape.data()
    }

    /// Whether row 0 of this role is a header copy.
    pub fn has_header(&self, role: usize) -> bool {
        role < self.shape.header_copies()
    }

    /// First slot of a data role's column; the role's slots end where the next role's begin.
    fn first_slot(&self, role: usize) -> usize {
        role * self.rows - role.min(self.shape.headers_in_data())
    }

    /// The slots in a data role's column, for a batch with `blocks` blocks.
    pub fn slots(&self, role: usize, blocks: usize) -> Range<usize> {
        assert!(!self.is_parity(role));
        self.first_slot(role).min(blocks)..self.first_slot(role + 1).min(blocks)
    }

    /// The role and the row (within the batch) of a slot.
    pub fn place(&self, slot: usize) -> (usize, usize) {
        let headers = self.shape.headers_in_data();
        // the columns with a header hold rows-1 slots, the others rows
        let short = headers * (self.rows - 1);
        let role = if slot < short { slot / (self.rows - 1) } else { headers + (slot - short) / self.rows };
        assert!(role < self.shape.data(), "slot {slot} is outside of the batch");
        (role, slot - self.first_slot(role) + usize::from(self.has_header(role)))
    }

    /// The content of the cell at `role`, `row` (within the batch), in a batch with `blocks` blocks.
    pub fn cell(&self, role: usize, row: usize, blocks: usize) -> Cell {
        assert!(row < self.rows);
        if row == 0 && self.has_header(role) {
            return Cell::Header;
        }
        if self.is_parity(role) {
            return Cell::Parity(role - self.shape.data());
        }
        let slot = self.first_slot(role) + row - usize::from(self.has_header(role));
        if slot < blocks { Cell::Data(slot) } else { Cell::Padding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(shape: Shape, blocks: usize) -> Vec<String> {
        let layout = Layout::new(shape, SegmentId(shape.width() as u32), 0, shape.rows_for(blocks));
        let cell = |role, row| match layout.cell(role, row, blocks) {
            Cell::Header => "h".to_owned(),
            Cell::Data(slot) => slot.to_string(),
            Cell::Padding => "-".to_owned(),
            Cell::Parity(0) => "P".to_owned(),
            Cell::Parity(_) => "Q".to_owned(),
        };
        (0..layout.rows())
            .map(|row| layout.roles().map(|role| cell(role, row)).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn as_drawn() {
        assert_eq!(drawn(Shape::new(6, 1), 1), ["h h 0 - - P"]);
        assert_eq!(drawn(Shape::new(5, 1), 9), ["h h 4 7 P", "0 2 5 8 P", "1 3 6 - P"]);
        assert_eq!(drawn(Shape::new(2, 1), 2), ["h h", "0 P", "1 P"]);
        assert_eq!(drawn(Shape::new(3, 2), 1), ["h h h", "0 P Q"]);
        assert_eq!(drawn(Shape::new(4, 2), 3), ["h h h Q", "0 2 P Q", "1 - P Q"]);
        assert_eq!(drawn(Shape::new(1, 0), 2), ["h", "0", "1"]);
        assert_eq!(drawn(Shape::new(3, 0), 2), ["h 0 1"]);
        assert_eq!(drawn(Shape::new(6, 1), 0), ["h h - - - P"]);
    }

    proptest! {
        #[test]
        fn every_slot_has_one_cell(width in 1u8..=16, parity in 0u8..=2, blocks in 0usize..=160, segment in 1u32..99, row in 0usize..99) {
            prop_assume!(width > parity);
            let shape = Shape::new(width, parity);
            let rows = shape.rows_for(blocks);
            prop_assert!(shape.blocks_in(rows) >= blocks && rows <= 255);
            prop_assert!(blocks == 0 || shape.blocks_in(rows - 1) < blocks);
            let layout = Layout::new(shape, SegmentId(segment), row, rows);
            let mut seen = vec![0; blocks];
            let mut headers = 0;
            for role in layout.roles() {
                for row in 0..rows {
                    match layout.cell(role, row, blocks) {
                        Cell::Data(slot) => {
                            seen[slot] += 1;
                            prop_assert_eq!(layout.place(slot), (role, row));
                            prop_assert!(layout.slots(role, blocks).contains(&slot));
                        }
                        Cell::Header => headers += 1,
                        _ => {}
                    }
                }
            }
            prop_assert!(seen.iter().all(|&count| count == 1));
            prop_assert_eq!(headers, shape.header_copies());
            let mut columns: Vec<_> = layout.roles().map(|role| layout.column(role)).collect();
            columns.sort_unstable();
            prop_assert_eq!(columns, layout.roles().collect::<Vec<_>>());
        }
    }
}
