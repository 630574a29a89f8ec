//! A checkpoint's table: the lane's segments, the tail that replay reads, and the layers' roots.
//!
//! The table is written into the log like all other data. The root gives its position.

use base::limits::{DRIVES_MAX, WIDTH_MAX};
use base::{Epoch, LayerId, Sequence};

use super::FormatError;
use super::codec::{Reader, Writer};
use super::page::{LEVEL_MAX, MapEntry};
use crate::geometry::position::{Position, SegmentId};
use crate::geometry::protection::Shape;

/// One column of a segment: a chunk of a drive. The drive's number is its index in the label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Column {
    pub drive: u8,
    pub chunk: u32,
}

/// The columns of a segment. A column may be absent from the start if drives were missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentColumns {
    pub id: SegmentId,
    /// The epoch of the pool in which the segment was made and all its batches were written. An id alone does not
    /// identify a segment: after a crash it may be used again before the newest checkpoint knows of it.
    pub epoch: Epoch,
    pub parity: u8,
    pub columns: Vec<Option<Column>>,
}

impl SegmentColumns {
    pub fn shape(&self) -> Shape {
        Shape::new(self.columns.len() as u8, self.parity)
    }
}

const NO_DRIVE: u8 = 0xFF;
const _: () = assert!(DRIVES_MAX < NO_DRIVE as usize);

pub(super) fn write_columns(out: &mut Writer, segment: &SegmentColumns) {
    out.u32(segment.id.0);
    out.u64(segment.epoch.0);
    out.u8(segment.parity);
    out.u8(segment.columns.len() as u8);
    for column in &segment.columns {
        out.u8(column.map_or(NO_DRIVE, |column| column.drive));
        out.u32(column.map_or(0, |column| column.chunk));
    }
}

pub(super) fn read_columns(input: &mut Reader<'_>) -> Result<SegmentColumns, FormatError> {
    let id = SegmentId(input.u32()?);
    let epoch = Epoch(input.u64()?);
    let parity = input.u8()?;
    let width = input.u8()?;
    if parity > 2 || width <= parity || usize::from(width) > WIDTH_MAX || id.0 == 0 {
        return Err(FormatError::Damaged);
    }
    let column = |input: &mut Reader<'_>| {
        let (drive, chunk) = (input.u8()?, input.u32()?);
        match drive {
            NO_DRIVE if chunk == 0 => Ok(None),
            _ if usize::from(drive) >= DRIVES_MAX => Err(FormatError::Damaged),
            _ => Ok(Some(Column { drive, chunk })),
        }
    };
    let columns = (0..width).map(|_| column(input)).collect::<Result<_, _>>()?;
    Ok(SegmentColumns { id, epoch, parity, columns })
}

/// A segment as the checkpoint saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentRecord {
    pub columns: SegmentColumns,
    /// Live blocks: those that the checkpoint's map points at, its own pages among them.
    pub live: u32,
    /// Rows that batches fill.
    pub used_rows: u32,
    /// The newest batch in it.
    pub last: Sequence,
    /// Some column of some batch was not written: redundancy must be restored.
    pub incomplete: bool,
    /// Not sealed: batches may follow, or none has been written yet.
    pub open: bool,
}

/// A layer as the checkpoint saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayerRecord {
    pub id: LayerId,
    /// The frozen layer below, if any.
    pub parent: Option<LayerId>,
    /// Level of the root page.
    pub height: u8,
    /// Dropped: it will be emptied or merged as soon as at most one layer is above it.
    pub dropping: bool,
    /// Blocks mapped to a position.
    pub mapped: u64,
    /// The root page; absent if nothing is mapped.
    pub root: MapEntry,
    /// The name that requests use: the layer's id, or the id of a layer that was merged into it.
    pub name: LayerId,
    /// Its pages are being merged into this one.
    pub merging: Option<LayerId>,
}

