//! What a head has stored: a cell for each number of the log, and a root. A crash loses some of what is not durable.

use std::collections::{BTreeMap, BTreeSet};

use base::HeadId;
use base::prng::Prng;
use pair::Term;

/// An entry of the log: a version of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub term: Term,
    pub block: usize,
    pub version: u64,
}

/// Where a start begins to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    pub term: Term,
    /// Counts the roots of a term.
    pub sequence: u64,
    /// All cells up to this number count, whatever their term.
    pub upto: u64,
    pub by: HeadId,
    /// From this number on, the copy of the other head may lack something, or hold something else.
    pub other_lacks_from: Option<u64>,
}

#[derive(Debug)]
pub struct Copy {
    cells: BTreeMap<u64, Cell>,
    /// Written, and lost by a power cut.
    volatile: BTreeSet<u64>,
    root: Root,
    /// Written, not durable yet.
    next_root: Option<Root>,
}

impl Copy {
    pub fn new(root: Root) -> Copy {
        Copy { cells: BTreeMap::new(), volatile: BTreeSet::new(), root, next_root: None }
    }

    pub fn root(&self) -> Root {
        self.root
    }

    pub fn cell(&self, number: u64) -> Option<Cell> {
        self.cells.get(&number).copied()
    }

    pub fn has_durably(&self, number: u64, cell: Cell) -> bool {
        self.cell(number) == Some(cell) && !self.volatile.contains(&number)
    }

    pub fn is_durable(&self, number: u64) -> bool {
        self.cells.contains_key(&number) && !self.volatile.contains(&number)
    }

    pub fn write(&mut self, number: u64, cell: Cell) {
        if !self.has_durably(number, cell) {
            self.cells.insert(number, cell);
            self.volatile.insert(number);
        }
    }

    /// The drives have made this cell durable, if it is still what was written.
    pub fn settle(&mut self, number: u64, cell: Cell) {
        if self.cell(number) == Some(cell) {
            self.volatile.remove(&number);
        }
    }

    pub fn begin_root(&mut self, root: Root) {
        self.next_root = Some(root);
    }

    /// A root is durable; all that was written before is, too.
    pub fn settle_root(&mut self, root: Root) {
        if self.next_root == Some(root) {
            self.next_root = None;
        }
        if (root.term, root.sequence) > (self.root.term, self.root.sequence) {
            self.volatile.clear();
            self.root = root;
        }
    }

    /// The power is cut, or the program ends: what is not durable is there or not.
    pub fn crash(&mut self, prng: &mut Prng) {
        for number in std::mem::take(&mut self.volatile) {
            if prng.chance(500) {
                self.cells.remove(&number);
            }
        }
        if let Some(root) = self.next_root.take()
            && prng.chance(500)
            && self.cells.range(..=root.upto).count() as u64 == root.upto
        {
            self.settle_root(root);
        }
    }
}
