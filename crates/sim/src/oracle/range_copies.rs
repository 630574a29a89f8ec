//! Copies of ranges: a sector may hold data that was written to another sector, of another volume.
//!
//! The bytes name the volume and sector for which they were written. When a copy brings them elsewhere, they get a
//! version of their own there. It is the same each time the same bytes are copied there.
//!
//! Both sides may be written meanwhile. A copy is a write to its destination. Sector by sector, it brings some state
//! that the source held since the copy began. The possible states are collected at each read, and for the
//! last time when the copy ends. The sectors of one block are collected one by one, so this check cannot detect that a
//! copy has torn a concurrent write to the source.

use base::HashMap;
use base::limits::COPY_PIECE_BYTES;

use super::content::{SECTOR_BYTES, SECTORS_PER_BLOCK, Sector, fill, identify};
use super::history::{History, WriteId};
use super::holds::CopyId;
use super::{Oracle, masks};

/// What was written, and for which sector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Content {
    family: u32,
    sector: u64,
    version: u64,
}

/// Which contents copies have brought elsewhere.
#[derive(Default)]
pub(super) struct Copied {
    versions: HashMap<Content, u64>,
    contents: HashMap<u64, Content>,
}

/// A copy that is under way: its first sectors. It has begun when its name says.
pub(super) struct RangeCopy {
    source: u32,
    from: u64,
    to: u64,
}

/// A copy that has begun.
#[derive(Clone, Debug)]
pub struct CopyTicket {
    copy: CopyId,
    destination: u32,
    parts: Vec<(u64, WriteId)>,
}

/// What was written while a copy was under way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Contended {
    pub source: bool,
    pub destination: bool,
}

impl Copied {
    pub fn identify(&self, family: u32, sector: u64, bytes: &[u8]) -> Sector {
        match identify(family, sector, bytes) {
            Sector::Misplaced { volume, sector, version } => {
                let known = self.versions.get(&Content { family: volume, sector, version });
                known.map_or(Sector::Misplaced { volume, sector, version }, |&known| Sector::Version(known))
            }
            said => said,
        }
    }

    fn content(&self, family: u32, sector: u64, version: u64) -> Content {
        // zeros are the same everywhere
        let (family, sector) = if version == 0 { (0, 0) } else { (family, sector) };
        self.contents.get(&version).copied().unwrap_or(Content { family, sector, version })
    }

    /// The version of a content at a sector.
    fn version_at(&mut self, family: u32, sector: u64, content: Content, ids: &mut u64) -> u64 {
        if content.version == 0 || (content.family, content.sector) == (family, sector) {
            return content.version;
        }
        let known = *self.versions.entry(content).or_insert_with(|| {
            *ids += 1;
            *ids
        });
        self.contents.insert(known, content);
        known
    }
}

impl Oracle {
    /// What a sector of a volume says that was read.
    pub fn identify(&self, volume: u32, sector: u64, bytes: &[u8]) -> Sector {
        self.copied.identify(self.family(volume), sector, bytes)
    }

