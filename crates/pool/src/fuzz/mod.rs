//! Fuzzing of the parsers of everything on a drive. No input bytes may cause a panic. If input parses, the result must
//! emit bytes that parse to the same result.

mod numbers;
mod sealed;
mod table;

use base::{BLOCK_BYTES, LayerId};

use crate::format::header::BatchHeader;
use crate::format::label::Label;
use crate::format::page::{MapEntry, PAGE_ENTRIES, Page, PageKey};
use crate::format::root::Root;
use crate::format::table::Table;
use crate::requests::catalog::SlotHeader;

pub use numbers::Dice;
pub use sealed::{Drives, Sealed, change};

pub fn label(bytes: &[u8]) {
    if let Ok(label) = Label::parse(bytes) {
        assert_eq!(Label::parse(&label.emit()), Ok(label));
    }
}

pub fn batch_header(bytes: &[u8]) {
    if let Ok(header) = BatchHeader::parse(bytes) {
        let mut again = vec![0; BLOCK_BYTES];
        header.emit(&mut again);
        assert_eq!(BatchHeader::parse(&again), Ok(header));
    }
}

pub fn root(bytes: &[u8]) {
    if let Ok(root) = Root::parse(bytes) {
        assert_eq!(Root::parse(&root.emit()), Ok(root));
    }
}

pub fn table(bytes: &[u8]) {
    if let Ok(table) = Table::parse(bytes) {
        assert_eq!(Table::parse(&table.emit()), Ok(table));
    }
}

pub fn catalog_slot(bytes: &[u8]) {
    if let Some(header) = SlotHeader::parse(bytes) {
        assert_eq!(SlotHeader::parse(&header.emit()), Some(header));
    }
}

/// The first 13 bytes name the expected page.
pub fn map_page(bytes: &[u8]) {
    let Some((key, page)) = bytes.split_first_chunk::<13>() else { return };
    let layer = LayerId(u32::from_le_bytes([key[0], key[1], key[2], key[3]]));
    let index = u64::from_le_bytes([key[5], key[6], key[7], key[8], key[9], key[10], key[11], key[12]]);
    let key = PageKey { layer, level: key[4], index };
    let Ok(page) = Page::parse(page, key) else { return };
    assert_eq!(page.key(), key);
    let mut again = Page::new(key);
    for index in 0..PAGE_ENTRIES {
        let entry = page.entry(index);
        if let Some(to) = entry.reference() {
            assert_eq!(MapEntry::referring(to), entry);
        }
        assert_eq!(again.set(index, entry, page.birth()), MapEntry::ABSENT);
    }
    let again = Page::parse(again.bytes(), key).expect("what is said again can be read");
    assert!((0..PAGE_ENTRIES).all(|index| again.entry(index) == page.entry(index)));
    assert_eq!((again.birth(), again.is_empty()), (page.birth(), page.is_empty()));
}
