//! References: map entries that name a block of another, frozen layer, possibly in another lane. With them, copies
//! inside a pool write no data. See `docs/design/0007-references.md`.
//!
//! ```text
//!   volume ── read ──► lane 0: data, and "blocks 4..9 are elsewhere: (H, v)"
//!          ── read of H ──► the lane of v: data                             the volume joins the parts
//! ```
//!
//! A lane keeps and counts references. It never follows one, because the named block may be in another lane. What
//! always holds: a layer that a reference names is frozen, and nobody drops it.

use std::collections::BTreeMap;

use base::{BLOCK_BYTES, LayerId};
use block::Payload;
use bytes::Bytes;

use crate::format::page::MapEntry;
use crate::geometry::reference::Reference;

/// Blocks of a request that references name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// Index of the first of them within the request.
    pub first: usize,
    pub blocks: usize,
    /// The first referred block; the others follow it.
    pub to: Reference,
}

/// The content of one block that a reference names.
#[derive(Clone, Debug)]
pub struct ReferencedContent {
    pub reference: Reference,
    pub content: Bytes,
}

/// Which layer decides the content of a layer's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOwner {
    /// A layer above the given one.
    Above,
    /// The given layer, or one below it.
    Below,
    /// Another layer, to which the first of the blocks refers; the others follow it.
    Elsewhere(Reference),
    /// None: the blocks are not mapped.
    Nobody,
}

/// Consecutive blocks whose content the same kind of layer decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnedRun {
    pub blocks: u64,
    pub owner: BlockOwner,
}

impl OwnedRun {
    pub(crate) fn add(runs: &mut Vec<OwnedRun>, owner: BlockOwner) {
        match runs.last_mut() {
            Some(last) if last.joins(owner) => last.blocks += 1,
            _ => runs.push(OwnedRun { blocks: 1, owner }),
        }
    }

    fn joins(&self, next: BlockOwner) -> bool {
        match (self.owner, next) {
            (BlockOwner::Elsewhere(first), BlockOwner::Elsewhere(next)) => first.plus(self.blocks) == next,
            (owner, next) => owner == next,
        }
    }
}

/// How many entries of a lane's map refer to each layer, by the layer's name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct References {
    counts: BTreeMap<LayerId, u64>,
    /// A count has turned out to be wrong.
    pub doubted: bool,
}

impl References {
    pub fn restore(counts: &[(LayerId, u64)]) -> References {
        References { counts: counts.iter().copied().collect(), doubted: false }
    }

    /// An entry with this content was added to the map.
    pub fn come(&mut self, entry: MapEntry) {
        if let Some(to) = entry.reference() {
            let count = self.counts.entry(to.layer).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// An entry with this content was removed from the map.
    pub fn go(&mut self, entry: MapEntry) {
        let Some(to) = entry.reference() else { return };
        let Some(count) = self.counts.get_mut(&to.layer) else {
            // the count in a table was too low
            self.doubted = true;
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&to.layer);
        }
    }

    pub fn all(&self) -> &BTreeMap<LayerId, u64> {
        &self.counts
    }

    /// Adopts the new counts.
    pub fn correct(&mut self, counts: BTreeMap<LayerId, u64>) {
        *self = References { counts, doubted: false };
    }

    pub fn counts(&self) -> Vec<(LayerId, u64)> {
        self.counts.iter().map(|(&layer, &entries)| (layer, entries)).collect()
    }

    /// The number of entries that are references.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, entries| sum.saturating_add(*entries))
    }

    /// The counts, with one more for each of these.
    pub fn with(&self, more: impl Iterator<Item = LayerId>) -> Vec<(LayerId, u64)> {
        let mut all = self.clone();
        more.for_each(|layer| *all.counts.entry(layer).or_default() += 1);
        all.counts()
    }
}

