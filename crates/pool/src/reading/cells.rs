//! Reads cells of the log from drives: single blocks, runs of blocks, headers. Verifies them, and rebuilds lost cells
//! from the rest of their row.
//!
//! Every data block is verified against its checksum before it is used. Parity cells have no checksum: blocks that are
//! rebuilt with them are verified instead.

use std::ops::Range;

use base::{AlignedBuffer, BLOCK_BYTES, block_checksum};
use env::IoError;
use task::join_all;

use crate::decision::Decision;
use crate::drives::evidence::Fault;
use crate::drives::latency::Access;
use crate::format::header::BatchHeader;
use crate::format::page::MapEntry;
use crate::format::table::SegmentColumns;
use crate::geometry::layout::{Cell, Layout};
use crate::lane::Lane;

/// A block can be neither read nor rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreadable;

impl Lane {
    /// Reads rows of one role of a batch. `None` if the column is absent, its drive is out, or the read failed (which
    /// is counted).
    pub(crate) async fn read_rows(
        &self,
        columns: &SegmentColumns,
        layout: &Layout,
        role: usize,
        rows: Range<usize>,
    ) -> Option<AlignedBuffer> {
        let column = columns.columns[layout.column(role)]?;
        let (drive, offset_bytes) = {
            let membership = self.membership.borrow();
            (membership.handle(column.drive)?, membership.offset_bytes(column, layout.row() + rows.start))
        };
        let began = self.io.now();
        let (buffer, result) =
            self.io.drive_read(drive, offset_bytes, AlignedBuffer::uncleared(rows.len())).await;
        self.note_latency(column.drive, Access::Read, rows.len() * BLOCK_BYTES, began);
        match result {
            Ok(()) => Some(buffer),
            Err(error) => {
                self.counters.borrow_mut().drive(column.drive).read += 1;
                if error == IoError::Gone {
                    self.report_failed_drive(column.drive, error).await;
                } else if !self.tolerates_fault(column.drive, Fault::Read) {
                    self.report_condemned_drive(column.drive).await;
                }
                None
            }
        }
    }

    fn count_checksum_error(&self, columns: &SegmentColumns, layout: &Layout, role: usize) {
        if let Some(column) = columns.columns[layout.column(role)] {
            self.counters.borrow_mut().drive(column.drive).checksum += 1;
            if !self.tolerates_fault(column.drive, Fault::Checksum) {
                self.health.condemn(column.drive);
                self.background.notify();
            }
        }
    }

    /// Whether a column is on a drive that is read only if its data cannot be rebuilt.
    fn avoids(&self, columns: &SegmentColumns, layout: &Layout, role: usize) -> bool {
        let membership = self.membership.borrow();
        let column = columns.columns[layout.column(role)];
        let member = column.and_then(|column| membership.members.get(usize::from(column.drive)));
        columns.shape().parity() > 0 && member.is_some_and(|member| member.slow)
    }

    /// Reads the blocks of consecutive slots in one column. Lost blocks are rebuilt; their indices are returned, so
    /// that they can be repaired.
    pub(crate) async fn read_run(
        &self,
        columns: &SegmentColumns,
        entries: &[MapEntry],
    ) -> Result<(AlignedBuffer, Vec<usize>), (usize, Unreadable)> {
        let first = entries[0].position;
        let Some(layout) = Layout::of_position(columns.shape(), first) else { return Err((0, Unreadable)) };
        let (role, row) = layout.place(first.slot());
        let avoided = self.avoids(columns, &layout, role);
        let read = match avoided {
            true => None,
            false => self.read_rows(columns, &layout, role, row..row + entries.len()).await,
        };
        match read {
            Some(buffer) if all_match(&buffer, entries) => Ok((buffer, Vec::new())),
            // a separate future keeps the future of a healthy read small
            read => Box::pin(self.mend_run(columns, &layout, entries, read, avoided)).await,
        }
    }

