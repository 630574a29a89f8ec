//! A batch's header: one block that names the batch's place in the log and every block in the batch.
//!
//! A batch is whole if a copy of its header is whole and every data block that the header names matches its checksum,
//! or can be rebuilt from the batch's parity.

use base::{BLOCK_BYTES, Epoch, LayerId, PoolId, Sequence};
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::page::{LEVEL_MAX, PAGE_ENTRIES};
use super::{COUNT_MAX, FormatError, LOG_VERSION, check_magic, check_seal, check_version, seal};
use crate::geometry::position::{Position, REFERRED_MAX, SegmentId};
use crate::geometry::reference::Reference;

const MAGIC: &[u8; 8] = b"TNGBATCH";
const CRC_OFFSET: usize = 12;
/// Maximum number of entries of one batch, with and without data.
pub const ENTRIES_MAX: usize = 160;
/// Maximum number of rows of one batch: with one data column, its blocks and a header.
pub const BATCH_ROWS_MAX: usize = ENTRIES_MAX + 1;

const _: () = assert!(BATCH_ROWS_MAX <= 255, "a position has eight bits for it");

/// The meaning of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A block that a host wrote: the layer maps `block` to this position from now on.
    Data { layer: LayerId, block: u64, crc: u32 },
    /// A block moved by cleaning or repair: applies only if the layer's map still points at `from`.
    Move { layer: LayerId, block: u64, crc: u32, from: Position },
    /// No data: `blocks` blocks from `block` on read as zeros.
    Unmap { layer: LayerId, block: u64, blocks: u32 },
    /// A map page, written by a checkpoint. Replay skips it.
    Page { layer: LayerId, level: u8, index: u64, crc: u32 },
    /// A piece of a checkpoint's table. Replay skips it.
    Table { index: u64, crc: u32 },
    /// No data: a layer begins, above a frozen one if `parent` names it. Its root page is on level `height`.
    Layer { layer: LayerId, parent: Option<LayerId>, height: u8 },
    /// No data: a layer ends; blocks that no other layer uses are freed.
    Drop { layer: LayerId },
    /// No data: `into` takes over the content of leaf page `index` of `from`. See `merge.rs`.
    Merge { from: LayerId, into: LayerId, index: u64 },
    /// No data: nothing is left in `from`; `into` takes its place.
    Merged { from: LayerId, into: LayerId },
    /// No data: `blocks` blocks of one leaf page, from `block` on, refer to the same number of blocks of another layer.
    Refer { layer: LayerId, block: u64, blocks: u32, to: Reference },
}

impl Entry {
    /// The checksum of the entry's data block, if it has one.
    pub fn crc(&self) -> Option<u32> {
        match *self {
            Entry::Data { crc, .. }
            | Entry::Move { crc, .. }
            | Entry::Page { crc, .. }
            | Entry::Table { crc, .. } => Some(crc),
            Entry::Unmap { .. }
            | Entry::Layer { .. }
            | Entry::Drop { .. }
            | Entry::Merge { .. }
            | Entry::Merged { .. }
            | Entry::Refer { .. } => None,
        }
    }

    /// Sets the checksum of the entry's data.
    pub fn set_crc(&mut self, value: u32) {
        match self {
            Entry::Data { crc, .. }
            | Entry::Move { crc, .. }
            | Entry::Page { crc, .. }
            | Entry::Table { crc, .. } => {
                *crc = value;
            }
            Entry::Unmap { .. }
            | Entry::Layer { .. }
            | Entry::Drop { .. }
            | Entry::Merge { .. }
            | Entry::Merged { .. }
            | Entry::Refer { .. } => {
                unreachable!("this entry has no data")
            }
        }
    }

    /// Whether only checkpoints make such entries.
    pub fn is_checkpoint(&self) -> bool {
        matches!(self, Entry::Page { .. } | Entry::Table { .. })
    }