/// The blocks of a range that are references.
pub(crate) fn elsewhere(entries: &[MapEntry]) -> Vec<Elsewhere> {
    let mut parts: Vec<Elsewhere> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let Some(to) = entry.reference() else { continue };
        match parts.last_mut() {
            Some(last) if last.first + last.blocks == index && last.to.plus(last.blocks as u64) == to => {
                last.blocks += 1;
            }
            _ => parts.push(Elsewhere { first: index, blocks: 1, to }),
        }
    }
    parts
}

/// Replaces blocks by others; `parts` are in order, each with the index of its first block.
pub(crate) fn filled(pieces: Payload, parts: Vec<(usize, Payload)>) -> Payload {
    let mut whole = Payload::new();
    let mut left = pieces.into_iter();
    let mut piece = Bytes::new();
    let mut at = 0;
    // advances by this many bytes, and keeps or drops them
    let mut pass = |bytes: usize, mut kept: Option<&mut Payload>| {
        let mut bytes = bytes;
        while bytes > 0 {
            if piece.is_empty() {
                piece = left.next().expect("parts are within what was read");
            }
            let some = piece.split_to(bytes.min(piece.len()));
            bytes -= some.len();
            if let Some(kept) = kept.as_deref_mut() {
                kept.push(some);
            }
        }
    };
    for (first, content) in parts {
        let length = content.len();
        pass(first * BLOCK_BYTES - at, Some(&mut whole));
        pass(length, None);
        content.into_iter().for_each(|piece| whole.push(piece));
        at = first * BLOCK_BYTES + length;
    }
    whole.push(piece);
    left.for_each(|piece| whole.push(piece));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: LayerId = LayerId(9);

    #[test]
    fn parts_are_put_in_where_they_belong() {
        let block = |byte: u8| Bytes::from(vec![byte; BLOCK_BYTES]);
        let piece = |bytes: &[u8]| bytes.iter().flat_map(|&byte| block(byte)).collect::<Bytes>();
        let firsts = |pieces: Payload| {
            let whole = pieces.to_vec();
            whole.chunks(BLOCK_BYTES).map(|block| block[0]).collect::<Vec<u8>>()
        };
        let pieces = || Payload::from(vec![piece(&[0, 1]), piece(&[2]), piece(&[3, 4, 5])]);
        assert_eq!(firsts(filled(pieces(), vec![])), [0, 1, 2, 3, 4, 5]);
        let parts = vec![(1, vec![piece(&[11, 12]), block(13)].into()), (5, block(15).into())];
        assert_eq!(firsts(filled(pieces(), parts)), [0, 11, 12, 13, 4, 15]);
        assert_eq!(firsts(filled(pieces(), vec![(0, piece(&[9; 6]).into())])), [9; 6]);
    }

    #[test]
    fn counts_come_and_go() {
        let mut references = References::default();
        let entry = MapEntry::referring(Reference { layer: H, block: 3 });
        references.come(entry);
        references.come(entry);
        references.come(MapEntry::ZERO);
        assert_eq!(references.counts(), [(H, 2)]);
        assert_eq!(References::restore(&references.counts()), references);
        references.go(entry);
        references.go(MapEntry::ABSENT);
        references.go(entry);
        assert_eq!(references.counts(), []);
    }

    #[test]
    fn what_follows_each_other_is_one_run() {
        let to = Reference { layer: H, block: 8 };
        let mut runs = Vec::new();
        let owners = [
            BlockOwner::Below,
            BlockOwner::Below,
            BlockOwner::Elsewhere(to),
            BlockOwner::Elsewhere(to.plus(1)),
        ];
        owners
            .into_iter()
            .chain([BlockOwner::Elsewhere(to)])
            .for_each(|owner| OwnedRun::add(&mut runs, owner));
        let expected =
            [(2, BlockOwner::Below), (2, BlockOwner::Elsewhere(to)), (1, BlockOwner::Elsewhere(to))];
        assert_eq!(runs, expected.map(|(blocks, owner)| OwnedRun { blocks, owner }));
    }
}
