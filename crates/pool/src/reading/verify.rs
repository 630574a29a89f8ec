//! Verifies whole batches: checks that every cell is correct, and completes batches with missing cells.

use base::{AlignedBuffer, BLOCK_BYTES, block_checksum};
use env::IoError;
use task::join_all;

use crate::format::header::BatchHeader;
use crate::format::table::SegmentColumns;
use crate::geometry::layout::{Cell, Layout};
use crate::lane::Lane;
use crate::log::batch::column_writes;
use crate::reading::cells::solve;
use crate::space::lacking::Lacking;

/// Which cells of a batch must be there for it to be whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// All of them.
    Everything,
    /// Cells of columns that were ever written, on drives that are not out: the others are known to be lost.
    WhatIsThere,
}

/// The state of a batch on the drives.
#[derive(Clone, Debug)]
pub(crate) enum BatchCheck {
    /// Every expected cell is there and correct.
    Whole,
    /// Some copy, column or parity is wrong or missing, but all data is there or can be rebuilt: the blocks, by slot,
    /// and which columns lack something.
    Repairable(AlignedBuffer, Lacking),
    /// Some data is lost, in these slots.
    Torn(Vec<usize>),
}

impl Lane {
    /// Checks every cell of a batch whose header has been read.
    pub(crate) async fn check_batch(
        &self,
        columns: &SegmentColumns,
        header: &BatchHeader,
        expect: Expect,
    ) -> BatchCheck {
        let rows = usize::from(header.rows);
        let blocks = header.blocks();
        let layout = Layout::new(columns.shape(), columns.id, usize::from(header.row), rows);
        if rows < layout.shape().rows_for(blocks) {
            return BatchCheck::Torn((0..blocks).collect());
        }
        let layout = &layout;
        let strips = layout.roles().map(|role| async move { self.read_strip(columns, layout, role).await });
        let strips = join_all(strips).await;
        let mut image = AlignedBuffer::zeroed(1);
        header.emit(&mut image);
        let checksums: Vec<u32> = header.data().filter_map(|(_, entry)| entry.crc()).collect();
        let mut data = AlignedBuffer::zeroed(blocks);
        let expected: Vec<bool> = {
            let segments = self.segments.borrow();
            let there = |role| {
                columns.columns[layout.column(role)].is_some_and(|column| segments.is_readable(column))
            };
            layout.roles().map(|role| expect == Expect::Everything || there(role)).collect()
        };
        let (mut whole, mut lost, mut lacking) = (true, Vec::new(), Lacking::NOTHING);
        for row in 0..rows {
            let mut cells: Vec<Option<AlignedBuffer>> =
                strips.iter().map(|strip| strip[row].clone()).collect();
            drop_wrong_cells(layout, row, &mut cells, &image, &checksums);
            let lacks = |role: usize, cell: &Option<AlignedBuffer>| cell.is_none() && expected[role];
            let missing: Vec<usize> = (0..cells.len())
                .filter(|&role| lacks(role, &cells[role]))
                .map(|role| layout.column(role))
                .collect();
            missing.iter().for_each(|&column| lacking.add(column));
            rebuild_row(layout, row, &mut cells, &image, &checksums, &mut lost);
            let agrees = parity_agrees(layout, row, &cells);
            if missing.is_empty() && !agrees {
                // one of the parity columns is wrong; which one does not matter for the count
                lacking.add_all(Lacking::SOMEWHERE);
            }
            whole &= missing.is_empty() && agrees;
            for role in layout.roles() {
                if let (Cell::Data(slot), Some(cell)) = (layout.cell(role, row, blocks), &cells[role]) {
                    data.block_mut(slot).copy_from_slice(cell);
                }
            }
        }
        match whole {
            _ if !lost.is_empty() => BatchCheck::Torn(lost),
            true => BatchCheck::Whole,
            false => BatchCheck::Repairable(data, lacking),
        }
    }

    /// All cells of one role of a batch, each `None` if it cannot be read.
    async fn read_strip(
        &self,
        columns: &SegmentColumns,
        layout: &Layout,
        role: usize,
    ) -> Vec<Option<AlignedBuffer>> {
        let rows = layout.rows();
        if let Some(strip) = self.read_rows(columns, layout, role, 0..rows).await {
            return (0..rows).map(|row| Some(AlignedBuffer::copied_from(strip.block(row)))).collect();
        }
        let mut cells = Vec::with_capacity(rows);
        for row in 0..rows {
            cells.push(self.read_rows(columns, layout, role, row..row + 1).await);
        }
        cells
    }

