//! The layers of a lane: how they are stacked, their names, and which ones nobody needs any more.
//!
//! ```text
//!   volume ──► 9     clone ──► 12          5 was dropped. It has two children, so it stays, hidden. With one child it
//!              │               │           would be merged with it; without children it would be emptied.
//!              └──► 5 ◄────────┘
//! ```
//!
//! Only bookkeeping, in memory; `merge.rs` merges layers. What always holds: `children` counts the layers directly
//! above a layer that are visible or have a visible layer above them; a name belongs to one layer; a layer below others
//! is not written.

use base::{LayerId, Sequence};

use crate::format::page::MapEntry;
use crate::layers::layer::Layer;
use crate::map::tree::Map;

impl Map {
    pub fn add_layer(&mut self, id: LayerId, parent: Option<LayerId>, height: u8) {
        if self.layers.contains_key(&id) {
            return;
        }
        // a batch from a drive may contain anything: a layer is never above itself
        let below = |&id: &LayerId| self.layers.get(&id).and_then(|layer| layer.parent);
        let mut chain = std::iter::successors(parent, below).take(self.layers.len() + 1);
        let parent = parent.filter(|_| chain.all(|below| below != id));
        self.layers.insert(id, Layer::new(id, parent, height));
        if let Some(parent) = parent.and_then(|parent| self.layers.get_mut(&parent)) {
            (parent.children, parent.frozen) = (parent.children + 1, false);
        }
    }

    /// Records that an entry for a layer was written.
    pub fn note_written(&mut self, id: LayerId, sequence: Sequence) {
        if let Some(layer) = self.layers.get_mut(&id) {
            layer.written = sequence;
        }
    }

    /// Nobody needs a layer any more.
    pub fn release(&mut self, id: LayerId) {
        let Some(layer) = self.layers.get_mut(&id).filter(|layer| !layer.dropping) else { return };
        layer.dropping = true;
        self.upkeep.insert(id);
        self.leave(id);
    }

    /// If nobody can see a layer any more, it no longer counts for the layers below.
    pub fn leave(&mut self, id: LayerId) {
        let mut next = Some(id);
        while let Some(layer) = next.and_then(|id| self.layers.get(&id)).filter(|l| l.is_to_be_emptied()) {
            next = layer.parent;
            if let Some(parent) = next.and_then(|parent| self.layers.get_mut(&parent)) {
                parent.children = parent.children.saturating_sub(1);
            }
        }
    }

    /// A page of a layer's map is lost.
    pub fn leave_alone(&mut self, id: LayerId) {
        if let Some(layer) = self.layers.get_mut(&id) {
            layer.stuck = true;
        }
    }

    /// Whether a layer is being merged into another, or may be now: the lower of the two is dropped and has no other
    /// layer above it, and the merged one is not written any more.
    pub fn may_merge(&self, from: LayerId, into: LayerId) -> bool {
        let (Some(source), Some(target)) = (self.layers.get(&from), self.layers.get(&into)) else {
            return false;
        };
        let up = target.parent == Some(from) && source.dropping && source.children == 1;
        let down =
            source.parent == Some(into) && target.dropping && target.children == 1 && source.children > 0;
        source.merging == Some(into)
            || target.height >= source.height
                && source.merging.is_none()
                && (up && !target.is_to_be_emptied() || down)
    }

    /// The only layer directly above another.
    pub fn only_child(&self, below: LayerId) -> Option<LayerId> {
        self.child_beside(below, None)
    }

    /// A layer directly above another, other than this one.
    pub fn child_beside(&self, below: LayerId, than: Option<LayerId>) -> Option<LayerId> {
        let stands = |(id, layer): &(&LayerId, &Layer)| {
            layer.parent == Some(below) && !layer.is_to_be_emptied() && Some(**id) != than
        };
        self.layers.iter().find(stands).map(|(&id, _)| id)
    }

    /// Whether a layer has layers below it.
    pub fn stands_on_another(&self, name: LayerId) -> bool {
        self.layers.get(&self.named(name)).is_some_and(|layer| layer.parent.is_some())
    }

    /// The layer that a request names.
    pub fn named(&self, name: LayerId) -> LayerId {
        self.names.get(&name).copied().unwrap_or(name)
    }

    /// Moves a name to another layer.
    pub fn rename(&mut self, id: LayerId, name: LayerId) {
        let old = std::mem::replace(&mut self.layer_mut(id).name, name);
        self.names.remove(&old);
        if name != id {
            self.names.insert(name, id);
        }
    }

    /// Counts anew which layers are above each layer, and who has which name, after the layers were restored.
    pub fn count_children(&mut self) {
        let busy = self.layers.iter().filter(|(_, layer)| layer.dropping || layer.merging.is_some());
        self.upkeep = busy.map(|(&id, _)| id).collect();
        let ids: Vec<LayerId> = self.layers.keys().copied().collect();
        for &id in &ids {
            let parent = self.layer(id).parent;
            if let Some(parent) = parent.and_then(|parent| self.layers.get_mut(&parent)) {
                parent.children += 1;
            }
        }
        // from the layers without children downwards: each leaves once
        let unseen = |id: &LayerId| self.layer(*id).is_to_be_emptied();
        let tips: Vec<LayerId> = ids.into_iter().filter(unseen).collect();
        tips.into_iter().for_each(|tip| self.leave(tip));
        let renamed = self.layers.iter().filter(|(id, layer)| **id != layer.name);
        self.names = renamed.map(|(&id, layer)| (layer.name, id)).collect();
    }

    pub fn layer(&self, id: LayerId) -> &Layer {
        self.layers.get(&id).expect("a layer that exists")
    }