    /// Whether the requester must know if the entry was committed. Such an entry waits until the log can be written
    /// again. Entries of a checkpoint wait, too, because each failed checkpoint would have used up space for nothing.
    pub fn must_be_known(&self) -> bool {
        self.is_checkpoint()
            || matches!(
                self,
                Entry::Layer { parent: Some(_), .. }
                    | Entry::Drop { .. }
                    | Entry::Merge { .. }
                    | Entry::Merged { .. }
            )
    }

    /// Whether the entry may free blocks without writing them anew.
    pub fn may_free(&self) -> bool {
        matches!(self, Entry::Unmap { .. } | Entry::Drop { .. } | Entry::Merge { .. } | Entry::Refer { .. })
    }

    pub fn has_data(&self) -> bool {
        self.crc().is_some()
    }
}

/// A batch's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchHeader {
    pub pool: PoolId,
    pub epoch: Epoch,
    pub lane: u16,
    pub segment: SegmentId,
    pub row: u16,
    pub rows: u8,
    pub sequence: Sequence,
    /// Every batch up to this one was durable when this header was written.
    pub durable: Sequence,
    pub entries: Vec<Entry>,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawEntry {
    /// Block or index in the low 48 bits, level in the next 8, kind in the highest 8.
    key: U64,
    layer: U32,
    crc: U32,
    /// Move: the old position. Unmap: the number of blocks. Layer: the parent. Merge, Merged: the layer merged into.
    /// Refer: the first block that is referred to; the checksum field holds its layer.
    argument: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    version: U16,
    entries_count: U16,
    crc: U32,
    pool: U128,
    epoch: U64,
    sequence: U64,
    durable: U64,
    segment: U32,
    row: U16,
    rows: u8,
    reserved0: u8,
    lane: U16,
    reserved: [u8; 46],
    entries: [RawEntry; ENTRIES_MAX],
    tail: [u8; BLOCK_BYTES - 112 - 24 * ENTRIES_MAX],
}

const _: () = assert!(size_of::<RawEntry>() == 24);
const _: () = assert!(size_of::<RawHeader>() == BLOCK_BYTES);
const _: () = assert!(std::mem::offset_of!(RawHeader, entries) == 112);
const _: () = assert!(std::mem::offset_of!(RawHeader, crc) == CRC_OFFSET);

const KIND_DATA: u8 = 1;
const KIND_MOVE: u8 = 2;
const KIND_UNMAP: u8 = 3;
const KIND_PAGE: u8 = 4;
const KIND_TABLE: u8 = 5;
const KIND_LAYER: u8 = 6;
const KIND_DROP: u8 = 7;
const KIND_MERGE: u8 = 8;
const KIND_MERGED: u8 = 9;
const KIND_REFER: u8 = 10;
const BLOCK_BITS: u32 = 48;

impl RawEntry {
    fn of(entry: &Entry) -> RawEntry {
        let (kind, layer, level, block, crc, argument) = match *entry {
            Entry::Data { layer, block, crc } => (KIND_DATA, layer.0, 0, block, crc, 0),
            Entry::Move { layer, block, crc, from } => (KIND_MOVE, layer.0, 0, block, crc, from.0),
            Entry::Unmap { layer, block, blocks } => (KIND_UNMAP, layer.0, 0, block, 0, u64::from(blocks)),
            Entry::Page { layer, level, index, crc } => (KIND_PAGE, layer.0, level, index, crc, 0),
            Entry::Table { index, crc } => (KIND_TABLE, 0, 0, index, crc, 0),
            Entry::Layer { layer, parent, height } => {
                (KIND_LAYER, layer.0, height, 0, 0, u64::from(parent.map_or(0, |parent| parent.0)))
            }
            Entry::Drop { layer } => (KIND_DROP, layer.0, 0, 0, 0, 0),
            Entry::Merge { from, into, index } => (KIND_MERGE, from.0, 0, index, 0, u64::from(into.0)),
            Entry::Merged { from, into } => (KIND_MERGED, from.0, 0, 0, 0, u64::from(into.0)),
            Entry::Refer { layer, block, blocks, to } => {
                (KIND_REFER, layer.0, (blocks - 1) as u8, block, to.layer.0, to.block)
            }
        };
        assert!(block >> BLOCK_BITS == 0, "a block number has 48 bits");
        RawEntry {
            key: U64::new(u64::from(kind) << 56 | u64::from(level) << 48 | block),
            layer: U32::new(layer),
            crc: U32::new(crc),
            argument: U64::new(argument),
        }
    }