    /// Writes all columns of a batch again, in place and durably: correct cells get the same bytes, missing cells are
    /// filled in. Returns the columns that could not be written because they are absent, their drive is out, or the
    /// file system under it is full: cleaning then restores the redundancy.
    pub(crate) async fn complete_batch(
        &self,
        columns: &SegmentColumns,
        header: &BatchHeader,
        data: AlignedBuffer,
    ) -> Lacking {
        let layout =
            Layout::new(columns.shape(), columns.id, usize::from(header.row), usize::from(header.rows));
        let mut image = AlignedBuffer::zeroed(1);
        header.emit(&mut image);
        let writes = column_writes(&layout, image.into_bytes(), data.into_bytes(), header.blocks());
        let places: Vec<usize> = writes.iter().map(|write| write.column).collect();
        let writes = writes.into_iter().map(|write| async move {
            let Some(column) = columns.columns[write.column] else { return false };
            let offset_bytes = self.membership.borrow().offset_bytes(column, usize::from(header.row));
            let Some(drive) = self.membership.borrow().handle(column.drive) else {
                return false;
            };
            let Err(error) = self.io.drive_write(drive, offset_bytes, write.data, true).await else {
                return true;
            };
            self.counters.borrow_mut().failed_write(column.drive, error);
            if error != IoError::NoSpace {
                self.report_failed_drive(column.drive, error).await;
            }
            false
        });
        let mut lacking = Lacking::NOTHING;
        let written = join_all(writes).await;
        let refused = places.into_iter().zip(written).filter(|&(_, written)| !written);
        refused.for_each(|(column, _)| lacking.add(column));
        lacking
    }
}

/// Removes the cells of one row that do not match the header; parity cells are not checked.
fn drop_wrong_cells(
    layout: &Layout,
    row: usize,
    cells: &mut [Option<AlignedBuffer>],
    image: &AlignedBuffer,
    checksums: &[u32],
) {
    for role in layout.roles() {
        let holds = layout.cell(role, row, checksums.len());
        let good = |cell: &AlignedBuffer| match holds {
            Cell::Header => cell[..] == image[..],
            Cell::Data(slot) => block_checksum(cell) == checksums[slot],
            Cell::Padding | Cell::Parity(_) => true,
        };
        let read = if holds == Cell::Padding { Some(AlignedBuffer::zeroed(1)) } else { cells[role].take() };
        cells[role] = read.filter(good);
    }
}

/// Rebuilds the missing cells of a row, except parity; slots of lost blocks are added to `lost`.
fn rebuild_row(
    layout: &Layout,
    row: usize,
    cells: &mut [Option<AlignedBuffer>],
    image: &AlignedBuffer,
    checksums: &[u32],
    lost: &mut Vec<usize>,
) {
    let holds = |role| layout.cell(role, row, checksums.len());
    for role in layout.roles().filter(|&role| holds(role) == Cell::Header) {
        cells[role] = Some(image.clone());
    }
    for role in layout.roles() {
        let Cell::Data(slot) = holds(role) else { continue };
        if cells[role].is_none() {
            cells[role] = solve(layout, cells, role, checksums[slot]);
            if cells[role].is_none() {
                lost.push(slot);
            }
        }
    }
}

/// Whether the existing parity cells of a row match its data. Where header copies are there is no parity.
fn parity_agrees(layout: &Layout, row: usize, cells: &[Option<AlignedBuffer>]) -> bool {
    let data = layout.shape().data();
    let columns = cells[..data].iter().map(|cell| cell.as_deref());
    let Some(columns) = columns.collect::<Option<Vec<&[u8]>>>() else { return false };
    let (mut p, mut q) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    parity::compute_pq(&columns, &mut p, &mut q);
    layout.roles().skip(data).zip([p, q]).all(|(role, expected)| {
        (row == 0 && layout.has_header(role))
            || cells[role].as_deref().is_none_or(|cell| *cell == expected[..])
    })
}
