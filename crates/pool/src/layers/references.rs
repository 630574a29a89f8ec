//! References: blocks that are what another, frozen layer says of a block, maybe in another lane. How copies inside a
//! pool cost nothing; `docs/design/0007-references.md`.
//!
//! ```text
//!   volume ── read ──► lane 0: data, and "blocks 4..9 are elsewhere: (H, v)"
//!          ── read of H ──► the lane of v: data                             the volume puts it in
//! ```
//!
//! A lane keeps and counts references; it never follows one, because what they name may be another lane's. What always
//! holds: a layer that something refers to is frozen, and nobody drops it.

use std::collections::BTreeMap;
use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId};
use block::Payload;
use bytes::Bytes;

use crate::decision::Decision;
use crate::format::header::Entry;
use crate::format::page::{MapEntry, PAGE_ENTRIES, PageKey};
use crate::geometry::position::Position;
use crate::lane::{Lane, LaneError};
use crate::log::apply::within_leaf;
use crate::log::queue::{Pending, Ticket};
use crate::map::pages::Resolved;
use crate::map::tree::{Found, leaf};
use crate::reading::read::Read;

const PAGE: u64 = PAGE_ENTRIES as u64;

/// A block of a layer, by the names that all lanes have for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The layer's name.
    pub layer: LayerId,
    /// The block among those of all lanes: see [`Reference::to`].
    pub block: u64,
}

impl Reference {
    /// What this layer says of a lane's block.
    pub fn to(layer: LayerId, lane: usize, lanes: usize, block: u64) -> Reference {
        let page = block / PAGE * lanes as u64 + lane as u64;
        Reference { layer, block: page * PAGE + block % PAGE }
    }

    /// The lane, and its block.
    pub fn place(self, lanes: usize) -> (usize, u64) {
        let (page, lanes) = (self.block / PAGE, lanes as u64);
        ((page % lanes) as usize, page / lanes * PAGE + self.block % PAGE)
    }

    pub(crate) fn plus(self, blocks: u64) -> Reference {
        Reference { block: self.block + blocks, ..self }
    }
}

/// Blocks of a request that are elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// The first of them within the request.
    pub first: usize,
    pub blocks: usize,
    /// Where the first is; the others follow it.
    pub to: Reference,
}

/// What a reference says: one block.
#[derive(Clone, Debug)]
pub struct Known {
    pub reference: Reference,
    pub content: Bytes,
}

/// Who says what blocks of a layer are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaker {
    /// A layer above the one that was asked for.
    Above,
    /// That layer, or one below it.
    Below,
    /// Another, to which the first of the blocks refers; the others follow it.
    Elsewhere(Reference),
    /// Nobody: they are not mapped.
    Nobody,
}

/// Blocks that follow each other, of which one says what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spoken {
    pub blocks: u64,
    pub by: Speaker,
}

impl Spoken {
    fn add(runs: &mut Vec<Spoken>, by: Speaker) {
        match runs.last_mut() {
            Some(last) if last.joins(by) => last.blocks += 1,
            _ => runs.push(Spoken { blocks: 1, by }),
        }
    }

    fn joins(&self, next: Speaker) -> bool {
        match (self.by, next) {
            (Speaker::Elsewhere(first), Speaker::Elsewhere(next)) => first.plus(self.blocks) == next,
            (by, next) => by == next,
        }
    }
}

