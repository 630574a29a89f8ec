//! Changed contents of a checkpoint's table and of the map's pages.

use base::LayerId;

use super::numbers::{Dice, get, number, put, set};
use crate::format::page::{MapEntry, PAGE_ENTRIES};
use crate::format::table::{SegmentColumns, Table};
use crate::geometry::position::{Position, SegmentId};

/// Some layer of the table, or another one.
pub(super) fn some_layer(table: &Table, dice: Dice<'_>) -> LayerId {
    match dice(8) {
        0 => LayerId(u32::MAX),
        1 => LayerId(number(dice(40), dice) as u32),
        _ => table.layers.get(dice(table.layers.len() as u64) as usize).map_or(LayerId(1), |layer| layer.id),
    }
}

/// An entry that may be in the map.
pub(super) fn some_entry(old: MapEntry, table: &Table, dice: Dice<'_>) -> MapEntry {
    let segment = |dice: Dice<'_>| table.segments.get(dice(table.segments.len() as u64) as usize);
    let position = match dice(6) {
        0 => dice(4),
        1 => number(old.position.0, dice),
        2 => dice(1 << 40) << 24 | 1 << 16,
        3 => old.position.0 ^ 1 << dice(16),
        4 => segment(dice).map_or(0, |segment| {
            u64::from(segment.columns.id.0) << 32 | dice(20) << 16 | dice(20) << 8 | dice(20)
        }),
        _ => old.position.0 & 0xFFFF_FFFF | (1 + dice(64)) << 32,
    };
    let crc = if dice(3) == 0 { some_layer(table, dice).0 } else { old.crc };
    MapEntry { position: Position(position), crc }
}

/// Makes a count higher or lower than correct.
pub(super) fn miscount(table: &mut Table, dice: Dice<'_>) -> String {
    let less = dice(2) == 0;
    let most = [3, 200][dice(2) as usize];
    let by = 1 + dice(most);
    let other = |count: u64| if less { count.saturating_sub(by) } else { count + by };
    let (segment, layer, name) = (
        dice(table.segments.len() as u64) as usize,
        dice(table.layers.len() as u64) as usize,
        dice(table.referred.len() as u64) as usize,
    );
    match dice(5) {
        0 if name < table.referred.len() => {
            let (of, count) = &mut table.referred[name];
            *count = other(*count).max(1);
            format!("{count} entries refer to {of:?}")
        }
        1 | 2 if layer < table.layers.len() => {
            let layer = &mut table.layers[layer];
            layer.mapped = other(layer.mapped);
            format!("{} blocks are mapped by {:?}", layer.mapped, layer.id)
        }
        _ if segment < table.segments.len() => {
            let segment = &mut table.segments[segment];
            segment.live = other(u64::from(segment.live)) as u32;
            format!("{} blocks are live in {:?}", segment.live, segment.columns.id)
        }
        _ => "nothing".to_owned(),
    }
}

/// Changes any field.
pub(super) fn change(table: &mut Table, dice: Dice<'_>) -> String {
    let (segments, layers) = (table.segments.len() as u64, table.layers.len() as u64);
    match dice(4) {
        0 => change_frame(table, dice),
        1 if segments > 0 => change_segment(table, dice(segments) as usize, dice),
        _ if layers > 0 => change_layer(table, dice(layers) as usize, dice),
        _ => change_frame(table, dice),
    }
}

fn set_u32(field: &mut u32, name: &str, dice: Dice<'_>) -> String {
    let mut value = u64::from(*field);
    let said = set(&mut value, name, dice);
    *field = value as u32;
    said
}

fn change_frame(table: &mut Table, dice: Dice<'_>) -> String {
    match dice(5) {
        0 => set_u32(&mut table.next_segment, "next segment", dice),
        1 => set_u32(&mut table.tail_row, "row of the tail", dice),
        2 => {
            let some = table.segments.get(dice(table.segments.len() as u64) as usize);
            let id = some.map_or(SegmentId(1), |segment| segment.columns.id);
            let at = dice(table.tail.len() as u64 + 1) as usize;
            table.tail.insert(at, id);
            format!("{id:?} is in the tail, too")
        }
        3 => {
            let gone = table.tail.len().saturating_sub(1 + dice(3) as usize);
            table.tail.truncate(gone);
            "the tail is shorter".to_owned()
        }
        _ => {
            let layer = some_layer(table, dice);
            table.referred.push((layer, 1 + number(0, dice) % 1000));
            table.referred.sort_unstable();
            table.referred.dedup_by_key(|(layer, _)| *layer);
            format!("something refers to {layer:?}")
        }
    }
}