    fn meaning(&self) -> Option<Entry> {
        let key = self.key.get();
        let (kind, level, block) = ((key >> 56) as u8, (key >> 48) as u8, key & ((1 << BLOCK_BITS) - 1));
        let (layer, crc, argument) = (LayerId(self.layer.get()), self.crc.get(), self.argument.get());
        let entry = match kind {
            KIND_DATA => Entry::Data { layer, block, crc },
            KIND_MOVE => Entry::Move { layer, block, crc, from: Position(argument) },
            KIND_UNMAP => {
                let blocks = u32::try_from(argument).ok().filter(|&blocks| within_page(block, blocks))?;
                Entry::Unmap { layer, block, blocks }
            }
            KIND_PAGE => Entry::Page { layer, level, index: block, crc },
            KIND_TABLE => Entry::Table { index: block, crc },
            KIND_LAYER if (1..=LEVEL_MAX).contains(&level) => {
                let parent = Some(LayerId(u32::try_from(argument).ok()?)).filter(|parent| parent.0 != 0);
                Entry::Layer { layer, parent, height: level }
            }
            KIND_DROP => Entry::Drop { layer },
            KIND_MERGE => {
                Entry::Merge { from: layer, into: LayerId(u32::try_from(argument).ok()?), index: block }
            }
            KIND_MERGED => Entry::Merged { from: layer, into: LayerId(u32::try_from(argument).ok()?) },
            KIND_REFER => {
                let blocks = u32::from(level) + 1;
                let known = argument.checked_add(u64::from(blocks)).is_some_and(|end| end <= REFERRED_MAX);
                if !within_page(block, blocks) || !known {
                    return None;
                }
                let to = Reference { layer: LayerId(crc), block: argument };
                Entry::Refer { layer, block, blocks, to }
            }
            _ => return None,
        };
        Some(entry)
    }
}

/// Whether the blocks are in one leaf page.
fn within_page(block: u64, blocks: u32) -> bool {
    blocks > 0 && block % PAGE_ENTRIES as u64 + u64::from(blocks) <= PAGE_ENTRIES as u64
}

impl BatchHeader {
    /// The number of entries with a data block, which is the number of slots.
    pub fn blocks(&self) -> usize {
        self.entries.iter().filter(|entry| entry.has_data()).count()
    }

    /// The entries that have data, with their slots and checksums.
    pub fn data(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().filter(|entry| entry.has_data()).enumerate()
    }

    pub fn position(&self, slot: usize) -> Position {
        Position::new(self.segment, usize::from(self.row), usize::from(self.rows), slot)
    }