/// How many entries of a lane's map refer to each layer, by its name.
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

    /// An entry of the map has come to say this.
    pub fn come(&mut self, entry: MapEntry) {
        if let Some(to) = entry.reference() {
            let count = self.counts.entry(to.layer).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// An entry of the map says this no more.
    pub fn go(&mut self, entry: MapEntry) {
        let Some(to) = entry.reference() else { return };
        let Some(count) = self.counts.get_mut(&to.layer) else {
            // what a table has said was too little
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

    /// Takes in what was counted anew.
    pub fn mend(&mut self, counts: BTreeMap<LayerId, u64>) {
        *self = References { counts, doubted: false };
    }

    pub fn counts(&self) -> Vec<(LayerId, u64)> {
        self.counts.iter().map(|(&layer, &entries)| (layer, entries)).collect()
    }

    /// Entries that refer to anything.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, entries| sum.saturating_add(*entries))
    }

    /// The counts, with one more for each of these.
    fn with(&self, more: impl Iterator<Item = LayerId>) -> Vec<(LayerId, u64)> {
        let mut all = self.clone();
        more.for_each(|layer| *all.counts.entry(layer).or_default() += 1);
        all.counts()
    }
}

/// The blocks of a range that are elsewhere.
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

/// What was read, with what is elsewhere put in as far as it is known.
pub(crate) fn told(read: Read, known: &[Known]) -> Result<Payload, LaneError> {
    if read.elsewhere.is_empty() {
        return Ok(read.pieces);
    }
    let mut parts = Vec::new();
    for part in &read.elsewhere {
        for index in 0..part.blocks {
            let reference = part.to.plus(index as u64);
            let found = known.iter().find(|known| known.reference == reference);
            parts.push((part.first + index, found.ok_or(LaneError::Elsewhere)?.content.clone().into()));
        }
    }
    Decision::ReferenceTold.taken();
    Ok(filled(read.pieces, parts))
}

/// Puts blocks in the place of others; `parts` are in order, each with the index of its first block.
pub(crate) fn filled(pieces: Payload, parts: Vec<(usize, Payload)>) -> Payload {
    let mut whole = Payload::new();
    let mut left = pieces.into_iter();
    let mut piece = Bytes::new();
    let mut at = 0;
    // moves on by so many bytes, and gives what is passed, or drops it
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

impl Lane {
    /// Has blocks be what another layer says of as many blocks; they are when this ends, whatever happens then.
    pub(crate) async fn refer_blocks(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
        to: Reference,
    ) -> Result<(), LaneError> {
        self.check_writable(layer, block + blocks - 1)?;
        let ticket = Ticket::new(&self.io);
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            self.wait_for_space().await?;
            self.log_room().await?;
            let key = self.pin_range(layer, block + at, count, || self.check_referred(to.layer)).await?;
            let entry = Entry::Refer { layer, block: block + at, blocks: count as u32, to: to.plus(at) };
            self.append(Pending::bare(entry, Some(key), &ticket));
            at += count;
        }
        Decision::Referred.taken();
        ticket.wait().await
    }

    /// Reads blocks of a layer that something refers to. One that has been dropped is not read any more, though it may
    /// be there: what it said may be half gone.
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

    /// Has what the layers below say of some blocks found out anew: what was kept of them refers to a layer that is gone.
    pub(crate) fn look_again(&self, layer: LayerId, block: u64, blocks: u64) {
        Decision::ReferenceOutdated.taken();
        let mut at = 0;
        while at < blocks {
            self.forget_base(layer, block + at);
            at += within_leaf(block + at, blocks - at);
        }
    }

    /// Entries that refer to each layer, those on their way too. One that is not named has none, and no loss of power
    /// brings one back. A lane that has failed does not know what is on its drives.
    pub(crate) async fn referred(&self) -> Result<Vec<(LayerId, u64)>, LaneError> {
        if self.has_ended() {
            return Err(LaneError::Unavailable);
        }
        let counts = self.map.borrow().references.with(self.log.borrow().referred());
        // an entry that was overwritten may come back until then
        if self.log.borrow().has_volatile() {
            self.flush_drives().await?;
        }
        Ok(counts)
    }

    /// Who says what blocks of a layer are: `below`, which it stands on, or, where none is named, the one right below
    /// it; or something else. Gives that layer's name, where it is one that can be referred to.
    pub(crate) async fn speakers(
        &self,
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
    ) -> Result<(Option<LayerId>, Vec<Spoken>), LaneError> {
        let mut runs = Vec::new();
        let mut asked_of = below.or_else(|| self.right_below(layer));
        if below.is_none() && asked_of.is_some_and(|below| self.check_referred(below).is_err()) {
            asked_of = None;
        }
        let mut at = block;
        while at < block + blocks {
            let count = within_leaf(at, block + blocks - at);
            self.speakers_of_page(layer, asked_of, at, count, &mut runs).await?;
            at += count;
        }
        Ok((asked_of, runs))
    }

    fn right_below(&self, layer: LayerId) -> Option<LayerId> {
        let map = self.map.borrow();
        let below = map.layers.get(&map.named(layer))?.parent?;
        map.layers.get(&below).map(|layer| layer.name)
    }

    /// Blocks of one leaf page, as one step sees them.
    async fn speakers_of_page(
        &self,
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
        runs: &mut Vec<Spoken>,
    ) -> Result<(), LaneError> {
        loop {
            let resolved = match self.try_above(layer, below, block, blocks)? {
                Above::Load(key, entry) => Resolved::Load(key, entry),
                Above::Spoken(spoken) => match self.try_resolve(layer, block, blocks)? {
                    Resolved::Entries(entries) => {
                        for (entry, is_above) in entries.into_iter().zip(spoken) {
                            Spoken::add(runs, speaker(entry, is_above));
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

    /// Which blocks of a leaf page the layers above `below` speak of; all, where there is no `below`.
    fn try_above(
        &self,
        layer: LayerId,
        below: Option<LayerId>,
        block: u64,
        blocks: u64,
    ) -> Result<Above, LaneError> {
        let Some(below) = below else { return Ok(Above::Spoken(vec![true; blocks as usize])) };
        self.check_referred(below)?;
        let mut map = self.map.borrow_mut();
        let end = map.named(below);
        let mut spoken = vec![false; blocks as usize];
        let mut at = map.named(layer);
        while at != end {
            let (key, first) = leaf(at, block);
            match map.find(key) {
                Found::Load(key, entry) => return Ok(Above::Load(key, entry)),
                Found::Absent => {}
                Found::Cached(page) => {
                    for (index, spoken) in spoken.iter_mut().enumerate() {
                        *spoken |= page.entry(first + index).position != Position::ABSENT;
                    }
                }
            }
            at = map.layers.get(&at).and_then(|layer| layer.parent).ok_or(LaneError::NoSuchLayer)?;
        }
        Ok(Above::Spoken(spoken))
    }
}

enum Above {
    /// For each block, whether.
    Spoken(Vec<bool>),
    /// This page is needed first.
    Load(PageKey, MapEntry),
}

fn speaker(entry: MapEntry, is_above: bool) -> Speaker {
    match (entry.reference(), entry.position.is_stored()) {
        (Some(to), _) => Speaker::Elsewhere(to),
        (None, true) if is_above => Speaker::Above,
        (None, true) => Speaker::Below,
        (None, false) => Speaker::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: LayerId = LayerId(9);

    #[test]
    fn a_reference_finds_its_lane_and_each_block_has_one_of_its_own() {
        for lanes in 1..5 {
            let mut seen = std::collections::BTreeSet::new();
            for lane in 0..lanes {
                for block in [0, 1, 255, 256, 700, 1 << 30] {
                    let reference = Reference::to(H, lane, lanes, block);
                    assert_eq!(reference.place(lanes), (lane, block));
                    assert!(seen.insert(reference.block));
                }
            }
        }
    }

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
    fn only_what_is_known_of_the_very_reference_is_told() {
        let to = Reference { layer: H, block: 700 };
        let entries = [MapEntry::ZERO, MapEntry::referring(to), MapEntry::referring(to.plus(1))];
        let parts = elsewhere(&entries);
        assert_eq!(parts, [Elsewhere { first: 1, blocks: 2, to }]);
        let read = || Read { pieces: vec![0; 3 * BLOCK_BYTES].into(), elsewhere: parts.clone() };
        let known = |reference, byte: u8| Known { reference, content: Bytes::from(vec![byte; BLOCK_BYTES]) };
        let all = [known(to, 1), known(to.plus(1), 2)];
        let whole = told(read(), &all).expect("all is known").to_vec();
        assert_eq!((whole[0], whole[BLOCK_BYTES], whole[2 * BLOCK_BYTES]), (0, 1, 2));
        assert_eq!(told(read(), &all[..1]).err(), Some(LaneError::Elsewhere));
        let other = Reference { layer: LayerId(10), ..to };
        assert_eq!(told(read(), &[known(other, 1), all[1].clone()]).err(), Some(LaneError::Elsewhere));
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
        let speakers =
            [Speaker::Below, Speaker::Below, Speaker::Elsewhere(to), Speaker::Elsewhere(to.plus(1))];
        speakers.into_iter().chain([Speaker::Elsewhere(to)]).for_each(|by| Spoken::add(&mut runs, by));
        let expected = [(2, Speaker::Below), (2, Speaker::Elsewhere(to)), (1, Speaker::Elsewhere(to))];
        assert_eq!(runs, expected.map(|(blocks, by)| Spoken { blocks, by }));
    }
}