fn change_segment(table: &mut Table, index: usize, dice: Dice<'_>) -> String {
    let segment = &mut table.segments[index];
    let id = segment.columns.id;
    let said = match dice(6) {
        0 => set_u32(&mut segment.live, "live", dice),
        1 => set_u32(&mut segment.used_rows, "used rows", dice),
        2 => set(&mut segment.last.0, "last", dice),
        3 => {
            segment.incomplete ^= true;
            "incomplete is not what it was".to_owned()
        }
        4 => {
            segment.open ^= true;
            "open is not what it was".to_owned()
        }
        _ => change_columns(&mut segment.columns, dice),
    };
    format!("{id:?}: {said}")
}

pub(super) fn change_columns(columns: &mut SegmentColumns, dice: Dice<'_>) -> String {
    let index = dice(columns.columns.len() as u64) as usize;
    match (dice(6), &mut columns.columns[index]) {
        (0, _) => set(&mut columns.epoch.0, "epoch", dice),
        (1, _) => {
            columns.parity = dice(4) as u8;
            format!("parity is {}", columns.parity)
        }
        (2, column) => {
            *column = None;
            format!("column {index} is absent")
        }
        (3, _) => {
            columns.columns.pop();
            "one column less".to_owned()
        }
        (4, _) => set_u32(&mut columns.id.0, "id", dice),
        (_, Some(column)) => set_u32(&mut column.chunk, "chunk", dice),
        (_, None) => "nothing".to_owned(),
    }
}

fn change_layer(table: &mut Table, index: usize, dice: Dice<'_>) -> String {
    let (other, another) = (some_layer(table, dice), some_layer(table, dice));
    let root = table.layers[index].root;
    let entry = some_entry(root, table, dice);
    let layer = &mut table.layers[index];
    let id = layer.id;
    let said = match dice(8) {
        0 => {
            layer.parent = Some(other).filter(|_| dice(4) > 0);
            format!("parent is {:?}", layer.parent)
        }
        1 => {
            layer.height = 1 + dice(5) as u8;
            format!("height is {}", layer.height)
        }
        2 => {
            layer.dropping ^= true;
            format!("dropping is {}", layer.dropping)
        }
        3 => set(&mut layer.mapped, "mapped", dice),
        4 => {
            layer.name = other;
            format!("name is {other:?}")
        }
        5 => {
            layer.merging = Some(other);
            format!("merging into {other:?}")
        }
        6 => {
            (layer.dropping, layer.merging, layer.parent) = (true, Some(other), Some(another));
            format!("it is dropped, on {another:?}, merging into {other:?}")
        }
        _ => {
            layer.root = entry;
            format!("root is {entry:?}")
        }
    };
    format!("{id:?}: {said}")
}

/// Changes what a map page says.
pub(super) fn change_page(bytes: &mut [u8], table: &Table, dice: Dice<'_>) -> String {
    let slot = match dice(2) {
        0 => dice(PAGE_ENTRIES as u64) as usize,
        // the entries that are written first
        _ => dice(8) as usize,
    };
    let (place, sum) = (64 + 8 * slot, 2112 + 4 * slot);
    let entry = MapEntry { position: Position(get(bytes, place, 8)), crc: get(bytes, sum, 4) as u32 };
    let said = match dice(6) {
        0 => {
            let offset = dice(64 / 4) as usize * 4;
            let value = number(get(bytes, offset, 4), dice);
            put(bytes, offset, 4, value);
            return format!("4 bytes at {offset} are {value:#x}");
        }
        1 | 2 => {
            // the position of another entry, and what it holds
            let other = dice(PAGE_ENTRIES as u64) as usize;
            let (position, crc) = (get(bytes, 64 + 8 * other, 8), get(bytes, 2112 + 4 * other, 4));
            put(bytes, place, 8, position);
            put(bytes, sum, 4, crc);
            format!("entry {slot} is what entry {other} is")
        }
        _ => {
            let entry = some_entry(entry, table, dice);
            put(bytes, place, 8, entry.position.0);
            put(bytes, sum, 4, u64::from(entry.crc));
            format!("entry {slot} is {entry:?}")
        }
    };
    if dice(8) > 0 {
        let used = (0..PAGE_ENTRIES).filter(|index| get(bytes, 64 + 8 * index, 8) != 0).count();
        put(bytes, 12, 4, used as u64);
    }
    said
}