    /// Rebuilds the missing blocks of a run; `read` is the result of the read, if there is any.
    async fn mend_run(
        &self,
        columns: &SegmentColumns,
        layout: &Layout,
        entries: &[MapEntry],
        read: Option<AlignedBuffer>,
        avoided: bool,
    ) -> Result<(AlignedBuffer, Vec<usize>), (usize, Unreadable)> {
        let (role, row) = layout.place(entries[0].position.slot());
        let missing = read.is_none();
        let mut buffer = read.unwrap_or_else(|| AlignedBuffer::zeroed(entries.len()));
        let mut rebuilt = Vec::new();
        for (index, &MapEntry { position, crc }) in entries.iter().enumerate() {
            if !missing && block_checksum(buffer.block(index)) == crc {
                continue;
            }
            if !missing {
                self.count_checksum_error(columns, layout, role);
            }
            // a run fails as a whole if one block of it is bad: the others may still be readable
            let block = match missing && !avoided && entries.len() > 1 {
                true => self.read_rows(columns, layout, role, row + index..row + index + 1).await,
                false => None,
            };
            if let Some(block) = block.filter(|block| block_checksum(block) == crc) {
                Decision::ReadSplit.taken();
                buffer.block_mut(index).copy_from_slice(&block);
                continue;
            }
            let mut block = self.rebuild(columns, layout, position.slot(), crc).await;
            if avoided && block.is_err() {
                let read = self.read_rows(columns, layout, role, row + index..row + index + 1).await;
                block = read.filter(|block| block_checksum(block) == crc).ok_or(Unreadable);
            }
            let block = block.map_err(|error| (index, error))?;
            buffer.block_mut(index).copy_from_slice(&block);
            rebuilt.push(index);
        }
        Ok((buffer, rebuilt))
    }

    /// Reads one block that a map entry names.
    pub(crate) async fn read_entry(
        &self,
        columns: &SegmentColumns,
        entry: MapEntry,
    ) -> Result<AlignedBuffer, Unreadable> {
        match self.read_run(columns, &[entry]).await {
            Ok((buffer, _)) => Ok(buffer),
            Err((_, error)) => Err(error),
        }
    }

    /// The header of the batch at `row` of a segment: the first valid copy.
    pub(crate) async fn read_header(&self, columns: &SegmentColumns, row: usize) -> Option<BatchHeader> {
        self.read_header_of(columns, row, |_| true).await
    }

    /// The header of the batch at `row`, from all its copies. If they differ, the one with the fewest entries was
    /// written last: refused entries are removed from a batch, and a drive may have lost that write. The caller must
    /// check which batch it is.
    pub(crate) async fn read_last_header(&self, columns: &SegmentColumns, row: usize) -> Option<BatchHeader> {
        let layout = &Layout::new(columns.shape(), columns.id, row, 1);
        let copies = (0..columns.shape().header_copies())
            .map(|role| async move { self.read_rows(columns, layout, role, 0..1).await });
        let copies = join_all(copies.collect::<Vec<_>>()).await;
        let headers = copies.into_iter().enumerate().filter_map(|(role, copy)| {
            let header = BatchHeader::parse(&copy?).ok()?;
            let ours = self.belongs(&header, columns, row);
            // a drive that lost a write still holds its earlier content
            if ours {
                Some((role, header))
            } else {
                Decision::HeaderForeign.taken();
                None
            }
        });
        let (role, header) = headers.min_by_key(|(_, header)| header.entries.len())?;
        if role > 0 {
            Decision::HeaderOtherCopy.taken();
        }
        Some(header)
    }

    /// The first valid copy of the header of a batch that holds this entry in this slot.
    async fn read_header_of(
        &self,
        columns: &SegmentColumns,
        row: usize,
        holds: impl Fn(&BatchHeader) -> bool,
    ) -> Option<BatchHeader> {
        // the place of the copies does not depend on the number of rows
        let layout = Layout::new(columns.shape(), columns.id, row, 1);
        let copies = 0..columns.shape().header_copies();
        let (late, soon): (Vec<_>, Vec<_>) = copies.partition(|&role| self.avoids(columns, &layout, role));
        for role in soon.into_iter().chain(late) {
            let Some(buffer) = self.read_rows(columns, &layout, role, 0..1).await else { continue };
            match BatchHeader::parse(&buffer) {
                Ok(header) if self.belongs(&header, columns, row) && holds(&header) => {
                    if role > 0 {
                        Decision::HeaderOtherCopy.taken();
                    }
                    return Some(header);
                }
                // a drive that lost a write still holds its earlier content
                Ok(_) => Decision::HeaderForeign.taken(),
                Err(_) => {}
            }
        }
        None
    }

    /// Whether a header belongs to a batch of this segment: not to another place, lane, pool or epoch.
    fn belongs(&self, header: &BatchHeader, columns: &SegmentColumns, row: usize) -> bool {
        header.segment == columns.id
            && header.epoch == columns.epoch
            && usize::from(header.row) == row
            && header.pool == self.membership.borrow().pool
            && header.lane == self.number
            && self.fits(header, columns)
    }