    /// Writes the header into `target`, one block.
    pub fn emit(&self, target: &mut [u8]) {
        assert!(self.entries.len() <= ENTRIES_MAX);
        let mut raw = RawHeader::new_zeroed();
        raw.magic = *MAGIC;
        raw.version = U16::new(LOG_VERSION);
        raw.entries_count = U16::new(self.entries.len() as u16);
        raw.pool = U128::new(self.pool.0);
        raw.epoch = U64::new(self.epoch.0);
        raw.sequence = U64::new(self.sequence.0);
        raw.durable = U64::new(self.durable.0);
        raw.segment = U32::new(self.segment.0);
        raw.row = U16::new(self.row);
        raw.rows = self.rows;
        raw.lane = U16::new(self.lane);
        for (slot, entry) in raw.entries.iter_mut().zip(&self.entries) {
            *slot = RawEntry::of(entry);
        }
        target.copy_from_slice(raw.as_bytes());
        seal(target, CRC_OFFSET);
    }

    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, FormatError> {
        let (raw, _) = RawHeader::ref_from_prefix(bytes).map_err(|_| FormatError::Foreign)?;
        check_magic(bytes, MAGIC)?;
        check_seal(raw.as_bytes(), CRC_OFFSET)?;
        check_version(raw.version.get())?;
        let entries = raw.entries.get(..usize::from(raw.entries_count.get())).ok_or(FormatError::Damaged)?;
        let header = BatchHeader {
            pool: PoolId(raw.pool.get()),
            epoch: Epoch(raw.epoch.get()),
            lane: raw.lane.get(),
            segment: SegmentId(raw.segment.get()),
            row: raw.row.get(),
            rows: raw.rows,
            sequence: Sequence(raw.sequence.get()),
            durable: Sequence(raw.durable.get()),
            entries: entries
                .iter()
                .map(RawEntry::meaning)
                .collect::<Option<_>>()
                .ok_or(FormatError::Damaged)?,
        };
        if header.rows == 0 || header.segment.0 == 0 || header.sequence.0 > COUNT_MAX {
            return Err(FormatError::Damaged);
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> BatchHeader {
        BatchHeader {
            pool: PoolId(0xB00B),
            epoch: Epoch(3),
            lane: 1,
            segment: SegmentId(7),
            row: 12,
            rows: 2,
            sequence: Sequence(99),
            durable: Sequence(95),
            entries: vec![
                Entry::Data { layer: LayerId(5), block: 1 << 40, crc: 1 },
                Entry::Unmap { layer: LayerId(5), block: 8, blocks: 248 },
                Entry::Move {
                    layer: LayerId(6),
                    block: 2,
                    crc: 2,
                    from: Position::new(SegmentId(3), 1, 1, 0),
                },
                Entry::Page { layer: LayerId(6), level: 3, index: 77, crc: 3 },
                Entry::Table { index: 4, crc: 4 },
                Entry::Layer { layer: LayerId(9), parent: Some(LayerId(5)), height: 4 },
                Entry::Drop { layer: LayerId(5) },
                Entry::Merge { from: LayerId(5), into: LayerId(9), index: 1 << 30 },
                Entry::Merged { from: LayerId(5), into: LayerId(9) },
                Entry::Refer {
                    layer: LayerId(9),
                    block: 1 << 30,
                    blocks: 256,
                    to: Reference { layer: LayerId(u32::MAX - 1), block: REFERRED_MAX - 256 },
                },
            ],
        }
    }

    #[test]
    fn parses_what_it_emits() {
        let mut bytes = [0; BLOCK_BYTES];
        example().emit(&mut bytes);
        assert_eq!(&bytes[..8], MAGIC);
        assert_eq!(BatchHeader::parse(&bytes), Ok(example()));
        assert_eq!(example().blocks(), 4);
        assert_eq!(example().data().map(|(slot, entry)| (slot, entry.crc())).last(), Some((3, Some(4))));
    }

    proptest! {
        #[test]
        fn never_panics_and_notices_every_flipped_bit(bit in 0usize..BLOCK_BYTES * 8) {
            let mut bytes = [0; BLOCK_BYTES];
            example().emit(&mut bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(BatchHeader::parse(&bytes).is_err());
        }

        #[test]
        fn sealed_noise_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), BLOCK_BYTES), count in 0u8..200) {
            bytes[..8].copy_from_slice(MAGIC);
            bytes[8..12].copy_from_slice(&[1, 0, count, 0]);
            seal(&mut bytes, CRC_OFFSET);
            if let Ok(header) = BatchHeader::parse(&bytes) {
                let mut again = vec![0; BLOCK_BYTES];
                header.emit(&mut again);
                prop_assert_eq!(BatchHeader::parse(&again), Ok(header));
            }
        }
    }
}