/// The content of a checkpoint, except the map pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// The next segment gets this id.
    pub next_segment: u32,
    /// The position of the first batch after the checkpoint: its row in the first segment of `tail`.
    pub tail_row: u32,
    /// The segments that may hold batches after the checkpoint, in the order in which they are used.
    pub tail: Vec<SegmentId>,
    pub segments: Vec<SegmentRecord>,
    pub layers: Vec<LayerRecord>,
    /// How many map entries refer to each layer, by the layer's name. In order of names; never zero.
    pub referred: Vec<(LayerId, u64)>,
}

const FLAG_INCOMPLETE: u8 = 1;
const FLAG_OPEN: u8 = 2;

impl Table {
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(self.next_segment);
        out.u32(self.tail_row);
        out.u32(self.tail.len() as u32);
        for id in &self.tail {
            out.u32(id.0);
        }
        out.u32(self.segments.len() as u32);
        for segment in &self.segments {
            write_columns(&mut out, &segment.columns);
            out.u32(segment.live);
            out.u32(segment.used_rows);
            out.u64(segment.last.0);
            out.u8(u8::from(segment.incomplete) * FLAG_INCOMPLETE + u8::from(segment.open) * FLAG_OPEN);
        }
        out.u32(self.layers.len() as u32);
        for layer in &self.layers {
            out.u32(layer.id.0);
            out.u32(layer.parent.map_or(0, |parent| parent.0));
            out.u8(layer.height);
            out.u8(u8::from(layer.dropping));
            out.u64(layer.mapped);
            out.u64(layer.root.position.0);
            out.u32(layer.root.crc);
            out.u32(layer.name.0);
            out.u32(layer.merging.map_or(0, |into| into.0));
        }
        out.u32(self.referred.len() as u32);
        for &(layer, entries) in &self.referred {
            out.u32(layer.0);
            out.u64(entries);
        }
        out.0
    }

    pub fn parse(bytes: &[u8]) -> Result<Table, FormatError> {
        let mut input = Reader(bytes);
        let next_segment = input.u32()?;
        let tail_row = input.u32()?;
        let count = input.count(4)?;
        let tail = (0..count).map(|_| input.u32().map(SegmentId)).collect::<Result<Vec<_>, _>>()?;
        let count = input.count(28)?;
        let segments = (0..count).map(|_| read_segment(&mut input)).collect::<Result<Vec<_>, _>>()?;
        let count = input.count(38)?;
        let layers = (0..count).map(|_| read_layer(&mut input)).collect::<Result<Vec<_>, _>>()?;
        let count = input.count(12)?;
        let read_count = |_| Ok((LayerId(input.u32()?), input.u64()?));
        let referred = (0..count).map(read_count).collect::<Result<Vec<_>, _>>()?;
        let table = Table { next_segment, tail_row, tail, segments, layers, referred };
        if input.0.is_empty() && table.is_sane() { Ok(table) } else { Err(FormatError::Damaged) }
    }

    fn is_sane(&self) -> bool {
        let ids: Vec<SegmentId> = self.segments.iter().map(|segment| segment.columns.id).collect();
        let mut chunks: Vec<Column> = self
            .segments
            .iter()
            .flat_map(|segment| segment.columns.columns.iter().copied().flatten())
            .collect();
        chunks.sort_unstable();
        ids.is_sorted_by(|a, b| a < b)
            && ids.last().is_none_or(|last| last.0 < self.next_segment)
            && self.tail.iter().all(|id| ids.binary_search(id).is_ok())
            && chunks.is_sorted_by(|a, b| a < b)
            && self.referred.is_sorted_by(|a, b| a.0 < b.0)
            && self.referred.iter().all(|&(_, entries)| entries > 0)
    }
}

fn read_segment(input: &mut Reader<'_>) -> Result<SegmentRecord, FormatError> {
    let columns = read_columns(input)?;
    let (live, used_rows, last, flags) = (input.u32()?, input.u32()?, Sequence(input.u64()?), input.u8()?);
    if flags > FLAG_INCOMPLETE + FLAG_OPEN || used_rows > 0x1_0000 {
        return Err(FormatError::Damaged);
    }
    let (incomplete, open) = (flags & FLAG_INCOMPLETE != 0, flags & FLAG_OPEN != 0);
    Ok(SegmentRecord { columns, live, used_rows, last, incomplete, open })
}

