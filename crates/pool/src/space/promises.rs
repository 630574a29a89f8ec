//! Space that is reserved for writes that are not committed yet.

use std::cell::Cell;

#[derive(Default)]
pub(crate) struct Promises(Cell<u64>);

impl Promises {
    pub fn blocks(&self) -> u64 {
        self.0.get()
    }

    pub fn give(&self, blocks: u64) {
        self.0.set(self.0.get() + blocks);
    }

    /// The blocks are committed, or abandoned.
    pub fn take_back(&self, blocks: u64) {
        let promised = self.0.get().checked_sub(blocks);
        self.0.set(promised.expect("no more is taken back than was promised"));
    }
}
