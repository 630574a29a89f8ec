//! Changes sealed structures of a pool on its drives and seals them again, as a faulty program or a person with access
//! to the drives could do. Every checksum is correct afterwards, up to the root.
//!
//! ```text
//!   label     root ──► table ──► root page ──► page ──► leaf page          batch header
//!             `──── changed at any place; what names it is sealed anew ───'
//! ```
//!
//! A program that then opens the pool may refuse it, return errors, or serve what the structures say. It must not
//! panic, hang, or request unbounded memory.

use base::{BLOCK_BYTES, block_checksum};

use super::numbers::{Dice, get, number, pick, put, set};
use crate::format::header::{BatchHeader, ENTRIES_MAX, Entry};
use crate::format::label::Label;
use crate::format::page::{PAGE_ENTRIES, PageKey};
use crate::format::root::Root;
use crate::format::table::{SegmentColumns, Table};
use crate::format::{LABEL_REGION_BYTES, ROOT_SLOT_BYTES, label_offset_bytes, root_offset_bytes, seal_again};
use crate::geometry::layout::Layout;
use crate::geometry::position::Position;

/// The drives of a pool, in the order of its label, while no program serves it.
pub trait Drives {
    fn count(&self) -> usize;
    fn read(&self, drive: usize, offset_bytes: u64, blocks: usize) -> Vec<u8>;
    fn write(&self, drive: usize, offset_bytes: u64, bytes: &[u8]);
}

/// Which structure is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sealed {
    Label,
    Root,
    Table,
    /// Only the counts of the table: live blocks, mapped blocks, references.
    Counts,
    Page,
    Header,
}

impl Sealed {
    pub const ALL: [Sealed; 6] =
        [Sealed::Label, Sealed::Root, Sealed::Table, Sealed::Counts, Sealed::Page, Sealed::Header];
}

/// Changes a structure of one lane. Returns a description of the change; `None` if there is no such structure.
pub fn change(drives: &dyn Drives, lane: u16, what: Sealed, dice: Dice<'_>) -> Option<String> {
    let pool = Anatomy::of(drives, lane)?;
    match what {
        Sealed::Label => pool.change_label(dice),
        Sealed::Root => pool.change_root(dice),
        Sealed::Table => pool.change_table(super::table::change, dice),
        Sealed::Counts => pool.change_table(super::table::miscount, dice),
        Sealed::Page => pool.change_page(dice),
        Sealed::Header => pool.change_header(dice),
    }
}

/// A lane's newest checkpoint, found on its drives.
struct Anatomy<'a> {
    drives: &'a dyn Drives,
    lane: usize,
    chunk_bytes: u64,
    root: Root,
    table: Table,
}