    /// Whether a batch ends within its segment, and has rows for its blocks.
    fn fits(&self, header: &BatchHeader, columns: &SegmentColumns) -> bool {
        let rows = usize::from(header.rows);
        usize::from(header.row) + rows <= self.segments.borrow().rows
            && header.blocks() <= columns.shape().blocks_in(rows)
    }

    /// The header of a batch that is known to exist, with this block in this slot.
    async fn header_of(
        &self,
        columns: &SegmentColumns,
        layout: &Layout,
        (slot, crc): (usize, u32),
    ) -> Result<BatchHeader, Unreadable> {
        let holds = |header: &BatchHeader| {
            usize::from(header.rows) == layout.rows()
                && header.blocks() <= layout.shape().blocks_in(layout.rows())
                && header.data().nth(slot).is_some_and(|(_, entry)| entry.crc() == Some(crc))
        };
        self.read_header_of(columns, layout.row(), holds).await.ok_or(Unreadable)
    }

    /// Rebuilds one data block from the rest of its row.
    async fn rebuild(
        &self,
        columns: &SegmentColumns,
        layout: &Layout,
        slot: usize,
        crc: u32,
    ) -> Result<AlignedBuffer, Unreadable> {
        let (lost, row) = layout.place(slot);
        if layout.shape().parity() == 0 {
            return Err(Unreadable);
        }
        let header = self.header_of(columns, layout, (slot, crc)).await?;
        let reads = layout.roles().map(|role| async move {
            if role == lost { None } else { self.read_rows(columns, layout, role, row..row + 1).await }
        });
        let mut cells = join_all(reads).await;
        let checksums: Vec<Option<u32>> = header.data().map(|(_, entry)| entry.crc()).collect();
        for role in layout.roles() {
            match layout.cell(role, row, checksums.len()) {
                Cell::Padding => cells[role] = Some(AlignedBuffer::zeroed(1)),
                Cell::Data(other) if role != lost => {
                    if cells[role].as_ref().is_some_and(|cell| Some(block_checksum(cell)) != checksums[other])
                    {
                        self.count_checksum_error(columns, layout, role);
                        cells[role] = None;
                    }
                }
                Cell::Header => {
                    let mut copy = AlignedBuffer::zeroed(1);
                    header.emit(&mut copy);
                    cells[role] = Some(copy);
                }
                Cell::Data(_) | Cell::Parity(_) => {}
            }
        }
        let Some(block) = solve(layout, &cells, lost, crc) else {
            Decision::RebuildFailed.taken();
            return Err(Unreadable);
        };
        self.counters.borrow_mut().blocks_rebuilt += 1;
        Ok(block)
    }
}

fn all_match(buffer: &AlignedBuffer, entries: &[MapEntry]) -> bool {
    entries.iter().enumerate().all(|(index, entry)| block_checksum(buffer.block(index)) == entry.crc)
}

/// Rebuilds the cell of `lost`, trying every sufficient set of parity columns, because a parity cell may itself be
/// wrong undetected. The result matches `crc`.
pub(crate) fn solve(
    layout: &Layout,
    cells: &[Option<AlignedBuffer>],
    lost: usize,
    crc: u32,
) -> Option<AlignedBuffer> {
    let shape = layout.shape();
    let data = shape.data();
    let attempts: &[&[usize]] = match shape.parity() {
        0 => &[],
        1 => &[&[0]],
        _ => &[&[0, 1], &[0], &[1]],
    };
    attempts.iter().find_map(|parities| {
        let mut target = AlignedBuffer::zeroed(1);
        let mut wanted = Some(&mut target[..]);
        let column =
            |role: usize| cells[role].as_deref().map_or(parity::Column::Lost, parity::Column::Present);
        let mut data_columns: Vec<parity::Column<'_>> = (0..data)
            .map(|role| match role == lost {
                true => parity::Column::Rebuild(wanted.take().expect("one is lost")),
                false => column(role),
            })
            .collect();
        let mut parity_columns: Vec<parity::Column<'_>> = (0..shape.parity())
            .map(
                |parity| {
                    if parities.contains(&parity) { column(data + parity) } else { parity::Column::Lost }
                },
            )
            .collect();
        parity::reconstruct(&mut data_columns, &mut parity_columns).ok()?;
        drop(data_columns);
        if block_checksum(&target) != crc {
            return None;
        }
        match parities {
            [0, 1] => Decision::RebuiltByBoth.taken(),
            [0] => Decision::RebuiltByP.taken(),
            _ => Decision::RebuiltByQ.taken(),
        }
        Some(target)
    })
}
