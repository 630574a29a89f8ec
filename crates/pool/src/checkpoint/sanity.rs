//! Checks what a lane's newest root and table say, against each other and against the pool, before recovery uses it.
//! Root and table are each whole, but they could still name drives, chunks, segments or layers that do not exist, or
//! layers that are below each other.

use base::{HashMap, HashSet, LayerId};

use crate::error::Contradiction;
use crate::format::page::{MapEntry, PAGE_ENTRIES};
use crate::format::root::Root;
use crate::format::table::{LayerRecord, SegmentColumns, Table};
use crate::format::{COUNT_MAX, SEGMENT_MAX};

/// What the pool knows by itself.
pub(crate) struct PoolGeometry<'a> {
    /// Chunks of each drive.
    pub chunks: &'a [u32],
    /// Rows of a segment.
    pub rows: usize,
}

/// The first mismatch, if there is any.
pub(crate) fn find_contradiction(
    root: &Root,
    table: &Table,
    geometry: &PoolGeometry<'_>,
) -> Option<Contradiction> {
    let newer = || {
        root.segments.iter().filter(|columns| table.segments.iter().all(|old| old.columns.id != columns.id))
    };
    let columns = || table.segments.iter().map(|segment| &segment.columns).chain(newer());
    let mut chunks: Vec<_> =
        columns().flat_map(|segment| segment.columns.iter().flatten().copied()).collect();
    chunks.sort_unstable();
    let has_segment = |entry: &MapEntry| {
        !entry.position.is_stored() || columns().any(|columns| columns.id == entry.position.segment())
    };
    let rows = |segment: &crate::format::table::SegmentRecord| {
        let shape = segment.columns.shape();
        segment.used_rows as usize <= geometry.rows && segment.live as usize <= shape.blocks_in(geometry.rows)
    };
    if !columns().all(|segment| is_on_drives(segment, geometry)) {
        return Some(Contradiction::SegmentOnNoDrive);
    }
    if !chunks.is_sorted_by(|a, b| a < b) {
        return Some(Contradiction::ChunkTwice);
    }
    if !table.segments.iter().all(rows) || table.tail_row as usize > geometry.rows {
        return Some(Contradiction::SegmentOverfull);
    }
    if !table.layers.iter().all(|layer| has_segment(&layer.root)) {
        return Some(Contradiction::LayerWithoutMap);
    }
    let counts = [root.epoch.0, root.generation, root.sequence.0];
    let lasts = table.segments.iter().map(|segment| segment.last.0);
    if counts.into_iter().chain(lasts).any(|count| count > COUNT_MAX) {
        return Some(Contradiction::CountTooHigh);
    }
    if table.next_segment > SEGMENT_MAX || columns().any(|columns| columns.id.0 >= SEGMENT_MAX) {
        return Some(Contradiction::SegmentIdsExhausted);
    }
    let mut tail = table.tail.clone();
    tail.sort_unstable();
    if !tail.is_sorted_by(|a, b| a < b) {
        return Some(Contradiction::TailTwice);
    }
    find_contradiction_of_layers(&table.layers)
}

/// Blocks that a tree can name.
fn layer_blocks(height: u8) -> u64 {
    (PAGE_ENTRIES as u64).pow(u32::from(height))
}

fn is_on_drives(segment: &SegmentColumns, geometry: &PoolGeometry<'_>) -> bool {
    let mut drives: Vec<u8> = segment.columns.iter().flatten().map(|column| column.drive).collect();
    drives.sort_unstable();
    drives.is_sorted_by(|a, b| a < b)
        && segment.columns.iter().flatten().all(|column| {
            geometry.chunks.get(usize::from(column.drive)).is_some_and(|&chunks| column.chunk < chunks)
        })
}

fn find_contradiction_of_layers(layers: &[LayerRecord]) -> Option<Contradiction> {
    let geometry: HashMap<LayerId, &LayerRecord> = layers.iter().map(|layer| (layer.id, layer)).collect();
    let find = |id: LayerId| geometry.get(&id).copied();
    if geometry.len() < layers.len() {
        return Some(Contradiction::LayerTwice);
    }
    // a layer that is being emptied reads nothing any more, and may outlive the layer below it
    let parent = |layer: &LayerRecord| layer.parent.filter(|_| !layer.dropping);
    let named = |layer: &LayerRecord| {
        let needed = parent(layer).into_iter().chain(layer.merging);
        needed.into_iter().all(|id| find(id).is_some())
    };
    if !layers.iter().all(named) {
        return Some(Contradiction::LayerOnNone);
    }
    let mut names: Vec<LayerId> = layers.iter().map(|layer| layer.name).collect();
    names.sort_unstable();
    if !names.is_sorted_by(|a, b| a < b) {
        return Some(Contradiction::LayerNameTwice);
    }
    if layers.iter().any(|layer| layer.mapped > layer_blocks(layer.height)) {
        return Some(Contradiction::LayerOverfull);
    }
    if stand_on_each_other(layers, &geometry) {
        return Some(Contradiction::LayersInCircle);
    }
    let may_merge = |layer: &LayerRecord| {
        let target = layer.merging.and_then(find);
        target.is_none_or(|into| {
            let neighbours = layer.parent == Some(into.id) || into.parent == Some(layer.id);
            neighbours && into.height >= layer.height && into.merging.is_none()
        })
    };
    if !layers.iter().all(may_merge) {
        return Some(Contradiction::MergeApart);
    }
    None
}