impl<'a> Anatomy<'a> {
    fn of(drives: &'a dyn Drives, lane: u16) -> Option<Anatomy<'a>> {
        let slots = || (0..drives.count()).flat_map(|drive| [(drive, 0), (drive, 1)]);
        let label = |(drive, slot)| Label::parse(&drives.read(drive, label_offset_bytes(0, slot), 1)).ok();
        let chunk_bytes = slots().find_map(label)?.chunk_bytes;
        let lane = usize::from(lane);
        let blocks = ROOT_SLOT_BYTES as usize / BLOCK_BYTES;
        let root =
            |(drive, slot)| Root::parse(&drives.read(drive, root_offset_bytes(lane, slot), blocks)).ok();
        let root = slots().filter_map(root).max_by_key(|root| (root.epoch, root.generation))?;
        let mut pool = Anatomy { drives, lane, chunk_bytes, root, table: Table::default() };
        let mut bytes = Vec::new();
        for entry in &pool.root.table {
            bytes.extend(pool.read(entry.position)?);
        }
        bytes.truncate(pool.root.table_bytes as usize);
        pool.table = Table::parse(&bytes).ok()?;
        Some(pool)
    }

    fn columns(&self, position: Position) -> Option<&SegmentColumns> {
        let mut all = self.table.segments.iter().map(|segment| &segment.columns).chain(&self.root.segments);
        all.find(|columns| columns.id == position.segment())
    }

    /// The drive of a block in the log, and the offset of the block there.
    fn place(&self, position: Position) -> Option<(usize, u64)> {
        let columns = self.columns(position)?;
        let layout = Layout::of_position(columns.shape(), position)?;
        let (role, row) = layout.place(position.slot());
        self.cell(columns, &layout, role, layout.row() + row)
    }

    fn cell(
        &self,
        columns: &SegmentColumns,
        layout: &Layout,
        role: usize,
        row: usize,
    ) -> Option<(usize, u64)> {
        let column = columns.columns[layout.column(role)]?;
        let chunk = LABEL_REGION_BYTES + u64::from(column.chunk) * self.chunk_bytes;
        Some((usize::from(column.drive), chunk + (row * BLOCK_BYTES) as u64))
    }

    fn read(&self, position: Position) -> Option<Vec<u8>> {
        self.place(position).map(|(drive, offset_bytes)| self.drives.read(drive, offset_bytes, 1))
    }

    fn write(&self, position: Position, bytes: &[u8]) -> Option<()> {
        self.place(position).map(|(drive, offset_bytes)| self.drives.write(drive, offset_bytes, bytes))
    }

    fn change_label(&self, dice: Dice<'_>) -> Option<String> {
        // two of three fields are before the drives
        let fields = [
            (8, 2),
            (10, 2),
            (64, 8),
            (72, 8),
            (80, 8),
            (88, 8),
            (96, 2),
            (98, 1),
            (99, 1),
            (100, 1),
            (104, 8),
        ];
        let (offset, width) = match dice(3) {
            0 => {
                let (offset, width) = pick(&[(16, 8), (24, 4), (28, 1), (36, 4), (40, 4)], dice);
                (224 + 48 * dice(8) as usize + offset, width)
            }
            _ => pick(&fields, dice),
        };
        let (everywhere, seen) = (dice(4) > 0, dice(self.drives.count() as u64) as usize);
        let mut said = None;
        for (drive, slot) in (0..self.drives.count()).flat_map(|drive| [(drive, 0), (drive, 1)]) {
            let mut bytes = self.drives.read(drive, label_offset_bytes(0, slot), 1);
            if !everywhere && drive != seen || Label::parse(&bytes).is_err() {
                continue;
            }
            let value = *said.get_or_insert_with(|| number(get(&bytes, offset, width), dice));
            put(&mut bytes, offset, width, value);
            seal_again(&mut bytes);
            self.drives.write(drive, label_offset_bytes(0, slot), &bytes);
        }
        let whose = if everywhere { "every drive".to_owned() } else { format!("drive {seen}") };
        said.map(|value| format!("label of {whose}: {width} bytes at {offset} are {value:#x}"))
    }

    fn change_root(mut self, dice: Dice<'_>) -> Option<String> {
        let root = &mut self.root;
        let said = match dice(9) {
            0 => set(&mut root.epoch.0, "epoch", dice),
            1 | 2 => set(&mut root.generation, "generation", dice),
            3 | 4 => set(&mut root.sequence.0, "sequence", dice),
            5 => set(&mut root.end.0, "end", dice),
            6 => {
                let mut bytes = u64::from(root.table_bytes);
                let said = set(&mut bytes, "length of the table", dice);
                root.table_bytes = bytes as u32;
                said
            }
            7 => {
                let index = dice(root.table.len() as u64) as usize;
                let entry = root.table.get_mut(index)?;
                set(&mut entry.position.0, "position of the table", dice)
            }
            _ => {
                let index = dice(root.segments.len() as u64) as usize;
                super::table::change_columns(root.segments.get_mut(index)?, dice)
            }
        };
        self.write_root();
        Some(format!("root: {said}"))
    }

    /// Writes over the newest root of each drive.
    fn write_root(&self) {
        let bytes = self.root.emit();
        let blocks = bytes.len() / BLOCK_BYTES;
        for drive in 0..self.drives.count() {
            let rank = |&slot: &usize| {
                let bytes = self.drives.read(drive, root_offset_bytes(self.lane, slot), blocks);
                Root::parse(&bytes).ok().map(|root| (root.epoch, root.generation))
            };
            let slot = (0..2).max_by_key(rank).expect("two");
            self.drives.write(drive, root_offset_bytes(self.lane, slot), &bytes);
        }
    }

    fn change_table(mut self, how: fn(&mut Table, Dice<'_>) -> String, dice: Dice<'_>) -> Option<String> {
        let said = how(&mut self.table, dice);
        self.write_table()?;
        Some(format!("table: {said}"))
    }

    /// The batch of a block of the table, according to the root: the table itself may have been changed.
    fn batch_of_table(&self, position: Position) -> Option<(&SegmentColumns, Layout)> {
        let columns = self.root.segments.iter().find(|columns| columns.id == position.segment())?;
        Some((columns, Layout::of_position(columns.shape(), position)?))
    }

    fn write_table(&mut self) -> Option<()> {
        let bytes = self.table.emit();
        let places: Option<Vec<_>> = self
            .root
            .table
            .iter()
            .map(|entry| {
                let (columns, layout) = self.batch_of_table(entry.position)?;
                let (role, row) = layout.place(entry.position.slot());
                self.cell(columns, &layout, role, layout.row() + row)
            })
            .collect();
        let places = places?;
        if bytes.len() > places.len() * BLOCK_BYTES {
            return None;
        }
        self.root.table_bytes = bytes.len() as u32;
        let blocks = bytes.chunks(BLOCK_BYTES).chain(std::iter::repeat(&[][..]));
        let mut written = Vec::new();
        for ((entry, (drive, offset_bytes)), content) in self.root.table.iter_mut().zip(places).zip(blocks) {
            let mut block = content.to_vec();
            block.resize(BLOCK_BYTES, 0);
            entry.crc = block_checksum(&block);
            written.push(entry.position);
            self.drives.write(drive, offset_bytes, &block);
        }
        written.dedup_by_key(|position| (position.segment(), position.row()));
        written.into_iter().for_each(|position| self.admit_table(position));
        self.write_root();
        Some(())
    }

    /// Updates the batch of a changed table, so that it names the new content: otherwise it would be torn, and data of
    /// hosts in it would be lost.
    fn admit_table(&self, position: Position) {
        let Some((columns, layout)) = self.batch_of_table(position) else { return };
        let copies = (0..columns.shape().header_copies())
            .filter_map(|role| self.cell(columns, &layout, role, layout.row()));
        for (drive, offset_bytes) in copies {
            let mut bytes = self.drives.read(drive, offset_bytes, 1);
            let Ok(mut header) = BatchHeader::parse(&bytes) else { continue };
            for entry in &mut header.entries {
                if let Entry::Table { index, crc } = entry
                    && let Some(named) = self.root.table.get(*index as usize)
                {
                    *crc = named.crc;
                }
            }
            header.emit(&mut bytes);
            self.drives.write(drive, offset_bytes, &bytes);
        }
    }

    /// Changes a page on the way down from the root of some layer, at any level.
    fn change_page(mut self, dice: Dice<'_>) -> Option<String> {
        let rooted: Vec<usize> = (0..self.table.layers.len())
            .filter(|&index| self.table.layers[index].root.position.is_stored())
            .collect();
        let index = *rooted.get(dice(rooted.len() as u64) as usize)?;
        let layer = &self.table.layers[index];
        let mut key = PageKey { layer: layer.id, level: layer.height, index: 0 };
        let mut path = vec![(0, layer.root.position, self.read(layer.root.position)?)];
        while key.level > 1 && dice(4) > 0 {
            let (_, _, bytes) = path.last().expect("the root page");
            let position = |slot: usize| Position(get(bytes, 64 + 8 * slot, 8));
            let there: Vec<usize> = (0..PAGE_ENTRIES).filter(|&slot| position(slot).is_stored()).collect();
            let Some(&slot) = there.get(dice(there.len() as u64) as usize) else { break };
            let below = position(slot);
            key =
                PageKey { level: key.level - 1, index: key.index * PAGE_ENTRIES as u64 + slot as u64, ..key };
            path.push((slot, below, self.read(below)?));
        }
        let (mut slot, position, mut bytes) = path.pop().expect("the last");
        let said = super::table::change_page(&mut bytes, &self.table, dice);
        self.write(position, &bytes)?;
        let mut crc = block_checksum(&bytes);
        while let Some((above, position, mut bytes)) = path.pop() {
            put(&mut bytes, 2112 + 4 * slot, 4, u64::from(crc));
            self.write(position, &bytes)?;
            (slot, crc) = (above, block_checksum(&bytes));
        }
        self.table.layers[index].root.crc = crc;
        self.write_table()?;
        Some(format!("{key:?}: {said}"))
    }

    /// Changes the header of a batch of some segment, in all its copies; half of the time a batch that is to be
    /// replayed.
    fn change_header(&self, dice: Dice<'_>) -> Option<String> {
        let in_tail = dice(2) == 0 && !self.table.tail.is_empty();
        let id = match in_tail {
            true => *self.table.tail.get(dice(2.min(self.table.tail.len() as u64)) as usize)?,
            false => self.table.segments.get(dice(self.table.segments.len() as u64) as usize)?.columns.id,
        };
        let columns = &self.table.segments.iter().find(|segment| segment.columns.id == id)?.columns;
        let rows = (self.chunk_bytes / BLOCK_BYTES as u64) as usize;
        let mut row = if in_tail && self.table.tail[0] == id { self.table.tail_row as usize } else { 0 };
        let mut found = Vec::new();
        while row < rows {
            let layout = Layout::new(columns.shape(), id, row, 1);
            let copies: Vec<(usize, u64)> = (0..columns.shape().header_copies())
                .filter_map(|role| self.cell(columns, &layout, role, row))
                .collect();
            let Some(&(drive, offset_bytes)) = copies.first() else { break };
            let bytes = self.drives.read(drive, offset_bytes, 1);
            let Ok(header) = BatchHeader::parse(&bytes) else { break };
            row += usize::from(header.rows);
            found.push((copies, bytes, header));
        }
        let index = dice(found.len() as u64) as usize;
        if found.is_empty() {
            return None;
        }
        let (copies, mut bytes, header) = found.swap_remove(index);
        let said = self.change_header_bytes(&mut bytes, header.entries.len(), dice);
        seal_again(&mut bytes);
        copies.into_iter().for_each(|(drive, offset_bytes)| self.drives.write(drive, offset_bytes, &bytes));
        Some(format!("header of segment {}, row {}: {said}", id.0, header.row))
    }

    fn change_header_bytes(&self, bytes: &mut [u8], entries: usize, dice: Dice<'_>) -> String {
        let fields = [(8, 2), (10, 2), (32, 8), (40, 8), (48, 8), (56, 4), (60, 2), (62, 1), (64, 2)];
        let entry = 112 + 24 * dice(entries.max(1) as u64) as usize;
        if dice(4) == 0 {
            let (offset, width) = pick(&fields, dice);
            let value = number(get(bytes, offset, width), dice);
            put(bytes, offset, width, value);
            return format!("{width} bytes at {offset} are {value:#x}");
        }
        // another entry, or one more: of any kind, with existing layers or not
        let more = dice(3) == 0 && entries < ENTRIES_MAX;
        let at = if more { 112 + 24 * entries } else { entry };
        if more {
            put(bytes, 10, 2, entries as u64 + 1);
        }
        let (kind, level) = (if more { 3 + dice(8) } else { dice(12) }, dice(7));
        let block = match dice(3) {
            0 => dice(400),
            1 => number(dice(1 << 16), dice),
            _ => get(bytes, at, 8),
        };
        let (layer, other) = (self.some_layer(dice), self.some_layer(dice));
        let argument = match dice(3) {
            0 => u64::from(other),
            1 => dice(300),
            _ => number(get(bytes, at + 16, 8), dice),
        };
        let key = kind << 56 | level << 48 | block & ((1 << 48) - 1);
        put(bytes, at, 8, key);
        put(bytes, at + 8, 4, u64::from(layer));
        if dice(2) == 0 {
            put(bytes, at + 12, 4, u64::from(other));
        }
        put(bytes, at + 16, 8, argument);
        format!(
            "the entry at {at} is of kind {kind}/{level} block {block:#x} layer {layer} argument {argument:#x}"
        )
    }

    fn some_layer(&self, dice: Dice<'_>) -> u32 {
        super::table::some_layer(&self.table, dice).0
    }
}