fn read_layer(input: &mut Reader<'_>) -> Result<LayerRecord, FormatError> {
    let id = LayerId(input.u32()?);
    let parent = Some(LayerId(input.u32()?)).filter(|parent| parent.0 != 0);
    let height = input.u8()?;
    let dropping = input.u8()?;
    let mapped = input.u64()?;
    let root = MapEntry { position: Position(input.u64()?), crc: input.u32()? };
    let name = LayerId(input.u32()?);
    let merging = Some(LayerId(input.u32()?)).filter(|into| into.0 != 0);
    if !(1..=LEVEL_MAX).contains(&height)
        || dropping > 1
        || root.position != Position::ABSENT && !root.position.is_stored()
    {
        return Err(FormatError::Damaged);
    }
    Ok(LayerRecord { id, parent, height, dropping: dropping == 1, mapped, root, name, merging })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Table {
        let segment = |id: u32, open| SegmentRecord {
            columns: SegmentColumns {
                id: SegmentId(id),
                epoch: Epoch(2),
                parity: 1,
                columns: vec![
                    Some(Column { drive: 0, chunk: id }),
                    None,
                    Some(Column { drive: 2, chunk: id }),
                ],
            },
            live: 5 * id,
            used_rows: 7,
            last: Sequence(90 + u64::from(id)),
            incomplete: id == 2,
            open,
        };
        let root = MapEntry { position: Position::new(SegmentId(2), 1, 1, 0), crc: 9 };
        Table {
            next_segment: 4,
            tail_row: 3,
            tail: vec![SegmentId(3), SegmentId(1)],
            segments: vec![segment(1, true), segment(2, false), segment(3, true)],
            layers: vec![
                LayerRecord {
                    id: LayerId(1),
                    parent: None,
                    height: 1,
                    dropping: false,
                    mapped: 3,
                    root,
                    name: LayerId(7),
                    merging: None,
                },
                LayerRecord {
                    id: LayerId(2),
                    parent: Some(LayerId(1)),
                    height: 3,
                    dropping: true,
                    mapped: 0,
                    root: MapEntry::ABSENT,
                    name: LayerId(2),
                    merging: Some(LayerId(1)),
                },
            ],
            referred: vec![(LayerId(1), 2), (LayerId(7), 1 << 40)],
        }
    }

    #[test]
    fn parses_what_it_emits() {
        assert_eq!(Table::parse(&example().emit()), Ok(example()));
        assert_eq!(Table::parse(&Table::default().emit()), Ok(Table::default()));
    }

    #[test]
    fn refuses_a_chunk_in_two_segments_and_an_unknown_tail() {
        let mut table = example();
        table.segments[1].columns.columns[0] = Some(Column { drive: 0, chunk: 1 });
        assert_eq!(Table::parse(&table.emit()), Err(FormatError::Damaged));
        let mut table = example();
        table.tail.push(SegmentId(9));
        assert_eq!(Table::parse(&table.emit()), Err(FormatError::Damaged));
        let mut table = example();
        table.next_segment = 3;
        assert_eq!(Table::parse(&table.emit()), Err(FormatError::Damaged));
        let mut table = example();
        table.referred[1].1 = 0;
        assert_eq!(Table::parse(&table.emit()), Err(FormatError::Damaged));
    }

    proptest! {
        #[test]
        fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(table) = Table::parse(&noise) {
                prop_assert_eq!(Table::parse(&table.emit()), Ok(table));
            }
        }

        #[test]
        fn cut_short_or_changed_is_refused_or_means_something(cut in 0usize..200, byte in 0usize..200, value in any::<u8>()) {
            let mut bytes = example().emit();
            bytes.truncate(cut.min(bytes.len() - 1));
            prop_assert_eq!(Table::parse(&bytes), Err(FormatError::Damaged));
            let mut bytes = example().emit();
            let at = byte % bytes.len();
            bytes[at] = value;
            if let Ok(table) = Table::parse(&bytes) {
                prop_assert_eq!(table.emit(), bytes);
            }
        }
    }
}
