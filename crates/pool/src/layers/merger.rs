//! The progress of the running merge.

use std::cell::Cell;

use base::LayerId;

#[derive(Default)]
pub(crate) struct Merger {
    /// The layer that is being merged, and the next of its leaf pages.
    cursor: Cell<Option<(LayerId, u64)>>,
}

impl Merger {
    /// The next leaf page of a layer, if its merge has begun since the lane was opened.
    pub fn next_page(&self, from: LayerId) -> Option<u64> {
        self.cursor.get().filter(|&(layer, _)| layer == from).map(|(_, next)| next)
    }

    pub fn advance(&self, from: LayerId, next: u64) {
        self.cursor.set(Some((from, next)));
    }

    /// The merge has ended, or the next step is to be decided anew.
    pub fn forget(&self) {
        self.cursor.set(None);
    }
}