    pub fn layer_mut(&mut self, id: LayerId) -> &mut Layer {
        self.layers.get_mut(&id).expect("a layer that exists")
    }

    /// A layer as a checkpoint recorded it.
    pub fn restore_layer(&mut self, id: LayerId, layer: Layer) {
        self.mapped += layer.mapped;
        self.layers.insert(id, layer);
    }

    /// A block of a layer has got a position, or has lost it.
    pub fn count_mapped(&mut self, id: LayerId, gained: bool) {
        let layer = self.layers.get_mut(&id).expect("a layer that exists");
        if gained {
            (layer.mapped, self.mapped) = (layer.mapped + 1, self.mapped + 1);
        } else if layer.mapped > 0 {
            (layer.mapped, self.mapped) = (layer.mapped - 1, self.mapped - 1);
        } else {
            // the count in a table was too low
            self.doubted = true;
        }
    }

    /// All pages of a layer are cleared: if it has none, a count that says otherwise is wrong. If nothing of the layer
    /// has changed since `before`, nothing can be cleared, and the layer is stuck.
    pub fn note_emptied(&mut self, id: LayerId, before: &Layer) {
        let is_unused = self.is_unused(id);
        let Some(layer) = self.layers.get_mut(&id) else { return };
        if layer.root == MapEntry::ABSENT && is_unused {
            let left = std::mem::take(&mut layer.mapped);
            self.mapped -= left;
            self.doubted |= left > 0;
        } else if is_unused && (layer.root, layer.mapped) == (before.root, before.mapped) {
            layer.stuck = true;
        }
    }

    /// Blocks with a position, of all layers.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: LayerId = LayerId(1);
    const B: LayerId = LayerId(2);
    const C: LayerId = LayerId(3);
    const D: LayerId = LayerId(4);

    /// A below B below C, and D on B.
    fn family() -> Map {
        let mut map = Map::new(1 << 20);
        for (id, parent) in [(A, None), (B, Some(A)), (C, Some(B)), (D, Some(B))] {
            map.add_layer(id, parent, 2);
        }
        map
    }

    /// What a checkpoint would have recorded of it, restored.
    fn restored(map: &Map) -> Map {
        let mut again = Map::new(1 << 20);
        for (&id, layer) in &map.layers {
            again.restore_layer(id, Layer { children: 0, frozen: false, ..layer.clone() });
        }
        again.count_children();
        again
    }

    fn children(map: &Map) -> Vec<u32> {
        map.layers.values().map(|layer| layer.children).collect()
    }

    #[test]
    fn those_that_nobody_sees_do_not_count() {
        let mut map = family();
        assert_eq!(children(&map), [1, 2, 0, 0]);
        assert!(map.layer(C).is_writable() && !map.layer(B).is_writable());
        map.release(B);
        assert_eq!(children(&map), [1, 2, 0, 0], "two stand on it: it stays, hidden");
        map.release(C);
        assert_eq!(children(&map), [1, 1, 0, 0]);
        assert_eq!((map.only_child(B), map.child_beside(B, Some(D))), (Some(D), None));
        map.release(D);
        assert_eq!(children(&map), [0, 0, 0, 0], "B goes with the last that stood on it");
        assert!(map.layer(B).is_to_be_emptied() && map.layer(A).is_writable());
        map.release(D);
        assert_eq!(children(&map), [0, 0, 0, 0], "twice is once");
    }

    #[test]
    fn counts_after_a_start_are_those_before_it() {
        let mut map = family();
        for released in [None, Some(C), Some(B), Some(D)] {
            released.into_iter().for_each(|id| map.release(id));
            let again = restored(&map);
            assert_eq!(children(&again), children(&map), "after {released:?}");
            assert_eq!(again.upkeep, map.upkeep, "after {released:?}");
        }
    }

    #[test]
    fn what_may_be_merged() {
        let mut map = family();
        assert!(!map.may_merge(A, B) && !map.may_merge(B, A), "nobody has dropped A");
        map.release(A);
        assert!(map.may_merge(A, B) && map.may_merge(B, A), "up, and down as something stands on B");
        assert!(!map.may_merge(B, C) && !map.may_merge(LayerId(99), A));
        map.release(B);
        assert!(!map.may_merge(B, C), "D stands on B, too");
        map.release(D);
        assert!(map.may_merge(B, C) && !map.may_merge(C, B), "C can be written: it never goes down");
        map.layer_mut(B).height = 3;
        assert!(!map.may_merge(B, C), "C's tree cannot name all that B's can");
        map.layer_mut(B).height = 2;
        map.layer_mut(B).merging = Some(C);
        assert!(map.may_merge(B, C), "what was begun goes on");
        assert!(!map.may_merge(B, A), "and nowhere else");
    }

    #[test]
    fn a_layer_that_is_being_merged_is_not_emptied() {
        let mut map = family();
        map.release(B);
        map.release(D);
        map.layer_mut(B).merging = Some(C);
        map.release(C);
        assert_eq!(map.layer(B).children, 0);
        assert!(!map.layer(B).is_to_be_emptied() && map.layer(C).is_to_be_emptied());
        assert_eq!(map.layer(A).children, 1);
        assert_eq!(children(&restored(&map)), children(&map));
    }

    #[test]
    fn names_go_over() {
        let mut map = family();
        map.rename(A, B);
        assert_eq!((map.named(B), map.named(A)), (A, A));
        map.rename(A, A);
        map.rename(C, B);
        assert_eq!(map.named(B), C);
        assert_eq!(restored(&map).named(B), C);
    }
}
