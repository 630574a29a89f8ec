//! One layer of a lane: the root of its map, the layer below it, and whether it is to be dropped.

use base::{LayerId, Sequence};

use crate::format::page::MapEntry;

/// The map of one layer: LBA → position.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// The frozen layer that decides about blocks that are absent in this one.
    pub parent: Option<LayerId>,
    /// Level of the root page.
    pub height: u8,
    /// Blocks with a position.
    pub mapped: u64,
    /// The root page as last written.
    pub root: MapEntry,
    /// Nobody needs it any more: it is emptied or merged as soon as at most one layer is above it.
    pub dropping: bool,
    /// The name that requests use: its own id, or that of a layer which was merged into it.
    pub name: LayerId,
    /// Its pages are being merged into this one.
    pub merging: Option<LayerId>,
    /// Number of layers directly above it, without those that nobody can see any more.
    pub children: u32,
    /// A layer above it is being created.
    pub frozen: bool,
    /// The newest batch with an entry for this layer, as far as known since the start.
    pub written: Sequence,
    /// A page of its map could not be read: it is neither emptied nor merged before the next start.
    pub stuck: bool,
}

impl Layer {
    pub fn new(id: LayerId, parent: Option<LayerId>, height: u8) -> Layer {
        Layer {
            parent,
            height,
            mapped: 0,
            root: MapEntry::ABSENT,
            dropping: false,
            name: id,
            merging: None,
            children: 0,
            frozen: false,
            written: Sequence(0),
            stuck: false,
        }
    }

    pub fn is_writable(&self) -> bool {
        !self.dropping && !self.frozen && self.children == 0
    }

    /// Whether it has no page in the log and maps nothing.
    pub fn is_empty(&self) -> bool {
        self.mapped == 0 && self.root == MapEntry::ABSENT
    }

    /// Whether nobody can see it any more.
    pub fn is_to_be_emptied(&self) -> bool {
        self.dropping && self.children == 0 && self.merging.is_none()
    }
}
