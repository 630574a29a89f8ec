//! Which pages a checkpoint would write: the given ones, and every page above them.

use std::collections::BTreeSet;

use crate::format::page::PageKey;

/// A set of pages that contains every page above its members.
#[derive(Clone, Default, Debug)]
pub(crate) struct Exposure(BTreeSet<PageKey>);

impl Exposure {
    /// Adds a page and those above it, in a tree whose root is at level `height`.
    pub fn add(&mut self, mut key: PageKey, height: u8) {
        while self.0.insert(key) && key.level < height {
            key = key.parent();
        }
    }

    pub fn contains(&self, key: &PageKey) -> bool {
        self.0.contains(key)
    }

    /// The number of pages, including those above.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use base::LayerId;

    use super::*;

    #[test]
    fn counts_each_page_above_once() {
        let leaf = |index| PageKey { layer: LayerId(1), level: 1, index };
        let mut exposure = Exposure::default();
        exposure.add(leaf(0), 3);
        assert_eq!(exposure.len(), 3);
        exposure.add(leaf(1), 3);
        exposure.add(leaf(1), 3);
        assert_eq!(exposure.len(), 4);
        exposure.add(leaf(256), 3);
        assert_eq!(exposure.len(), 6);
        assert!(exposure.contains(&PageKey { layer: LayerId(1), level: 2, index: 1 }));
    }
}
