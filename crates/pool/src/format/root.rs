//! A lane's root: it names the newest checkpoint and is at a fixed place on every drive.
//!
//! The root gives the position of the checkpoint's table in the log. Only the table names the columns of segments, so
//! the root also holds the columns of the segments that contain the table. Each lane has two slots, which are written
//! in turn. The root with the highest (epoch, generation) counts.
//!
//! ```text
//! | magic | version | crc | length | pool | epoch | generation | sequence | end | lane | table bytes |
//! | count, segments: id, epoch, columns  | count, table blocks: position, crc |
//! ```

use base::{BLOCK_BYTES, Epoch, PoolId, Sequence};

use super::codec::{Reader, Writer};
use super::page::MapEntry;
use super::table::{SegmentColumns, read_columns, write_columns};
use super::{FormatError, LOG_VERSION, ROOT_SLOT_BYTES, check_magic, check_seal, check_version, seal};
use crate::geometry::position::Position;

const MAGIC: &[u8; 8] = b"TNGROOT\x01";
const CRC_OFFSET: usize = 12;
const START_BYTES: usize = 20;

/// Blocks of the largest table that a root can name, whatever the width.
pub const TABLE_BLOCKS_MAX: usize = 1000;

/// A lane's newest checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    pub pool: PoolId,
    pub lane: u16,
    /// The epoch that wrote the root. The newest root is the one with the highest (epoch, generation): a root that an
    /// earlier epoch left on a drive that was away no longer counts.
    pub epoch: Epoch,
    /// Increases by one with every checkpoint.
    pub generation: u64,
    /// The checkpoint holds the effect of every batch up to this one.
    pub sequence: Sequence,
    /// The last batch that counts: a recovery has found the next one to be torn. [`Root::NO_END`] if the log continues.
    pub end: Sequence,
    /// Length of the table.
    pub table_bytes: u32,
    /// The table's blocks, in order.
    pub table: Vec<MapEntry>,
    /// The segments that contain these blocks.
    pub segments: Vec<SegmentColumns>,
}

impl Root {
    pub const NO_END: Sequence = Sequence(u64::MAX);

    /// A multiple of 4 KiB, at most [`ROOT_SLOT_BYTES`].
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.0.extend(MAGIC);
        out.u16(LOG_VERSION);
        out.u16(0);
        out.u32(0); // crc
        out.u32(0); // length
        out.u128(self.pool.0);
        out.u64(self.epoch.0);
        out.u64(self.generation);
        out.u64(self.sequence.0);
        out.u64(self.end.0);
        out.u16(self.lane);
        out.u32(self.table_bytes);
        out.u32(self.segments.len() as u32);
        for segment in &self.segments {
            write_columns(&mut out, segment);
        }
        out.u32(self.table.len() as u32);
        for block in &self.table {
            out.u64(block.position.0);
            out.u32(block.crc);
        }
        let mut bytes = out.0;
        let length = bytes.len();
        assert!(length as u64 <= ROOT_SLOT_BYTES, "a root of {length} bytes does not fit its slot");
        bytes[16..START_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
        seal(&mut bytes, CRC_OFFSET);
        // the whole slot is read, so the whole slot is written: this makes an unreadable block readable again
        bytes.resize(ROOT_SLOT_BYTES as usize, 0);
        bytes
    }

    /// Reads a root slot.
    pub fn parse(bytes: &[u8]) -> Result<Root, FormatError> {
        check_magic(bytes, MAGIC)?;
        let length = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]) as usize;
        let bytes =
            bytes.get(..length).filter(|bytes| bytes.len() > START_BYTES).ok_or(FormatError::Damaged)?;
        check_seal(bytes, CRC_OFFSET)?;
        check_version(u16::from_le_bytes([bytes[8], bytes[9]]))?;
        let mut input = Reader(&bytes[START_BYTES..]);
        let pool = PoolId(input.u128()?);
        let epoch = Epoch(input.u64()?);
        let generation = input.u64()?;
        let sequence = Sequence(input.u64()?);
        let end = Sequence(input.u64()?);
        let lane = input.u16()?;
        let table_bytes = input.u32()?;
        let count = input.count(16)?;
        let segments = (0..count).map(|_| read_columns(&mut input)).collect::<Result<Vec<_>, _>>()?;
        let count = input.count(12)?;
        let block =
            |input: &mut Reader<'_>| Ok(MapEntry { position: Position(input.u64()?), crc: input.u32()? });
        let table = (0..count).map(|_| block(&mut input)).collect::<Result<Vec<_>, FormatError>>()?;
        let fits = table.len() * BLOCK_BYTES >= table_bytes as usize;
        let named = |entry: &MapEntry| segments.iter().any(|segment| segment.id == entry.position.segment());
        if !input.0.is_empty() || !fits || !table.iter().all(named) {
            return Err(FormatError::Damaged);
        }
        Ok(Root { pool, lane, epoch, generation, sequence, end, table_bytes, table, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::table::Column;
    use crate::geometry::position::SegmentId;
    use proptest::prelude::*;

    fn example(blocks: usize) -> Root {
        let columns = (0..4).map(|drive| Some(Column { drive, chunk: 9 })).collect();
        Root {
            pool: PoolId(5),
            lane: 3,
            epoch: Epoch(2),
            generation: 8,
            sequence: Sequence(1234),
            end: Sequence(1300),
            table_bytes: (blocks * BLOCK_BYTES) as u32,
            table: (0..blocks)
                .map(|slot| MapEntry {
                    position: Position::new(SegmentId(4), 0, 99, slot % 200),
                    crc: slot as u32,
                })
                .collect(),
            segments: vec![SegmentColumns { id: SegmentId(4), epoch: Epoch(2), parity: 1, columns }],
        }
    }

    #[test]
    fn parses_what_it_emits_up_to_the_largest() {
        for blocks in [0, 1, 300, TABLE_BLOCKS_MAX] {
            let bytes = example(blocks).emit();
            assert_eq!(bytes.len() % BLOCK_BYTES, 0);
            assert_eq!(Root::parse(&bytes), Ok(example(blocks)));
        }
    }

    #[test]
    fn a_largest_root_fits_its_slot_at_the_largest_width() {
        let column = Some(Column { drive: 1, chunk: 1 });
        let wide = SegmentColumns {
            id: SegmentId(4),
            epoch: Epoch(2),
            parity: 2,
            columns: vec![column; base::limits::WIDTH_MAX],
        };
        let root = Root { segments: vec![wide; 32], ..example(TABLE_BLOCKS_MAX) };
        assert!(root.emit().len() as u64 <= ROOT_SLOT_BYTES);
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_noticed(bit in 0usize..200 * 8) {
            let mut bytes = example(10).emit();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Root::parse(&bytes).is_err());
        }

        #[test]
        fn sealed_noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 8..200)) {
            let mut bytes = example(1).emit();
            let length = START_BYTES + noise.len();
            bytes[START_BYTES..length].copy_from_slice(&noise);
            bytes[16..20].copy_from_slice(&(length as u32).to_le_bytes());
            seal(&mut bytes[..length], CRC_OFFSET);
            if let Ok(root) = Root::parse(&bytes) {
                prop_assert_eq!(Root::parse(&root.emit()), Ok(root));
            }
        }
    }
}