    /// Bytes of the sectors of a range of a volume, at one version each.
    pub fn compose(&self, volume: u32, first: u64, versions: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; versions.len() * SECTOR_BYTES];
        let family = self.family(volume);
        for ((&version, sector), out) in
            versions.iter().zip(first..).zip(bytes.chunks_exact_mut(SECTOR_BYTES))
        {
            let content = self.copied.content(family, sector, version);
            fill(content.family, content.sector, content.version, out);
        }
        bytes
    }

    /// Sectors of one volume begin to be copied to another, or elsewhere in the same one.
    pub fn begin_copy(
        &mut self,
        (source, from): (u32, u64),
        (destination, to): (u32, u64),
        sectors: u64,
    ) -> CopyTicket {
        let began = self.tick();
        // what the source holds from now on is not forgotten meanwhile
        self.open_reads.push(began);
        let copy = CopyId(began);
        self.copies.insert(copy, RangeCopy { source, from, to });
        let range = to..to + sectors;
        let volume = self.volumes.get_mut(&destination).expect("a volume that exists");
        // what is copied here tells nothing of when the rest was
        volume.taken = None;
        // what had been replaced may be there again
        volume.replaced.retain(|(sector, _)| !range.contains(sector));
        let mut parts = Vec::new();
        for (block, mask) in masks(&range).flat_map(|(block, mask)| whole_parts(to, block, mask)) {
            self.ids += 1;
            let id = WriteId(self.ids);
            volume.blocks.entry(block).or_default().begin_copy(id, copy, mask, began);
            parts.push((block, id));
        }
        CopyTicket { copy, destination, parts }
    }

    /// What copies under way to this block may have brought by now.
    pub(super) fn gather(&mut self, volume: u32, block: u64) {
        let Some(history) = self.volumes.get(&volume).and_then(|volume| volume.blocks.get(&block)) else {
            return;
        };
        let under_way = history.copies_under_way();
        let family = self.family(volume);
        for (id, copy, mask) in under_way {
            for index in (0..SECTORS_PER_BLOCK as usize).filter(|index| mask >> index & 1 == 1) {
                let sector = block * SECTORS_PER_BLOCK + index as u64;
                let mut contents = Vec::new();
                self.may_bring(copy, sector, &mut Vec::new(), &mut contents);
                contents.sort_unstable();
                contents.dedup();
                for content in contents {
                    let version = self.copied.version_at(family, sector, content, &mut self.ids);
                    let volume = self.volumes.get_mut(&volume).expect("it was looked at");
                    volume.blocks.get_mut(&block).expect("as well").bring(id, index, version);
                }
            }
        }
    }

    pub(super) fn gather_all(&mut self, volume: u32) {
        let of = &self.volumes[&volume].blocks;
        let is_open = |history: &History| !history.copies_under_way().is_empty();
        let open = of.iter().filter(|(_, history)| is_open(history)).map(|(&block, _)| block);
        open.collect::<Vec<_>>().into_iter().for_each(|block| self.gather(volume, block));
    }

    /// Everything that a sector's source has held since the copy began; copies to the source may be under way, too.
    fn may_bring(
        &self,
        copy: CopyId,
        sector: u64,
        seen: &mut Vec<(CopyId, u64)>,
        contents: &mut Vec<Content>,
    ) {
        if seen.contains(&(copy, sector)) {
            return;
        }
        seen.push((copy, sector));
        let range = &self.copies[&copy];
        let at = sector - range.to + range.from;
        let Some(source) = self.volumes.get(&range.source) else { return };
        let untouched = History::default();
        let history = source.blocks.get(&(at / SECTORS_PER_BLOCK)).unwrap_or(&untouched);
        let index = (at % SECTORS_PER_BLOCK) as usize;
        for holds in history.held_since(index, copy.0) {
            let known = holds.versions(index).iter();
            contents.extend(known.map(|&version| self.copied.content(source.family, at, version)));
            if let Some(other) = holds.under_way() {
                self.may_bring(other, at, seen, contents);
            }
        }
    }

    /// Nothing more of it happens; what it has brought by now it has.
    fn close_copy(&mut self, ticket: &CopyTicket) {
        let mut blocks: Vec<u64> = ticket.parts.iter().map(|&(block, _)| block).collect();
        blocks.dedup();
        blocks.into_iter().for_each(|block| self.gather(ticket.destination, block));
        self.copies.remove(&ticket.copy);
        self.close_read(ticket.copy.0);
    }

    /// Whether anything else was written to where it is going, and whether it was not clear what it would bring.
    fn is_contended(&self, ticket: &CopyTicket) -> Contended {
        let mut contended = Contended::default();
        let Some(volume) = self.volumes.get(&ticket.destination) else { return contended };
        for (block, id) in &ticket.parts {
            let Some(history) = volume.blocks.get(block) else { continue };
            contended.destination |= history.is_contended(*id);
            contended.source |= history.is_uncertain(*id);
        }
        contended
    }

    /// The copy was acknowledged.
    pub fn end_copy(&mut self, ticket: CopyTicket) -> Contended {
        self.close_copy(&ticket);
        let contended = self.is_contended(&ticket);
        let now = self.tick();
        let oldest = self.oldest_read();
        let Some(volume) = self.volumes.get_mut(&ticket.destination) else { return contended };
        let stable = !volume.write_back;
        for (block, id) in ticket.parts {
            if let Some(history) = volume.blocks.get_mut(&block) {
                history.acknowledged(id, stable, now);
                history.prune(oldest, volume.write_back);
            }
            if !stable {
                volume.unstable.push((now, id, block..block + 1));
            }
        }
        contended
    }

    /// The copy failed: each block is copied or not.
    pub fn fail_copy(&mut self, ticket: &CopyTicket) {
        self.close_copy(ticket);
        self.end_parts(ticket, History::failed);
    }

    /// The copy was aborted, and its end waited for: each block is copied or not, and none later.
    pub fn abort_copy(&mut self, ticket: &CopyTicket) {
        self.close_copy(ticket);
        self.end_parts(ticket, History::aborted);
    }

    fn end_parts(&mut self, ticket: &CopyTicket, end: fn(&mut History, WriteId, u64)) {
        let now = self.tick();
        let Some(volume) = self.volumes.get_mut(&ticket.destination) else { return };
        for (block, id) in &ticket.parts {
            if let Some(history) = volume.blocks.get_mut(block) {
                end(history, *id, now);
            }
        }
    }

    pub fn copies_under_way(&self) -> usize {
        self.copies.len()
    }

    /// The process has ended, and all copies with it.
    pub(super) fn cut_off_copies(&mut self) {
        if !self.copies.is_empty() {
            let volumes: Vec<u32> = self.volumes.keys().copied().collect();
            volumes.into_iter().for_each(|volume| self.gather_all(volume));
            self.copies.clear();
        }
    }
}

