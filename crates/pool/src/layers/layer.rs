//! One layer of a lane: the root of its map, the layer below it, and whether it is to be dropped.

use base::{LayerId, Sequence};

use crate::format::page::MapEntry;

/// A map LBA → position.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// The frozen layer that decides where this one is silent.
    pub parent: Option<LayerId>,
    /// Level of the root page.
    pub height: u8,
    /// Blocks with a position.
    pub mapped: u64,
    /// The root page as last written.
    pub root: MapEntry,
    /// Nobody asks for it any more: emptied, or merged, as soon as at most one layer stands on it.
    pub dropping: bool,
    /// What requests call it: its own id, or that of a layer which was merged into it.
    pub name: LayerId,
    /// Its pages are being merged into this one.
    pub merging: Option<LayerId>,
    /// Layers that stand on it, without those of which nobody sees anything any more.
    pub children: u32,
    /// A layer that is to stand on it is on its way.
    pub frozen: bool,
    /// The newest batch with something that was written to it, as far as this start knows.
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

    /// Whether it has no page in the log, and maps nothing.
    pub fn is_empty(&self) -> bool {
        self.mapped == 0 && self.root == MapEntry::ABSENT
    }

    /// Whether nobody sees anything of it any more.
    pub fn is_to_be_emptied(&self) -> bool {
        self.dropping && self.children == 0 && self.merging.is_none()
    }
}
