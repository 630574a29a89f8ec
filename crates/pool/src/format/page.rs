//! A map page: 256 entries of one layer's map, in one block.
//!
//! Pages of level 1 map data blocks. A page of level n+1 maps pages of level n in the same form: position and checksum.
//! The checksum of a page is in its parent.

use base::{BLOCK_BYTES, LayerId};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FormatError, LOG_VERSION};
use crate::geometry::position::Position;
use crate::geometry::reference::{self, Reference};
use crate::layers::names::FORWARDS;

const MAGIC: &[u8; 4] = b"TNGP";
/// Entries of one page.
pub const PAGE_ENTRIES: usize = 256;
const _: () = assert!(PAGE_ENTRIES as u64 == reference::PAGE);
/// Maximum number of levels of pages: 256^5 blocks are 4 PiB.
pub const LEVEL_MAX: u8 = 5;

const _: () = assert!((PAGE_ENTRIES as u128).pow(LEVEL_MAX as u32) * BLOCK_BYTES as u128 >= 1 << 50);

/// The entry of a page for one block, or for one page below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapEntry {
    pub position: Position,
    pub crc: u32,
}

impl MapEntry {
    pub const ABSENT: MapEntry = MapEntry { position: Position::ABSENT, crc: 0 };
    pub const ZERO: MapEntry = MapEntry { position: Position::ZERO, crc: 0 };

    pub fn referring(to: Reference) -> MapEntry {
        MapEntry { position: Position::referring(to.block), crc: to.layer.0 }
    }

    /// The reference, if this entry is one.
    pub fn reference(self) -> Option<Reference> {
        self.position.referred().map(|block| Reference { layer: LayerId(self.crc), block })
    }
}

/// Names a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageKey {
    pub layer: LayerId,
    /// 1 for pages that map data blocks.
    pub level: u8,
    pub index: u64,
}

impl PageKey {
    /// The level-1 page that maps `block`.
    pub fn of_block(layer: LayerId, block: u64) -> PageKey {
        PageKey { layer, level: 1, index: block / PAGE_ENTRIES as u64 }
    }

    pub fn parent(self) -> PageKey {
        PageKey { layer: self.layer, level: self.level + 1, index: self.index / PAGE_ENTRIES as u64 }
    }

    /// The entry of the parent that names this page.
    pub fn entry_in_parent(self) -> usize {
        (self.index % PAGE_ENTRIES as u64) as usize
    }
}

/// A page in memory: the bytes as on disk.
#[derive(Clone, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Page {
    magic: [u8; 4],
    version: U16,
    level: u8,
    reserved0: u8,
    layer: U32,
    /// Entries that are not absent.
    used: U32,
    index: U64,
    /// The newest batch sequence that changed anything at or below this page.
    birth: U64,
    reserved: [u8; 32],
    positions: [U64; PAGE_ENTRIES],
    crcs: [U32; PAGE_ENTRIES],
    tail: [u8; BLOCK_BYTES - 64 - 12 * PAGE_ENTRIES],
}

const _: () = assert!(size_of::<Page>() == BLOCK_BYTES);
const _: () = assert!(std::mem::offset_of!(Page, positions) == 64);

/// Whether a page may contain this position for a block, or for a page below it.
fn may_say(page: PageKey, position: Position) -> bool {
    match position {
        Position::ABSENT => true,
        _ if page.level > 1 => position.is_stored(),
        Position::FORWARD => page.layer == FORWARDS,
        _ => position == Position::ZERO || position.is_mapped(),
    }
}

impl Page {
    pub fn new(key: PageKey) -> Page {
        let mut page = Page::new_zeroed();
        page.magic = *MAGIC;
        page.version = U16::new(LOG_VERSION);
        page.level = key.level;
        page.layer = U32::new(key.layer.0);
        page.index = U64::new(key.index);
        page
    }