/// The sectors of a block that a copy writes at once. What does not begin with a whole block is copied as data, whose pieces
/// may meet within a block.
fn whole_parts(to: u64, block: u64, mask: u8) -> Vec<(u64, u8)> {
    let piece = (COPY_PIECE_BYTES / SECTOR_BYTES) as u64;
    let first = block * SECTORS_PER_BLOCK;
    let starts_piece = |index: &u64| first + index > to && (first + index - to).is_multiple_of(piece);
    let border = (1..SECTORS_PER_BLOCK).find(starts_piece).unwrap_or(0);
    let below = (1u8 << border) - 1;
    [mask & below, mask & !below].into_iter().filter(|&part| part != 0).map(|part| (block, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Violation, ViolationKind};
    use super::*;

    fn read(oracle: &mut Oracle, volume: u32, first: u64, data: &[u8]) -> Result<(), Violation> {
        let ticket = oracle.begin_read(volume, first..first + (data.len() / SECTOR_BYTES) as u64);
        oracle.end_read(&ticket, data)
    }

    /// Two volumes, of which the first has a block of one version.
    fn oracle() -> (Oracle, u64) {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        oracle.add_volume(2, false);
        let write = oracle.begin_write(1, 8..16);
        let version = write.version;
        oracle.end_write(write, false);
        (oracle, version)
    }

    /// Writes a block; its version.
    fn write(oracle: &mut Oracle, volume: u32, block: u64) -> u64 {
        let ticket = oracle.begin_write(volume, block * 8..block * 8 + 8);
        let version = ticket.version;
        oracle.end_write(ticket, true);
        version
    }

    #[test]
    fn what_was_copied_is_known_where_it_is_now() {
        let (mut oracle, version) = oracle();
        let data = oracle.compose(1, 8, &[version; 8]);
        assert!(matches!(
            read(&mut oracle, 2, 16, &data).map_err(|violation| violation.kind),
            Err(ViolationKind::Misplaced { volume: 1, .. })
        ));
        let ticket = oracle.begin_copy((1, 8), (2, 16), 8);
        assert_eq!(read(&mut oracle, 2, 16, &[0; 8 * SECTOR_BYTES]), Ok(()), "not yet");
        assert_eq!(oracle.end_copy(ticket), Contended::default());
        assert!(read(&mut oracle, 2, 16, &[0; 8 * SECTOR_BYTES]).is_err(), "overwritten");
        assert_eq!(read(&mut oracle, 2, 16, &data), Ok(()));
        assert!(read(&mut oracle, 2, 8, &data).is_err(), "but nowhere else");
        let Sector::Version(there) = oracle.identify(2, 16, &data[..SECTOR_BYTES]) else { panic!("known") };
        assert_eq!(oracle.compose(2, 16, &[there]), data[..SECTOR_BYTES]);
        // and back to where it came from
        let newer = write(&mut oracle, 1, 1);
        let ticket = oracle.begin_copy((2, 16), (1, 8), 8);
        oracle.end_copy(ticket);
        assert_eq!(read(&mut oracle, 1, 8, &data), Ok(()));
        let newer = oracle.compose(1, 8, &[newer; 8]);
        assert!(read(&mut oracle, 1, 8, &newer).is_err(), "it was overwritten by what was there before it");
    }

    #[test]
    fn a_copy_brings_what_its_source_held_meanwhile_and_stays_with_that() {
        for brought in 0..4 {
            let (mut oracle, first) = oracle();
            let second = write(&mut oracle, 1, 1);
            let ticket = oracle.begin_copy((1, 8), (2, 16), 8);
            let third = write(&mut oracle, 1, 1);
            let late = oracle.begin_write(1, 8..16);
            let all: Vec<Vec<u8>> = [first, second, third, late.version]
                .iter()
                .map(|version| oracle.compose(1, 8, &[*version; 8]))
                .collect();
            let contended = oracle.end_copy(ticket);
            assert_eq!((contended.source, contended.destination), (true, false));
            oracle.end_write(late, true);
            let seen = read(&mut oracle, 2, 16, &all[brought]);
            assert_eq!(seen.is_ok(), brought > 0, "the first had been overwritten before the copy began");
            for (other, data) in all.iter().enumerate().filter(|_| brought > 0) {
                assert_eq!(
                    read(&mut oracle, 2, 16, data).is_ok(),
                    other == brought,
                    "seen once, it is fixed"
                );
            }
        }
    }

    #[test]
    fn what_comes_after_the_copy_is_not_in_it() {
        let (mut oracle, version) = oracle();
        let ticket = oracle.begin_copy((1, 8), (2, 16), 8);
        oracle.end_copy(ticket);
        let later = write(&mut oracle, 1, 1);
        let (then, now) = (oracle.compose(1, 8, &[version; 8]), oracle.compose(1, 8, &[later; 8]));
        assert!(read(&mut oracle, 2, 16, &now).is_err());
        assert_eq!(read(&mut oracle, 2, 16, &then), Ok(()));
    }

    #[test]
    fn copies_of_what_is_being_copied() {
        let (mut oracle, version) = oracle();
        oracle.add_volume(3, false);
        let second = oracle.begin_copy((2, 16), (3, 0), 8);
        let first = oracle.begin_copy((1, 8), (2, 16), 8);
        let contended = oracle.end_copy(second);
        assert!(contended.source, "either of the two");
        let data = oracle.compose(1, 8, &[version; 8]);
        assert_eq!(read(&mut oracle, 3, 0, &data), Ok(()));
        assert!(read(&mut oracle, 3, 0, &[0; 8 * SECTOR_BYTES]).is_err(), "seen once, it is fixed");
        oracle.abort_copy(&first);
        // and in a circle, with something else beside
        let round = [((1, 8), (2, 16)), ((2, 16), (3, 0)), ((3, 0), (1, 8))];
        let tickets = round.map(|(from, to)| oracle.begin_copy(from, to, 8));
        let new = oracle.begin_write(2, 16..24);
        let new = oracle.compose(2, 16, &[new.version; 8]);
        assert_eq!(read(&mut oracle, 1, 8, &new), Ok(()));
        tickets.iter().for_each(|ticket| oracle.fail_copy(ticket));
    }

    #[test]
    fn a_copy_that_is_cut_off_has_brought_each_block_or_not() {
        for power_lost in [false, true] {
            let (mut oracle, _) = oracle();
            let old = write(&mut oracle, 2, 2);
            drop(oracle.begin_copy((1, 8), (2, 16), 8));
            oracle.crash(power_lost);
            let (old, new) = (oracle.compose(2, 16, &[old; 8]), oracle.compose(1, 8, &[2; 8]));
            let _ = write(&mut oracle, 1, 1);
            assert_eq!(read(&mut oracle, 2, 16, &old), Ok(()));
            assert!(read(&mut oracle, 2, 16, &new).is_err(), "it does not land later");
        }
    }

    #[test]
    fn what_a_copy_brings_back_can_be_matched_again() {
        let (mut oracle, version) = oracle();
        oracle.end_copy_of_all();
        let swap = |oracle: &mut Oracle| {
            let ticket = oracle.begin_compare(1, 8..16);
            oracle.end_compare_matched(ticket, &[version; 8], false).map_err(|violation| violation.kind)
        };
        assert_eq!(swap(&mut oracle), Ok(()));
        let ticket = oracle.begin_copy((2, 8), (1, 8), 8);
        oracle.end_copy(ticket);
        assert_eq!(swap(&mut oracle), Ok(()));
    }

    #[test]
    fn pieces_that_meet_within_a_block_are_parts_of_it() {
        assert_eq!(whole_parts(16, 2, 0xFF), [(2, 0xFF)]);
        assert_eq!(whole_parts(3, 0, 0xF8), [(0, 0xF8)]);
        assert_eq!(whole_parts(3, 256, 0xFF), [(256, 0b111), (256, 0b1111_1000)]);
        assert_eq!(whole_parts(8, 257, 0xFF), [(257, 0xFF)]);
    }

    impl Oracle {
        /// Volume 2 has a copy of volume 1's block.
        fn end_copy_of_all(&mut self) {
            let ticket = self.begin_copy((1, 8), (2, 8), 8);
            self.end_copy(ticket);
        }
    }
}
