//! Requests about references: making blocks refer to those of another layer, following the references of this lane, and
//! finding which layer decides the content of a block. `layers/references.rs` explains references and how they are
//! counted.

use std::rc::Rc;

use base::LayerId;

use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::format::page::{MapEntry, PageKey};
use crate::geometry::position::Position;
use crate::geometry::reference::Reference;
use crate::lane::Lane;
use crate::layers::references::{BlockOwner, OwnedRun};
use crate::log::queue::{Pending, Ticket};
use crate::map::pages::Resolved;
use crate::map::tree::{Found, leaf, within_leaf};
use crate::reading::read::Read;

impl Lane {
    /// Makes blocks refer to the same number of blocks of another layer. Durable when this succeeds.
    pub(crate) async fn refer_blocks(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
        to: Reference,
    ) -> Result<(), LaneError> {
        self.check_writable(layer, block + blocks - 1)?;
        let ticket = Ticket::new(&self.io);
        let appended = self.append_references((layer, block, blocks), to, &ticket).await;
        ticket.end(appended).await
    }

    async fn append_references(
        &self,
        (layer, block, blocks): (LayerId, u64, u64),
        to: Reference,
        ticket: &Rc<Ticket>,
    ) -> Result<(), LaneError> {
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            self.wait_for_space().await?;
            self.log_room().await?;
            let key = self.pin_range(layer, block + at, count, || self.check_referred(to.layer)).await?;
            let entry = Entry::Refer { layer, block: block + at, blocks: count as u32, to: to.plus(at) };
            self.append(Pending::bare(entry, Some(key), ticket));
            at += count;
        }
        Decision::Referred.taken();
        Ok(())
    }

    /// Reads blocks of a layer that references name. A dropped layer is not read any more, although it may still exist,
    /// because it may be half emptied.
    pub(crate) async fn read_referred(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<Read, LaneError> {
        let read = self.read_blocks_of(layer, block, blocks, Lane::check_referred).await?;
        Decision::ReferenceRead.taken();
        Ok(read)
    }

    /// Whether references to a layer of this name can be followed.
    pub(crate) fn check_referred(&self, name: LayerId) -> Result<(), LaneError> {
        let map = self.map.borrow();
        let found = map.layers.get(&map.named(name));
        let is_there = found.is_some_and(|layer| layer.name == name && !layer.dropping);
        if is_there { Ok(()) } else { Err(LaneError::NoSuchLayer) }
    }

    /// Discards the bases of some blocks: they refer to a layer that is gone.
    pub(crate) fn rebuild_bases(&self, layer: LayerId, block: u64, blocks: u64) {
        Decision::ReferenceOutdated.taken();
        let mut at = 0;
        while at < blocks {
            self.forget_base(layer, block + at);
            at += within_leaf(block + at, blocks - at);
        }
    }

    /// Entries that refer to each layer, including entries on their way. A layer that is not listed has none, and no
    /// power loss brings one back. A failed lane does not know what is on its drives.
    pub(crate) async fn referred(&self) -> Result<Vec<(LayerId, u64)>, LaneError> {
        if self.has_ended() {
            return Err(LaneError::Unavailable);
        }
        let counts = self.map.borrow().references.with(self.log.borrow().referred());
        // until then, an overwritten entry may come back
        if self.log.borrow().has_volatile() {
            self.flush_drives().await?;
        }
        Ok(counts)
    }

    /// Which layer decides the content of a layer's blocks: `below`, which is under the layer, or the layer directly
    /// below it if `below` is not given; or another one. Returns the name of that layer, if it can be referred to.
    pub(crate) async fn owners(
        &self,
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
    ) -> Result<(Option<LayerId>, Vec<OwnedRun>), LaneError> {
        let mut runs = Vec::new();
        let mut asked_of = below.or_else(|| self.right_below(layer));
        if below.is_none() && asked_of.is_some_and(|below| self.check_referred(below).is_err()) {
            asked_of = None;
        }
        let mut at = block;
        while at < block + blocks {
            let count = within_leaf(at, block + blocks - at);
            self.owners_of_page(layer, asked_of, at, count, &mut runs).await?;
            at += count;
        }
        Ok((asked_of, runs))
    }

    fn right_below(&self, layer: LayerId) -> Option<LayerId> {
        let map = self.map.borrow();
        let below = map.layers.get(&map.named(layer))?.parent?;
        map.layers.get(&below).map(|layer| layer.name)
    }

    /// Blocks of one leaf page, as seen in one step.
    async fn owners_of_page(
        &self,
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
        runs: &mut Vec<OwnedRun>,
    ) -> Result<(), LaneError> {
        loop {
            let resolved = match self.try_above(layer, below, block, blocks)? {
                Above::Load(key, entry) => Resolved::Load(key, entry),
                Above::Mapped(mapped) => match self.try_resolve(layer, block, blocks)? {
                    Resolved::Entries(entries) => {
                        for (entry, is_above) in entries.into_iter().zip(mapped) {
                            OwnedRun::add(runs, owner_of(entry, is_above));
                        }
                        return Ok(());
                    }
                    missing => missing,
                },
            };
            match resolved {
                Resolved::Load(key, entry) => self.load_page(key, entry).await?,
                Resolved::Base(key) => self.build_base(key).await?,
                Resolved::Entries(_) => unreachable!("ended above"),
            }
        }
    }

    /// Which blocks of a leaf page have entries in the layers above `below`; in all layers, if there is no `below`.
    fn try_above(
        &self,
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
    ) -> Result<Above, LaneError> {
        let Some(below) = below else { return Ok(Above::Mapped(vec![true; blocks as usize])) };
        self.check_referred(below)?;
        let mut map = self.map.borrow_mut();
        let end = map.named(below);
        let mut mapped = vec![false; blocks as usize];
        let mut at = map.named(layer);
        while at != end {
            let (key, first) = leaf(at, block);
            match map.find(key) {
                Found::Load(key, entry) => return Ok(Above::Load(key, entry)),
                Found::Absent => {}
                Found::Cached(page) => {
                    for (index, mapped) in mapped.iter_mut().enumerate() {
                        *mapped |= page.entry(first + index).position != Position::ABSENT;
                    }
                }
            }
            at = map.layers.get(&at).and_then(|layer| layer.parent).ok_or(LaneError::NoSuchLayer)?;
        }
        Ok(Above::Mapped(mapped))
    }
}

enum Above {
    /// For each block, whether it has an entry.
    Mapped(Vec<bool>),
    /// This page has to be read first.
    Load(PageKey, MapEntry),
}

fn owner_of(entry: MapEntry, is_above: bool) -> BlockOwner {
    match (entry.reference(), entry.position.is_stored()) {
        (Some(to), _) => BlockOwner::Elsewhere(to),
        (None, true) if is_above => BlockOwner::Above,
        (None, true) => BlockOwner::Below,
        (None, false) => BlockOwner::Nobody,
    }
}
