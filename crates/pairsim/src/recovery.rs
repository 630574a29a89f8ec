//! What is read back from a copy: everything up to its root, and the tail of the root's term up to the first hole.

use std::collections::BTreeMap;

use base::HeadId;

use crate::copy::Copy;

#[derive(Debug)]
pub struct Recovered {
    /// The last number that counts.
    pub end: u64,
    /// Versions by block.
    pub blocks: BTreeMap<usize, u64>,
    /// From where on the other head's copy may differ.
    pub other_lacks_from: u64,
    /// A cell behind the end was ignored, because it belongs to another term.
    pub ignored_stale: bool,
    /// A cell behind a hole was cut off.
    pub cut_off: bool,
}

/// `durable_only` is for checkers: what would be read after a power cut at the worst moment.
pub fn recover(copy: &Copy, me: HeadId, durable_only: bool) -> Result<Recovered, String> {
    let root = copy.root();
    let counts = |number: u64| !durable_only || copy.is_durable(number);
    let mut blocks = BTreeMap::new();
    for number in 1..=root.upto {
        let Some(cell) = copy.cell(number).filter(|_| counts(number)) else {
            return Err(format!("a copy has no number {number} below its root {root:?}"));
        };
        blocks.insert(cell.block, cell.version);
    }
    let mut end = root.upto;
    while let Some(cell) = copy.cell(end + 1).filter(|cell| cell.term == root.term && counts(end + 1)) {
        end += 1;
        blocks.insert(cell.block, cell.version);
    }
    let recorded = root.other_lacks_from.filter(|_| root.by == me).unwrap_or(u64::MAX);
    Ok(Recovered {
        end,
        blocks,
        other_lacks_from: recorded.min(root.upto + 1),
        ignored_stale: copy.cell(end + 1).is_some(),
        cut_off: copy.cell(end + 1).is_none()
            && copy.cell(end + 2).is_some_and(|cell| cell.term == root.term),
    })
}