    /// Reads a page, which must be the named one.
    pub fn parse(bytes: &[u8], key: PageKey) -> Result<Page, FormatError> {
        let page = Page::read_from_bytes(bytes).map_err(|_| FormatError::Foreign)?;
        if page.magic != *MAGIC {
            return Err(FormatError::Foreign);
        }
        if page.version.get() > LOG_VERSION {
            return Err(FormatError::FutureVersion(page.version.get()));
        }
        let used = page.positions.iter().filter(|position| position.get() != 0).count();
        let may_say = |position| may_say(key, position);
        let is_sane = page.positions.iter().all(|position| may_say(Position(position.get())));
        if page.key() != key || page.used.get() as usize != used || !is_sane {
            return Err(FormatError::Damaged);
        }
        Ok(page)
    }

    pub fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    pub fn key(&self) -> PageKey {
        PageKey { layer: LayerId(self.layer.get()), level: self.level, index: self.index.get() }
    }

    pub fn entry(&self, index: usize) -> MapEntry {
        MapEntry { position: Position(self.positions[index].get()), crc: self.crcs[index].get() }
    }

    /// Changes an entry; returns the old one.
    pub fn set(&mut self, index: usize, entry: MapEntry, birth: u64) -> MapEntry {
        let old = self.entry(index);
        self.positions[index].set(entry.position.0);
        self.crcs[index].set(entry.crc);
        let was = u32::from(old.position != Position::ABSENT);
        let is = u32::from(entry.position != Position::ABSENT);
        self.used.set(self.used.get() + is - was);
        self.birth.set(self.birth.get().max(birth));
        old
    }

    pub fn is_empty(&self) -> bool {
        self.used.get() == 0
    }

    pub fn birth(&self) -> u64 {
        self.birth.get()
    }
}

/// The position in the log that a map entry names, if it names one.
pub(crate) fn stored(entry: MapEntry) -> Option<Position> {
    Some(entry.position).filter(|position| position.is_stored())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::position::SegmentId;

    const KEY: PageKey = PageKey { layer: LayerId(3), level: 1, index: 300 };

    #[test]
    fn counts_what_it_holds_and_parses_back() {
        let mut page = Page::new(KEY);
        let entry = MapEntry { position: Position::new(SegmentId(1), 0, 1, 0), crc: 7 };
        assert_eq!(page.set(5, entry, 10), MapEntry::ABSENT);
        assert_eq!(page.set(6, MapEntry::ZERO, 9), MapEntry::ABSENT);
        assert_eq!(page.set(5, entry, 10), entry);
        assert_eq!((page.used.get(), page.birth()), (2, 10));
        let again = Page::parse(page.bytes(), KEY).expect("its own bytes");
        assert_eq!(again.bytes(), page.bytes());
        assert_eq!(again.entry(5), entry);
        page.set(5, MapEntry::ABSENT, 11);
        page.set(6, MapEntry::ABSENT, 11);
        assert!(page.is_empty());
    }

    #[test]
    fn refuses_another_page_and_false_counts() {
        let mut page = Page::new(KEY);
        page.set(5, MapEntry::ZERO, 1);
        let other = PageKey { index: 301, ..KEY };
        assert_eq!(Page::parse(page.bytes(), other).err(), Some(FormatError::Damaged));
        let mut bytes = page.bytes().to_vec();
        bytes[12] = 9;
        assert_eq!(Page::parse(&bytes, KEY).err(), Some(FormatError::Damaged));
        bytes[4] = LOG_VERSION as u8 + 1;
        assert_eq!(Page::parse(&bytes, KEY).err(), Some(FormatError::FutureVersion(LOG_VERSION + 1)));
        assert_eq!(Page::parse(&[0; BLOCK_BYTES], KEY).err(), Some(FormatError::Foreign));
    }

    #[test]
    fn keys_climb() {
        assert_eq!(PageKey::of_block(LayerId(1), 70_000).index, 273);
        assert_eq!(KEY.parent(), PageKey { layer: LayerId(3), level: 2, index: 1 });
        assert_eq!(KEY.entry_in_parent(), 44);
    }
}