/// Whether following the parents of some layer leads into a circle.
fn stand_on_each_other(layers: &[LayerRecord], geometry: &HashMap<LayerId, &LayerRecord>) -> bool {
    let mut ends: HashSet<LayerId> = HashSet::default();
    for layer in layers {
        let (mut way, mut next) = (Vec::new(), Some(layer.id));
        while let Some(id) = next.filter(|id| !ends.contains(id)) {
            if way.len() == layers.len() {
                return true;
            }
            way.push(id);
            next = geometry.get(&id).and_then(|layer| layer.parent);
        }
        ends.extend(way);
    }
    false
}

#[cfg(test)]
mod tests {
    use base::{Epoch, PoolId, Sequence};

    use super::*;
    use crate::format::table::{Column, SegmentRecord};
    use crate::geometry::position::{Position, SegmentId};

    const KNOWN: PoolGeometry<'_> = PoolGeometry { chunks: &[10, 10, 10], rows: 16 };

    fn segment(id: u32, chunk: u32) -> SegmentColumns {
        let columns = (0..3).map(|drive| Some(Column { drive, chunk })).collect();
        SegmentColumns { id: SegmentId(id), epoch: Epoch(1), parity: 1, columns }
    }

    fn layer(id: u32, parent: u32) -> LayerRecord {
        LayerRecord {
            id: LayerId(id),
            parent: Some(LayerId(parent)).filter(|parent| parent.0 != 0),
            height: 1,
            dropping: false,
            mapped: 0,
            root: MapEntry { position: Position::new(SegmentId(1), 0, 1, 0), crc: 1 },
            name: LayerId(id),
            merging: None,
        }
    }

    fn sound() -> (Root, Table) {
        let record = |id, chunk| SegmentRecord {
            columns: segment(id, chunk),
            live: 3,
            used_rows: 16,
            last: Sequence(4),
            incomplete: false,
            open: false,
        };
        let root = Root {
            pool: PoolId(1),
            lane: 0,
            epoch: Epoch(1),
            generation: 1,
            sequence: Sequence(4),
            end: Sequence(9),
            table_bytes: 0,
            table: Vec::new(),
            segments: vec![segment(2, 1), segment(3, 2)],
        };
        let table = Table {
            next_segment: 3,
            segments: vec![record(1, 0), record(2, 1)],
            layers: vec![layer(1, 0), layer(2, 1), layer(3, 1)],
            ..Table::default()
        };
        (root, table)
    }

    fn refused(change: impl Fn(&mut Root, &mut Table)) -> Contradiction {
        let (mut root, mut table) = sound();
        change(&mut root, &mut table);
        find_contradiction(&root, &table, &KNOWN).expect("it does not fit")
    }

    #[test]
    fn what_fits_is_believed() {
        let (root, table) = sound();
        assert_eq!(find_contradiction(&root, &table, &KNOWN), None);
    }

    #[test]
    fn what_there_is_not_is_refused() {
        let column = |drive, chunk| Some(Column { drive, chunk });
        let drive = Contradiction::SegmentOnNoDrive;
        assert_eq!(drive, refused(|_, table| table.segments[0].columns.columns[0] = column(7, 0)));
        assert_eq!(drive, refused(|_, table| table.segments[0].columns.columns[0] = column(0, 10)));
        assert_eq!(
            drive,
            refused(|_, table| table.segments[0].columns.columns[0] = column(1, 5)),
            "twice on one"
        );
        assert_eq!(drive, refused(|root, _| root.segments[1].columns[2] = column(9, 1)));
        assert_eq!(refused(|root, _| root.segments[1].columns[2] = column(2, 0)), Contradiction::ChunkTwice);
        assert_eq!(refused(|_, table| table.segments[0].used_rows = 17), Contradiction::SegmentOverfull);
        assert_eq!(refused(|_, table| table.segments[0].live = 33), Contradiction::SegmentOverfull);
        assert_eq!(refused(|_, table| table.tail_row = 17), Contradiction::SegmentOverfull);
        assert_eq!(
            refused(|_, table| table.layers[0].root.position = Position::new(SegmentId(9), 0, 1, 0)),
            Contradiction::LayerWithoutMap
        );
        assert_eq!(refused(|_, table| table.layers.push(layer(1, 0))), Contradiction::LayerTwice);
        assert_eq!(refused(|_, table| table.layers[0].name = LayerId(2)), Contradiction::LayerNameTwice);
        assert_eq!(refused(|_, table| table.layers[0].mapped = 257), Contradiction::LayerOverfull);
        assert_eq!(refused(|_, table| table.layers[2].merging = Some(LayerId(2))), Contradiction::MergeApart);
        assert_eq!(refused(|_, table| table.layers[1].merging = Some(LayerId(2))), Contradiction::MergeApart);
        assert_eq!(refused(|_, table| table.next_segment = u32::MAX), Contradiction::SegmentIdsExhausted);
        assert_eq!(
            refused(|root, _| root.segments[1].id = SegmentId(u32::MAX)),
            Contradiction::SegmentIdsExhausted
        );
        assert_eq!(
            refused(|_, table| table.segments[0].last = Sequence(u64::MAX)),
            Contradiction::CountTooHigh
        );
        assert_eq!(refused(|root, _| root.generation = u64::MAX), Contradiction::CountTooHigh);
        assert_eq!(refused(|_, table| table.tail = vec![SegmentId(1); 2]), Contradiction::TailTwice);
        assert_eq!(refused(|_, table| table.layers[1].parent = Some(LayerId(8))), Contradiction::LayerOnNone);
        assert_eq!(
            refused(|_, table| table.layers[1].merging = Some(LayerId(8))),
            Contradiction::LayerOnNone
        );
        assert_eq!(
            refused(|_, table| table.layers[0].parent = Some(LayerId(3))),
            Contradiction::LayersInCircle
        );
        assert_eq!(
            refused(|_, table| table.layers[0].parent = Some(LayerId(1))),
            Contradiction::LayersInCircle
        );
    }
}
