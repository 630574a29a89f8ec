//! Which columns of a segment may lack data that was written to them, although their drives are there. The causes are a
//! tolerated write error, corruption that a scrub has found, and writes that a drive missed while it was away.
//!
//! From this the lane knows what survives the next failure, and which drive the pool can do without. It is a bound: two
//! columns that lack different rows count as two.

/// A set of columns, and whether there may be others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Lacking {
    columns: u64,
    /// Something is missing at an unknown place: at most as many columns as there are parity columns.
    unknown: bool,
}

impl Lacking {
    pub const NOTHING: Lacking = Lacking { columns: 0, unknown: false };
    /// As recorded in a checkpoint, which has no room for details.
    pub const SOMEWHERE: Lacking = Lacking { columns: 0, unknown: true };

    pub fn is_nothing(self) -> bool {
        self == Lacking::NOTHING
    }

    pub fn is_unknown(self) -> bool {
        self.unknown
    }

    pub fn add(&mut self, column: usize) {
        self.columns |= 1 << column;
    }

    pub fn add_all(&mut self, other: Lacking) {
        self.columns |= other.columns;
        self.unknown |= other.unknown;
    }

    pub fn has(self, column: usize) -> bool {
        self.columns >> column & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_there() {
        let mut lacking = Lacking::NOTHING;
        assert!(lacking.is_nothing());
        lacking.add(63);
        lacking.add(0);
        assert!(lacking.has(0) && lacking.has(63) && !lacking.has(1) && !lacking.is_unknown());
        lacking.add_all(Lacking::SOMEWHERE);
        assert!(lacking.is_unknown() && lacking.has(63) && !lacking.is_nothing());
    }
}
